"""Schedule: which clusters run an object, and with how many replicas.

Pure: a unit and a fleet in, a Decision out, the same for the same inputs. It never removes an object only because nothing
fits: if no cluster fits, or the plan would leave no cluster, the current placement stays and the Decision says why. A
divided workload that is scaled to 0 keeps its objects; a sticky one keeps its clusters and still scales.

`decide` yields a question wherever the profile has a remote plugin, and is sent the answer.
"""

from collections.abc import Callable, Generator, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from argosy.api.types import SchedulingProfile
from argosy.fleet.snapshot import Column, Fleet, Rows
from argosy.plan.plugins import DEFAULT_PROFILE, IN_TREE
from argosy.plan.plugins.rules import spread_constraints
from argosy.plan.scheduling.evaluation import Evaluation, evaluate, without_remote_plugins
from argosy.plan.scheduling.framework import (
    Ask,
    Division,
    Filtered,
    FrameworkError,
    Profile,
    Ranked,
    Remote,
    Replicas,
    Reply,
    Scored,
    asked_to_divide,
)
from argosy.plan.scheduling.profile import Registry, merge_profile
from argosy.plan.scheduling.rules import NO_RULES
from argosy.plan.scheduling.unit import Unit
from argosy.plan.scheduling.waiting import NOTHING_WAITS, Waiting, closed_clusters, sum_of, waiting_of

__all__ = ["DEFAULT", "Decision", "decide", "profile_of", "schedule"]

T = TypeVar("T")

DEFAULT = DEFAULT_PROFILE

NO_REPLICAS_ASSIGNED = "no cluster may take any of the {total} replicas: weights, maximums or capacities are 0"
NO_CLUSTER_ALLOWED = "maxClusters is 0: the object is placed nowhere"
NOTHING_TO_DIVIDE = "0 replicas are wanted and the object was not placed before"
SHARES_KEPT = "clusters keep the ordinals or completions they have, and the others get the rest"


