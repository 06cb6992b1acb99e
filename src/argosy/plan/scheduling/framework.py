"""The scheduling framework: runs filter, score, select and replicas plugins over the whole fleet at once.

It owns what is common to all plugins: their order, which filter refused a cluster first, and how scores are normalised,
weighted and summed. A plugin answers for all clusters in one call and knows nothing of the others. A plugin that runs in
another process (`Remote`) is not called: the run yields an `Ask` and is sent the `Reply`, so that nothing here waits.
`schedule` decides what follows from the results, and what to do if nothing fits.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import Column, Fleet, Mask, Rows
from argosy.plan.scheduling.unit import Unit

__all__ = [
    "MAX_SCORE",
    "Always",
    "Ask",
    "Division",
    "Filter",
    "Filtered",
    "FrameworkError",
    "Profile",
    "Ranked",
    "Reasons",
    "Remote",
    "Replicas",
    "Reply",
    "Score",
    "Scored",
    "Select",
    "Several",
    "asked_to_divide",
    "by_score",
    "run_filters",
    "run_scores",
    "run_selects",
    "share_of_best",
]

MAX_SCORE = 100
REFUSED_REMOTELY = "cluster(s) were filtered by webhookPlugin({name})"


class FrameworkError(ValueError):
    """Scheduling with this profile or unit is impossible until someone changes it; the message says what."""


class Ranked(NamedTuple):
    """Clusters by their rows in the fleet, in order of preference after selection, and their scores."""

    rows: Rows
    scores: Column


def by_score(rows: Rows, scores: Column) -> Rows:
    """The positions, best score first; equal scores by row, which is by name."""
    return np.lexsort((rows, -scores))


class Division(msgspec.Struct, frozen=True, eq=False):
    """Replicas for each of the given rows, and those of them kept beyond what the cluster can run.

    `steps` tells in words how the planner got there.
    """

    replicas: Column
    overflow: Column
    steps: tuple[str, ...] = ()


class Always(msgspec.Struct, frozen=True):
    """A reason that is the same for every cluster."""

    text: str

    def __call__(self, unit: Unit, fleet: Fleet, row: int) -> str:
        return self.text


class Several(msgspec.Struct, frozen=True):
    """Reasons of which a cluster may have more than one, each with the clusters that have it."""

    by_text: Callable[[Unit, Fleet], Mapping[str, Mask]]

    def __call__(self, unit: Unit, fleet: Fleet, row: int) -> str:
        return ", ".join(text for text, having in self.by_text(unit, fleet).items() if having[row])


class Reasons(NamedTuple):
    """The reasons of many rows: each distinct text once, and which text applies to each row."""

    texts: tuple[str, ...]
    codes: npt.NDArray[np.int64]


class Filter(NamedTuple):
    """`feasible` answers for every cluster; `reason` says why the cluster at a row was refused.

    A filter that does not concern a unit returns `fleet.everyone`, which costs nothing. A filter whose reasons differ from
    cluster to cluster may also answer for many rows at once with `reasons`. `remedy` tells users what would have to change for
    a refused cluster to pass. `spares_running`: a cluster that runs some replicas passes, but gets no more of them if it would
    be refused to a new object.
    """

    name: str
    feasible: Callable[[Unit, Fleet], Mask]
    reason: Callable[[Unit, Fleet, int], str]
    configure: Callable[[Any], "Filter"] | None = None
    reasons: Callable[[Unit, Fleet, Rows], Reasons] | None = None
    remedy: str = ""
    spares_running: bool = False


def _as_it_is(scores: Column) -> Column:
    return scores


def share_of_best(scores: Column) -> Column:
    """Scales the best score to 100 and the others in proportion; unchanged if no score is above 0."""
    best = int(scores.max(initial=0))
    if best <= 0:
        return scores
    if best > 2**56:
        return np.array([MAX_SCORE * score // best for score in scores.tolist()], dtype=np.int64)
    return MAX_SCORE * scores // best


class Score(NamedTuple):
    """`score` answers for every cluster, `normalize` maps the feasible clusters' scores to 0–100.

    A plugin that does not concern a unit returns `fleet.zeros`, which costs nothing.
    """

    name: str
    score: Callable[[Unit, Fleet], Column]
    normalize: Callable[[Column], Column] = _as_it_is
    weight: int = 1
    configure: Callable[[Any], "Score"] | None = None


class Select(NamedTuple):
    """Reorders or shortens the list that the select plugin before it returned. May raise FrameworkError."""

    name: str
    select: Callable[[Unit, Fleet, Ranked], Ranked]
    configure: Callable[[Any], "Select"] | None = None


class Replicas(NamedTuple):
    """Divides the unit's replicas over the given rows. May raise FrameworkError."""

    name: str
    divide: Callable[[Unit, Fleet, Rows], Division]
    configure: Callable[[Any], "Replicas"] | None = None


