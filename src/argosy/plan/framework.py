"""The scheduling framework: runs filter, score, select and replicas plugins over the whole fleet at once.

It owns what is common to all plugins: their order, which filter excluded a cluster first, normalisation and summing of
scores, and how a profile changes the plugin sets. A plugin answers for all clusters in one call and knows nothing of the
others. Who is placed where in the end, and what to do when nothing fits, is `schedule`'s matter.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from argosy.api.profiles import Plugins, PluginSet
from argosy.fleet.snapshot import Column, Fleet
from argosy.fleet.taints import Mask
from argosy.plan.replicas import ReplicaPlan
from argosy.plan.unit import Unit

__all__ = [
    "MAX_SCORE",
    "ClusterScore",
    "Filter",
    "Filtered",
    "FrameworkError",
    "Profile",
    "Registry",
    "Replicas",
    "Score",
    "Select",
    "merge_profile",
    "run_filters",
    "run_scores",
    "run_selects",
]

MAX_SCORE = 100


class FrameworkError(ValueError):
    """Scheduling with this profile or unit is impossible until someone changes it; the message says what."""


class ClusterScore(NamedTuple):
    cluster: str
    score: int


class Filter(NamedTuple):
    """`feasible` answers for every cluster; `reason` says why the cluster at a row was refused."""

    name: str
    feasible: Callable[[Unit, Fleet], Mask]
    reason: Callable[[Unit, Fleet, int], str]


def _as_it_is(scores: Column) -> Column:
    return scores


class Score(NamedTuple):
    """`score` answers for every cluster, `normalize` maps the feasible clusters' scores to 0–100."""

    name: str
    score: Callable[[Unit, Fleet], Column]
    normalize: Callable[[Column], Column] = _as_it_is


class Select(NamedTuple):
    """Reorders or shortens the list; gets what the select plugin before it returned. May raise FrameworkError."""

    name: str
    select: Callable[[Unit, Sequence[ClusterScore]], list[ClusterScore]]


class Replicas(NamedTuple):
    """Divides the unit's replicas over the clusters given. May raise FrameworkError."""

    name: str
    divide: Callable[[Unit, Fleet, Sequence[str]], ReplicaPlan]


class Profile(msgspec.Struct, frozen=True):
    """The plugins of one run, in order. `replicas` is by strategy, since a policy chooses it."""

    filters: tuple[Filter, ...] = ()
    scores: tuple[Score, ...] = ()
    selects: tuple[Select, ...] = ()
    replicas: dict[str, Replicas] = {}


class Registry(msgspec.Struct, frozen=True):
    """The plugins a profile may name, by extension point."""

    filters: dict[str, Filter] = {}
    scores: dict[str, Score] = {}
    selects: dict[str, Select] = {}


class Filtered(msgspec.Struct, frozen=True):
    """Who passed all filters, and for each cluster that did not: the first filter it failed and why."""

    feasible: Mask
    failed: dict[str, tuple[str, str]]

    def message(self) -> str:
        """The text users know from Kubernetes: how many clusters were refused for which reason."""
        counts = Counter(reason for _, reason in self.failed.values())
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
        return f"0/{len(self.feasible)} clusters are available: {', '.join(reasons)}"


def run_filters(filters: Iterable[Filter], unit: Unit, fleet: Fleet) -> Filtered:
    remaining = np.ones(len(fleet), dtype=np.bool_)
    failed: dict[str, tuple[str, str]] = {}
    for plugin in filters:
        passed = plugin.feasible(unit, fleet)
        for row in np.flatnonzero(remaining & ~passed).tolist():
            failed[fleet.names[row]] = (plugin.name, plugin.reason(unit, fleet, row))
        remaining &= passed
        if not remaining.any():
            break
    return Filtered(remaining, failed)


def run_scores(scores: Iterable[Score], unit: Unit, fleet: Fleet, feasible: Mask) -> list[ClusterScore]:
    """The sum of all score plugins for each feasible cluster, in fleet order."""
    rows = np.flatnonzero(feasible)
    total = np.zeros(len(rows), dtype=np.int64)
    if len(rows):
        for plugin in scores:
            total += plugin.normalize(plugin.score(unit, fleet)[rows])
    return [ClusterScore(fleet.names[row], score) for row, score in zip(rows.tolist(), total.tolist(), strict=True)]


def run_selects(selects: Iterable[Select], unit: Unit, scored: Sequence[ClusterScore]) -> list[ClusterScore]:
    chosen = list(scored)
    for plugin in selects:
        chosen = plugin.select(unit, chosen)
    return chosen


_Plugin = TypeVar("_Plugin", Filter, Score, Select)


def merge_profile(default: Profile, registry: Registry, wanted: Plugins) -> Profile:
    """The default profile with a SchedulingProfile's changes: drop the disabled, append the enabled in order.

    Raises FrameworkError for a plugin that is unknown at its point or listed twice: a profile with a mistake schedules
    nothing rather than something else than asked for.
    """
    return Profile(
        filters=_merged("filter", default.filters, registry.filters, wanted.filter),
        scores=_merged("score", default.scores, registry.scores, wanted.score),
        selects=_merged("select", default.selects, registry.selects, wanted.select),
        replicas=default.replicas,
    )


def _merged(
    point: str, default: Sequence[_Plugin], known: Mapping[str, _Plugin], wanted: PluginSet
) -> tuple[_Plugin, ...]:
    disabled = {plugin.name for plugin in wanted.disabled}
    merged = [] if "*" in disabled else [plugin for plugin in default if plugin.name not in disabled]
    for plugin in wanted.enabled:
        if plugin.name not in known:
            raise FrameworkError(f"there is no {point} plugin {plugin.name!r}")
        if any(present.name == plugin.name for present in merged):
            raise FrameworkError(f"{point} plugin {plugin.name!r} is enabled twice")
        merged.append(known[plugin.name])
    return tuple(merged)