class Decision(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What was decided, and why: arrays over the considered clusters, turned into names on demand.

    `placements` are the clusters from now on with their replicas, None if the object is duplicated. If `unschedulable`, they
    are the current ones, kept because nothing better was found, and `message` says what is missing.
    """

    unit: Unit
    #: The clusters that were considered; all rows are rows of it.
    fleet: Fleet
    unschedulable: bool = False
    message: str = ""
    sticky: bool = False
    #: Replicas that found no cluster because of maximums and capacities.
    shortfall: int = 0
    #: Those of them that are started as soon as a cluster has room, or a rule allows them.
    waiting: int = 0

    # How the decision was made; None for steps that were not reached.
    evaluation: Evaluation | None = None
    #: For the rows of `ranked`.
    division: Division | None = None

    # The result: either rows and numbers, or what is kept (including clusters the fleet does not know).
    rows: Rows | None = None
    #: None if the object is duplicated.
    replicas: Column | None = None
    kept: Mapping[str, int | None] = {}

    @property
    def filtered(self) -> Filtered | None:
        return None if self.evaluation is None else self.evaluation.filtered

    @property
    def scored(self) -> Scored | None:
        return None if self.evaluation is None else self.evaluation.scored

    @property
    def ranked(self) -> Ranked | None:
        """The selected clusters, best first, including those that got no replicas."""
        return None if self.evaluation is None else self.evaluation.ranked

    @cached_property
    def placements(self) -> dict[str, int | None]:
        if self.rows is None:
            return {name: self.kept[name] for name in sorted(self.kept)}
        names = self.fleet.names_of(self.rows)
        return dict.fromkeys(names) if self.replicas is None else dict(zip(names, self.replicas.tolist(), strict=True))

    def with_placements(self, placements: Mapping[str, int | None]) -> "Decision":
        """The same decision with the numbers that the object's kind allows."""
        if placements == self.placements:
            return self
        division = self.division
        if division is not None:
            division = msgspec.structs.replace(division, steps=(*division.steps, SHARES_KEPT))
        return msgspec.structs.replace(self, rows=None, replicas=None, kept=placements, division=division)

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(self.placements)

    @cached_property
    def rejected(self) -> dict[str, tuple[str, str]]:
        """For each refused cluster: the first filter it failed, and the reason."""
        if self.filtered is None:
            return {}
        refused: dict[str, tuple[str, str]] = {}
        for position in self.filtered.refused_by():
            rows, reasons = self.filtered.reasons(self.unit, self.fleet, position)
            plugin = self.filtered.plugins[position].name
            for name, code in zip(self.fleet.names_of(rows), reasons.codes.tolist(), strict=True):
                refused[name] = (plugin, reasons.texts[code])
        return refused

    @cached_property
    def scores(self) -> dict[str, int]:
        """The sum of all scores of each cluster that passed the filters."""
        if self.scored is None:
            return {}
        rows, scores = self.scored.ranked
        return dict(zip(self.fleet.names_of(rows), scores.tolist(), strict=True))

    @cached_property
    def selected(self) -> tuple[str, ...]:
        """The selected clusters, best first, including those that got no replicas."""
        if self.sticky:
            return self.clusters
        return () if self.ranked is None else tuple(self.fleet.names_of(self.ranked.rows))

    @cached_property
    def overflow(self) -> dict[str, int]:
        """Replicas kept in a cluster although it could not run them."""
        if self.division is None or self.ranked is None or self.unschedulable:
            return {}
        kept = np.flatnonzero(self.division.overflow > 0)
        names = self.fleet.names_of(self.ranked.rows[kept])
        return dict(zip(names, self.division.overflow[kept].tolist(), strict=True))


def profile_of(profile: SchedulingProfile | None, registry: Registry = IN_TREE) -> Profile:
    """The plugins of a policy's profile. Raises FrameworkError if it names one that does not exist."""
    return DEFAULT if profile is None else merge_profile(DEFAULT, registry, profile.spec)


def schedule(unit: Unit, fleet: Fleet, profile: Profile = DEFAULT) -> Decision:
    """Decide where a unit runs without remote plugins: a profile that names some makes the decision fail."""
    return without_remote_plugins(decide(unit, fleet, profile))


def decide(unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Decision]:
    """Decide where a unit runs. Considers the joined members of the fleet."""
    fleet = fleet.joined_only()
    try:
        if unit.unreadable and unit.current:
            raise FrameworkError(unit.unreadable)
        if unit.rules is not NO_RULES:
            unit = msgspec.structs.replace(unit, closed=closed_clusters(unit, fleet, profile.filters))
        if unit.sticky and unit.current:
            kept = yield from _planned(partial(_scaled_in_place, unit, fleet), profile)
            return Decision(unit=unit, fleet=fleet, sticky=True, **kept.told())
        return (yield from _decided(unit, fleet, profile))
    except FrameworkError as error:
        message = str(error)
    try:
        kept = yield from _planned(partial(_held, unit, fleet), profile)
    except FrameworkError:
        kept = _Kept(unit.current)  # a planner that failed cannot scale either
    return Decision(unit=unit, fleet=fleet, unschedulable=True, **kept.told(message))


def _decided(unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Decision]:
    evaluation = yield from evaluate(unit, fleet, profile)
    ranked = evaluation.ranked
    if ranked is None:
        kept = yield from _planned(partial(_held, unit, fleet), profile)
        told = kept.told(evaluation.filtered.message(unit, fleet))
        return Decision(unit=unit, fleet=fleet, unschedulable=True, evaluation=evaluation, **told)
    if not len(ranked.rows):
        return Decision(unit=unit, fleet=fleet, evaluation=evaluation, message=NO_CLUSTER_ALLOWED)
    if not unit.divides:
        return Decision(unit=unit, fleet=fleet, evaluation=evaluation, rows=np.sort(ranked.rows))
    return (yield from _planned(partial(_divided, unit, fleet, evaluation, ranked), profile))


class _Unanswered(Exception):
    """A remote planner must be asked first."""

    def __init__(self, ask: Ask):
        super().__init__(ask.plugin.name)
        self.ask = ask


class _Answered:
    """The answers of remote planners so far."""

    def __init__(self) -> None:
        self._known: list[tuple[Ask, Reply]] = []

    def add(self, ask: Ask, reply: Reply) -> None:
        self._known.append((ask, reply))

    def divide(self, plugin: Remote, unit: Unit, fleet: Fleet, rows: Rows) -> Division:
        for ask, reply in self._known:
            if ask.plugin == plugin and np.array_equal(ask.ranked.rows, rows) and ask.unit == unit:
                return asked_to_divide(plugin, unit, fleet, rows, reply)
        raise _Unanswered(Ask(plugin, unit, fleet, Ranked(rows, np.zeros(len(rows), dtype=np.int64))))


def _planned(work: Callable[[Profile], T], profile: Profile) -> Generator[Ask, Reply, T]:
    """Runs work that divides replicas. When a remote planner has answered, the work runs again with its answer."""
    if not any(isinstance(plugin, Remote) for plugin in profile.replicas.values()):
        return work(profile)
    answered = _Answered()
    planners = {
        strategy: Replicas(plugin.name, partial(answered.divide, plugin)) if isinstance(plugin, Remote) else plugin
        for strategy, plugin in profile.replicas.items()
    }
    here = msgspec.structs.replace(profile, replicas=planners)
    while True:
        try:
            return work(here)
        except _Unanswered as unanswered:
            answered.add(unanswered.ask, (yield unanswered.ask))


def _divided(unit: Unit, fleet: Fleet, evaluation: Evaluation, ranked: Ranked, profile: Profile) -> Decision:
    total = unit.desired_replicas or 0
    if total <= 0:
        return _scaled_to_zero(unit, fleet, evaluation, ranked)
    divide = _replicas_plugin(unit, profile).divide
    if unit.rules.spread:
        divide = partial(spread_constraints.within_bounds, divide)
    division = divide(unit, fleet, ranked.rows)
    placed = dict(zip(fleet.names_of(ranked.rows), division.replicas.tolist(), strict=True))
    waiting = waiting_of(unit, placed, lambda asked: int(divide(asked, fleet, ranked.rows).replicas.sum()))
    numbers = division.replicas + division.overflow
    # In the order of rows, which is the order of names; a cluster without replicas gets no object.
    of_fleet = np.zeros(len(fleet), dtype=np.int64)
    of_fleet[ranked.rows] = numbers
    rows = (of_fleet > 0).nonzero()[0]
    if not len(rows):
        return Decision(
            unit=unit,
            fleet=fleet,
            evaluation=evaluation,
            kept=_held(unit, fleet, profile).placements,
            unschedulable=True,
            message=waiting.message or NO_REPLICAS_ASSIGNED.format(total=total),
            division=division,
            shortfall=total,
            waiting=waiting.replicas,
        )
    return Decision(
        unit=unit,
        fleet=fleet,
        evaluation=evaluation,
        rows=rows,
        replicas=of_fleet[rows],
        division=division,
        shortfall=max(total - int(division.replicas.sum()), 0),
        message=waiting.message,
        waiting=waiting.replicas,
    )


def _scaled_to_zero(unit: Unit, fleet: Fleet, evaluation: Evaluation, ranked: Ranked) -> Decision:
    """The objects stay where they are, with 0 replicas, so that scaling up again finds them there."""
    if not unit.current:
        return Decision(unit=unit, fleet=fleet, evaluation=evaluation, message=NOTHING_TO_DIVIDE)
    rows = np.sort(ranked.rows)
    staying = rows[fleet.mask_of(unit.current)[rows]]
    rows = staying if len(staying) else rows
    replicas = np.zeros(len(rows), dtype=np.int64)
    return Decision(unit=unit, fleet=fleet, evaluation=evaluation, rows=rows, replicas=replicas)


class _Kept(NamedTuple):
    """The clusters an object stays in, the replicas that are missing there, and those of them that wait."""

    placements: Mapping[str, int | None]
    missing: int = 0
    waiting: Waiting = NOTHING_WAITS

    def told(self, message: str = "") -> dict[str, Any]:
        """The fields of a decision. The message also says how many replicas wait."""
        return {
            "kept": self.placements,
            "message": "; ".join(text for text in (message, self.waiting.message) if text),
            "shortfall": self.missing,
            "waiting": self.waiting.replicas,
        }


def _held(unit: Unit, fleet: Fleet, profile: Profile) -> _Kept:
    """The current placement, if there is no better one; only a changed replica count is applied."""
    numbers = unit.current.values()
    running = sum(number for number in numbers if number is not None)
    if not unit.divides or (running == unit.desired_replicas and None not in numbers):
        return _Kept(unit.current)
    return _scaled_in_place(unit, fleet, profile)


def _scaled_in_place(unit: Unit, fleet: Fleet, profile: Profile) -> _Kept:
    """The same clusters; in Divide mode the replicas follow the desired count without moving between them."""
    if not unit.divides:
        return _Kept(dict.fromkeys(unit.current))
    kept = _divided_in_place(unit, fleet, profile)
    missing = max((unit.desired_replicas or 0) - sum_of(kept), 0) if kept else 0
    waiting = waiting_of(unit, kept, lambda asked: sum_of(_divided_in_place(asked, fleet, profile)))
    return _Kept(kept, missing, waiting if kept else NOTHING_WAITS)


def _divided_in_place(unit: Unit, fleet: Fleet, profile: Profile) -> Mapping[str, int | None]:
    """A cluster the fleet does not know keeps its number, and that number counts: an unknown cluster is no reason to start its
    replicas elsewhere.
    """
    rows = fleet.rows_of(sorted(unit.current, key=lambda name: (-unit.priorities.get(name, 0), name)))
    if not len(rows):
        return unit.current
    known = fleet.names_of(rows)
    unknown = {name: number for name, number in unit.current.items() if name not in fleet}
    total = max((unit.desired_replicas or 0) - sum_of(unknown), 0)
    weights = {name: unit.weights.get(name, 0) for name in known} if unit.weights else {}
    if weights and not any(weights.values()):
        weights = dict.fromkeys(known, 1)
    inside = msgspec.structs.replace(unit, desired_replicas=total, avoid_disruption=True, weights=weights)
    division = _replicas_plugin(unit, profile).divide(inside, fleet, rows)
    return {**unknown, **dict(zip(known, (division.replicas + division.overflow).tolist(), strict=True))}


def _replicas_plugin(unit: Unit, profile: Profile) -> Replicas:
    plugin = profile.replicas.get(unit.replicas_strategy)
    if not isinstance(plugin, Replicas):
        raise FrameworkError(f"there is no replicas plugin for strategy {unit.replicas_strategy!r}")
    return plugin
