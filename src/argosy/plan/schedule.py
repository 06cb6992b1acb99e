"""Schedule: which clusters run an object, and with how many replicas.

Pure: a unit and a fleet in, a Decision out, the same for the same inputs. It never takes an object away for lack of a
better idea: where nothing fits, or the plan would leave no cluster, the current placement stays and the Decision says
why. A workload divided over clusters and scaled to 0 keeps its objects; a sticky one keeps its clusters and still scales.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from argosy.api.types import SchedulingProfile
from argosy.fleet.snapshot import Fleet
from argosy.plan.framework import (
    FrameworkError,
    Profile,
    Replicas,
    merge_profile,
    run_filters,
    run_scores,
    run_selects,
)
from argosy.plan.plugins import DEFAULT_PROFILE, IN_TREE
from argosy.plan.unit import Unit

__all__ = ["DEFAULT", "Decision", "profile_of", "schedule"]

DEFAULT = DEFAULT_PROFILE

NO_REPLICAS_ASSIGNED = "no cluster may take any of the {total} replicas: weights, maximums or capacities are 0"
NO_CLUSTER_ALLOWED = "maxClusters is 0: the object is placed nowhere"
NOTHING_TO_DIVIDE = "0 replicas are wanted and the object was not placed before"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided, and why.

    `placements` is what is to hold from now on: replicas per cluster, None where the object is duplicated. With
    `unschedulable` set it is the placement that stays for want of a better one, and `message` says what is missing.
    """

    placements: dict[str, int | None] = {}
    unschedulable: bool = False
    message: str = ""
    #: For each cluster that was refused: the first filter it failed, and the reason.
    rejected: dict[str, tuple[str, str]] = {}
    scores: dict[str, int] = {}
    #: Clusters that were chosen, best first; those that got no replicas included.
    selected: tuple[str, ...] = ()
    #: Replicas kept in a cluster although it could not run them.
    overflow: dict[str, int] = {}
    #: Replicas that found no cluster because of maximums and capacities.
    shortfall: int = 0
    sticky: bool = False

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(self.placements))


def profile_of(profile: SchedulingProfile | None) -> Profile:
    """The plugins a policy's profile asks for. Raises FrameworkError where it names one that is not there."""
    return DEFAULT if profile is None else merge_profile(DEFAULT, IN_TREE, profile.spec.plugins)


def schedule(unit: Unit, fleet: Fleet, profile: Profile = DEFAULT) -> Decision:
    """Decide where a unit runs. Considers the joined members of the fleet."""
    fleet = fleet.joined_only()
    try:
        if unit.sticky and unit.current:
            return Decision(
                placements=_scaled_in_place(unit, fleet, profile), selected=_order(unit.current), sticky=True
            )
        return _decide(unit, fleet, profile)
    except FrameworkError as error:
        return Decision(placements=dict(unit.current), unschedulable=True, message=str(error))


def _decide(unit: Unit, fleet: Fleet, profile: Profile) -> Decision:
    filtered = run_filters(profile.filters, unit, fleet)
    if not filtered.feasible.any():
        return Decision(
            placements=_held(unit, fleet, profile),
            unschedulable=True,
            message=filtered.message(),
            rejected=filtered.failed,
        )
    scored = run_scores(profile.scores, unit, fleet, filtered.feasible)
    selected = tuple(item.cluster for item in run_selects(profile.selects, unit, scored))
    outline = Decision(rejected=filtered.failed, scores=dict(scored), selected=selected)
    if not selected:
        return msgspec.structs.replace(outline, message=NO_CLUSTER_ALLOWED)
    if not unit.divides:
        return msgspec.structs.replace(outline, placements=dict.fromkeys(_order(selected)))
    return _divided(unit, fleet, profile, outline)


def _divided(unit: Unit, fleet: Fleet, profile: Profile, outline: Decision) -> Decision:
    total = unit.desired_replicas or 0
    if total <= 0:
        return _scaled_to_zero(unit, outline)
    plan = _replicas_plugin(unit, profile).divide(unit, fleet, outline.selected)
    placements: dict[str, int | None] = {
        name: number for name in _order(outline.selected) if (number := plan.total(name)) > 0
    }
    if not placements:
        return msgspec.structs.replace(
            outline,
            placements=_held(unit, fleet, profile),
            unschedulable=True,
            message=NO_REPLICAS_ASSIGNED.format(total=total),
            shortfall=total,
        )
    return msgspec.structs.replace(
        outline,
        placements=placements,
        overflow={name: number for name, number in plan.overflow.items() if number > 0},
        shortfall=max(total - sum(plan.replicas.values()), 0),
    )


def _scaled_to_zero(unit: Unit, outline: Decision) -> Decision:
    """The objects stay where they are, with 0 replicas, so that scaling up again finds them there."""
    if not unit.current:
        return msgspec.structs.replace(outline, message=NOTHING_TO_DIVIDE)
    staying = [name for name in outline.selected if name in unit.current] or outline.selected
    return msgspec.structs.replace(outline, placements=dict.fromkeys(_order(staying), 0))


def _held(unit: Unit, fleet: Fleet, profile: Profile) -> dict[str, int | None]:
    """The current placement, for want of a better one; only a changed replica count is followed."""
    numbers = unit.current.values()
    running = sum(number for number in numbers if number is not None)
    if not unit.divides or (running == unit.desired_replicas and None not in numbers):
        return dict(unit.current)
    return _scaled_in_place(unit, fleet, profile)


def _scaled_in_place(unit: Unit, fleet: Fleet, profile: Profile) -> dict[str, int | None]:
    """The same clusters; in Divide mode the replicas follow the desired count without moving between them.

    A cluster the fleet does not know keeps its number, and that number counts: not knowing a cluster is no reason to
    start its replicas elsewhere.
    """
    if not unit.divides:
        return dict.fromkeys(_order(unit.current))
    known = [name for name in _order(unit.current) if name in fleet]
    unknown = {name: number for name, number in unit.current.items() if name not in fleet}
    if not known:
        return dict(unit.current)
    total = max((unit.desired_replicas or 0) - sum(number or 0 for number in unknown.values()), 0)
    weights = {name: unit.weights.get(name, 0) for name in known} if unit.weights else {}
    if weights and not any(weights.values()):
        weights = dict.fromkeys(known, 1)
    inside = msgspec.structs.replace(unit, desired_replicas=total, avoid_disruption=True, weights=weights)
    plan = _replicas_plugin(unit, profile).divide(inside, fleet, known)
    scaled: dict[str, int | None] = {name: plan.total(name) for name in known}
    return _sorted({**unknown, **scaled})


def _replicas_plugin(unit: Unit, profile: Profile) -> Replicas:
    plugin = profile.replicas.get(unit.replicas_strategy)
    if plugin is None:
        raise FrameworkError(f"there is no replicas plugin for strategy {unit.replicas_strategy!r}")
    return plugin


def _order(names: Iterable[str] | Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _sorted(placements: Mapping[str, int | None]) -> dict[str, int | None]:
    return {name: placements[name] for name in sorted(placements)}