class Remote(NamedTuple):
    """A plugin that runs elsewhere: a webhook, or (`package_plugins`) a function of a Python package in its own process.

    The decision yields a question to it, and whoever runs the decision sends the answer.
    """

    name: str
    phase: Literal["filter", "score", "select", "replicas"]
    weight: int = 1
    packaged: bool = False
    #: Only for packaged plugins: whether it takes arguments, and the profile's arguments for it (one value, or none).
    configurable: bool = False
    arguments: tuple[Any, ...] = ()


class Ask(NamedTuple):
    """A question to a Remote about the rows in `ranked`; scores are zeros except for select."""

    plugin: Remote
    unit: Unit
    fleet: Fleet
    ranked: Ranked


class Reply(NamedTuple):
    """The answer to an Ask. `passed` and `scores` are aligned with the rows of the Ask, `rows` are the selected ones.

    `errors` are by position in the rows of the Ask; `error` fails the whole phase.
    """

    passed: Mask | None = None
    scores: Column | None = None
    rows: Rows | None = None
    errors: Mapping[int, str] = {}
    error: str = ""
    #: Why a cluster was refused, by position. The default reason is that this plugin refused it.
    reasons: Mapping[int, str] = {}
    #: The division, for replicas plugins.
    division: Division | None = None


class Profile(msgspec.Struct, frozen=True):
    """The plugins of one run, in order. `replicas` is by strategy, since a policy chooses it."""

    filters: tuple[Filter | Remote, ...] = ()
    scores: tuple[Score | Remote, ...] = ()
    selects: tuple[Select | Remote, ...] = ()
    replicas: dict[str, Replicas | Remote] = {}
    #: The name under which objects that ask the same share the results of filters, scores and selection. Only for plugins
    #: that read nothing of an object but its `question` and in which `Fleet.tainted_or_unready` clusters it runs, and for
    #: filters that do not read available resources. Empty if that is not known.
    shared_as: str = ""


class Filtered(msgspec.Struct, frozen=True, eq=False):
    """Which clusters passed all filters, and for each other cluster the first filter it failed."""

    plugins: tuple[Filter | Remote, ...]
    #: One entry per cluster: the position of the first filter it failed, -1 if it passed all.
    failed: npt.NDArray[np.int16]
    feasible: Mask
    #: Reasons from remote plugins, by row, and errors where there was no answer.
    remote_reasons: dict[int, str]
    unanswered: dict[int, str]

    def reasons(self, unit: Unit, fleet: Fleet, position: int) -> tuple[Rows, Reasons]:
        """The rows that one filter was the first to refuse, and why."""
        rows, plugin = self._refused(position), self.plugins[position]
        if isinstance(plugin, Filter) and self._answered(rows):
            if plugin.reasons is not None:
                return rows, _stated(plugin.reasons(unit, fleet, rows))
            if isinstance(plugin.reason, Always):
                return rows, Reasons((plugin.reason.text,), np.zeros(len(rows), dtype=np.int64))
        texts: dict[str, int] = {}
        codes = [texts.setdefault(self._reason(plugin, unit, fleet, row), len(texts)) for row in rows.tolist()]
        return rows, Reasons(tuple(texts), np.array(codes, dtype=np.int64))

    def _refused(self, position: int) -> Rows:
        rows: Rows = (self.failed == position).nonzero()[0]
        return rows

    def _answered(self, rows: Rows) -> bool:
        return self.unanswered.keys().isdisjoint(rows.tolist())

    def _reason(self, plugin: Filter | Remote, unit: Unit, fleet: Fleet, row: int) -> str:
        stated = self.unanswered.get(row) or self.remote_reasons.get(row)
        if stated is not None:
            return stated
        return (
            REFUSED_REMOTELY.format(name=plugin.name) if isinstance(plugin, Remote) else plugin.reason(unit, fleet, row)
        )

    def refused_by(self) -> list[int]:
        """The positions of the filters that refused a cluster."""
        counts = np.bincount(self.failed + 1, minlength=1)
        refusing: list[int] = counts[1:].nonzero()[0].tolist()
        return refusing

    def message(self, unit: Unit, fleet: Fleet) -> str:
        """The text users know from Kubernetes: how many clusters were refused for which reason.

        A cluster counts for each reason of the first filter that it failed.
        """
        counts: Counter[str] = Counter()
        for position in self.refused_by():
            counts.update(self._counts(unit, fleet, position))
        listed = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
        return f"0/{len(self.failed)} clusters are available: {', '.join(listed)}"

    def _counts(self, unit: Unit, fleet: Fleet, position: int) -> dict[str, int]:
        rows, plugin = self._refused(position), self.plugins[position]
        if isinstance(plugin, Filter) and isinstance(plugin.reason, Several) and self._answered(rows):
            return {text: int(having[rows].sum()) for text, having in plugin.reason.by_text(unit, fleet).items()}
        _, reasons = self.reasons(unit, fleet, position)
        return dict(zip(reasons.texts, np.bincount(reasons.codes).tolist(), strict=True))


def _stated(reasons: Reasons) -> Reasons:
    """Without the texts that apply to no row."""
    used, codes = np.unique(reasons.codes, return_inverse=True)
    return Reasons(tuple(reasons.texts[code] for code in used.tolist()), codes)


class Scored(msgspec.Struct, frozen=True, eq=False):
    """The feasible clusters with the sum of their scores, in fleet order, and the weighted scores of each plugin."""

    ranked: Ranked
    by_plugin: tuple[tuple[str, Column], ...]


def run_filters(filters: Sequence[Filter | Remote], unit: Unit, fleet: Fleet) -> Generator[Ask, Reply, Filtered]:
    """A filter that fails, or does not answer for a cluster, excludes it: an unchecked cluster is not allowed."""
    remaining = everyone = fleet.everyone
    failed = np.full(len(fleet), -1, dtype=np.int16)
    remote_reasons: dict[int, str] = {}
    unanswered: dict[int, str] = {}
    for position, plugin in enumerate(filters):
        if isinstance(plugin, Remote):
            if not remaining.any():
                break
            passed = yield from _asked_to_filter(plugin, unit, fleet, remaining, remote_reasons, unanswered)
        else:
            try:
                passed = plugin.feasible(unit, fleet)
            except FrameworkError as error:
                passed = np.zeros(len(fleet), dtype=np.bool_)
                unanswered.update(dict.fromkeys(np.flatnonzero(remaining).tolist(), str(error)))
        if passed is everyone:
            continue
        failed[remaining > passed] = position
        remaining = remaining & passed
    return Filtered(tuple(filters), failed, remaining, remote_reasons, unanswered)


def _asked_to_filter(
    plugin: Remote,
    unit: Unit,
    fleet: Fleet,
    remaining: Mask,
    remote_reasons: dict[int, str],
    unanswered: dict[int, str],
) -> Generator[Ask, Reply, Mask]:
    rows = np.flatnonzero(remaining)
    reply = yield Ask(plugin, unit, fleet, Ranked(rows, np.zeros(len(rows), dtype=np.int64)))
    passed = np.zeros(len(fleet), dtype=np.bool_)
    if reply.error or reply.passed is None or len(reply.passed) != len(rows):
        unanswered.update(dict.fromkeys(rows.tolist(), reply.error or f"{plugin.name} gave no answer"))
        return passed
    passed[rows] = reply.passed
    remote_reasons.update((int(rows[at]), reason) for at, reason in reply.reasons.items())
    for at, error in reply.errors.items():
        passed[rows[at]] = False
        unanswered[int(rows[at])] = error
    return passed


def run_scores(
    scores: Sequence[Score | Remote], unit: Unit, fleet: Fleet, feasible: Mask
) -> Generator[Ask, Reply, Scored]:
    """The weighted sum of all score plugins for each feasible cluster, in fleet order."""
    rows = feasible.nonzero()[0]
    all_feasible, zeros = len(rows) == len(fleet), fleet.zeros
    total = np.zeros(len(rows), dtype=np.int64)
    by_plugin: list[tuple[str, Column]] = []
    for plugin in scores if len(rows) else ():
        if isinstance(plugin, Remote):
            given = yield from _asked_to_score(plugin, unit, fleet, rows)
        else:
            raw = plugin.score(unit, fleet)
            if raw is zeros:
                continue
            given = plugin.normalize(raw if all_feasible else raw[rows])
        if plugin.weight != 1:
            given = given * plugin.weight
        total += given
        by_plugin.append((plugin.name, given))
    return Scored(Ranked(rows, total), tuple(by_plugin))


def _asked_to_score(plugin: Remote, unit: Unit, fleet: Fleet, rows: Rows) -> Generator[Ask, Reply, Column]:
    reply = yield Ask(plugin, unit, fleet, Ranked(rows, np.zeros(len(rows), dtype=np.int64)))
    _raise_error(plugin, fleet, rows, reply)
    if reply.scores is None or len(reply.scores) != len(rows):
        raise FrameworkError(f"score plugin {plugin.name!r} gave no answer")
    return reply.scores if plugin.packaged else share_of_best(reply.scores)


def run_selects(
    selects: Sequence[Select | Remote], unit: Unit, fleet: Fleet, scored: Ranked
) -> Generator[Ask, Reply, Ranked]:
    chosen = scored
    for plugin in selects:
        if isinstance(plugin, Remote):
            chosen = yield from _asked_to_select(plugin, unit, fleet, chosen)
        else:
            chosen = plugin.select(unit, fleet, chosen)
    return chosen


def _asked_to_select(plugin: Remote, unit: Unit, fleet: Fleet, ranked: Ranked) -> Generator[Ask, Reply, Ranked]:
    reply = yield Ask(plugin, unit, fleet, ranked)
    _raise_error(plugin, fleet, ranked.rows, reply)
    score_of = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
    rows = None if reply.rows is None else reply.rows.tolist()
    if rows is None or len(set(rows)) != len(rows) or not score_of.keys() >= set(rows):
        raise FrameworkError(f"select plugin {plugin.name!r} did not choose from the clusters it was given")
    scores = reply.scores if plugin.packaged else None
    if scores is None or len(scores) != len(rows):
        scores = np.array([score_of[row] for row in rows], dtype=np.int64)
    return Ranked(np.array(rows, dtype=np.intp), scores)


def asked_to_divide(plugin: Remote, unit: Unit, fleet: Fleet, rows: Rows, reply: Reply) -> Division:
    """The division a remote plugin replied with. Raises FrameworkError."""
    _raise_error(plugin, fleet, rows, reply)
    division = reply.division
    if division is None or len(division.replicas) != len(rows) or len(division.overflow) != len(rows):
        raise FrameworkError(f"replicas plugin {plugin.name!r} gave no answer")
    return division


def _raise_error(plugin: Remote, fleet: Fleet, rows: Rows, reply: Reply) -> None:
    """Raises the first error of a reply: an answer about some of the clusters is of no use."""
    if reply.error:
        raise FrameworkError(
            reply.error if plugin.packaged else f"{plugin.phase} plugin {plugin.name!r}: {reply.error}"
        )
    for at, error in sorted(reply.errors.items()):
        raise FrameworkError(f"{plugin.phase} plugin {plugin.name!r}, cluster {fleet.names[rows[at]]}: {error}")
