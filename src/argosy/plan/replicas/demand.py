"""Demand: what one workload wants of its candidate clusters, as columns, and how to get there from what runs today.

A planner says only how it fills clusters up to a total (`Fill`). Shared by all planners: minimums come first, maximums and
limited capacity are never exceeded, replicas that a cluster was seen not to run go elsewhere, and with `avoid_disruption`
the plan starts from what runs today: scaling in only stops replicas, scaling out only starts them.

All columns are aligned with one another; the caller knows which clusters they stand for. Sums stay within 64 bits for
totals up to MOST_REPLICAS.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, cast

import numpy as np

from argosy.fleet.snapshot import LARGEST, Column, Fleet, Rows
from argosy.kube.taints import NO_SCHEDULE
from argosy.plan.scheduling.framework import FrameworkError
from argosy.plan.scheduling.unit import Unit

__all__ = [
    "MOST_REPLICAS",
    "Demand",
    "Fill",
    "demand_of",
    "estimated_capacity",
    "planned",
    "pods_assured",
    "pods_free",
    "replicas_today",
    "steps",
    "without_moves",
]

MOST_REPLICAS: Final = 2**47
"""Far beyond what Kubernetes counts (2**31); sums over ten thousands of clusters still fit a column."""

Fill = Callable[[int, Column, Column], Column]
"""(total, floors, ceilings) → how many each cluster gets: floors first, nowhere above the ceiling, and as much of the total
as fits. Floors are never above ceilings."""


class Demand(NamedTuple):
    """`most`, `limited` and `estimated` are LARGEST if unknown or unlimited."""

    total: int
    #: What each cluster was told to run.
    current: Column
    least: Column
    most: Column
    #: Hard limit: set by the user.
    limited: Column
    #: Soft limit: what the cluster was seen to be able to run.
    estimated: Column
    avoid_disruption: bool = True
    keep_unschedulable: bool = False

    @property
    def ceilings(self) -> Column:
        """What each cluster may be told to run."""
        return np.minimum(self.most, self.limited)

    @property
    def room(self) -> Column:
        """What each cluster may be told to run and is able to run."""
        return np.minimum(self.ceilings, self.estimated)

    @property
    def present(self) -> Column:
        """What runs today, as far as the cluster can hold it."""
        return np.minimum(np.minimum(self.current, self.limited), self.estimated)

    @property
    def estimates(self) -> bool:
        """Whether any cluster was seen to lack room."""
        return bool((self.estimated < LARGEST).any())


def demand_of(unit: Unit, fleet: Fleet, rows: Rows) -> Demand:
    """What the unit wants of the clusters at these rows. Raises FrameworkError for numbers out of range."""
    total = max(unit.desired_replicas or 0, 0)
    if total > MOST_REPLICAS:
        raise FrameworkError(f"{total} replicas are more than can be divided")
    current = _running(unit, fleet, rows)
    most = _stated(fleet, rows, unit.max_replicas, LARGEST)
    # A cluster with an untolerated NoSchedule taint, or closed by a rule, is here only because it runs some replicas: it gets no
    # more.
    repelled = fleet.taints.untolerated(unit.tolerations, NO_SCHEDULE)[rows]
    if unit.closed:
        repelled = repelled | fleet.mask_of(unit.closed)[rows]
    if repelled.any():
        most = np.where(repelled, np.minimum(most, current), most)
    if fleet.ready is not fleet.everyone and not _grows(unit, total):
        # Replicas started in an unready cluster may never run: nothing is stopped elsewhere in their favour, as long as other
        # clusters can take them.
        ready_alone = np.where(fleet.ready[rows], most, np.minimum(most, current))
        if int(np.minimum(ready_alone, total).sum()) >= total:
            most = ready_alone
    least = _stated(fleet, rows, unit.min_replicas, 0)
    if unit.rules.within_available:
        holds = current + pods_assured(unit, fleet, rows)
        # A minimum is not started where it does not fit.
        least, most = np.minimum(least, holds), np.minimum(most, holds)
        if unit.avoid_disruption and int(current.sum()) <= total:
            # A full cluster's share is what it runs: the others have room only for the rest.
            least = np.maximum(least, np.minimum(current, most))
    limited = unit.applied_migration.limited_capacity if unit.applied_migration is not None else {}
    return Demand(
        total,
        current,
        least,
        most,
        _stated(fleet, rows, _not_negative(limited), LARGEST),
        _stated(fleet, rows, estimated_capacity(unit), LARGEST),
        unit.avoid_disruption,
        unit.keep_unschedulable,
    )


def pods_free(unit: Unit, fleet: Fleet, rows: Rows) -> Column:
    """How many more of its pods each cluster has room for, by what a pod requests."""
    pods: Column = np.full(len(rows), MOST_REPLICAS, dtype=np.int64)
    for resource, amount in unit.pod_request.amounts.items():
        pods = np.minimum(pods, np.maximum(fleet.free(resource)[rows], 0) // amount)
    return pods


def pods_assured(unit: Unit, fleet: Fleet, rows: Rows) -> Column:
    """The same, by figures that are current: where they are old, nobody knows of any room."""
    pods = pods_free(unit, fleet, rows)
    return np.where(fleet.stale[rows], 0, pods) if fleet.stale.any() else pods


def _stated(fleet: Fleet, rows: Rows, numbers: Mapping[str, int], default: int) -> Column:
    """Most of these settings are set for no cluster."""
    if numbers:
        return fleet.column(numbers, default)[rows]
    return (fleet.zeros if default == 0 else fleet.unlimited)[: len(rows)]


def _running(unit: Unit, fleet: Fleet, rows: Rows) -> Column:
    try:
        return fleet.column(cast(Mapping[str, int], unit.current))[rows]
    except TypeError:  # a cluster placed without a number, too rare to check for first
        return fleet.column(replicas_today(unit))[rows]


def _grows(unit: Unit, total: int) -> bool:
    return sum(replicas_today(unit).values()) < total


def replicas_today(unit: Unit) -> Mapping[str, int]:
    """What each cluster was told to run. A cluster placed without a number is duplicated: it runs the whole count."""
    total = max(unit.desired_replicas or 0, 0)
    return {name: total if number is None else number for name, number in unit.current.items()}


def estimated_capacity(unit: Unit) -> dict[str, int]:
    """What clusters were seen to be able to run, if auto migration is on."""
    info = unit.migration_info if unit.auto_migration else None
    return {} if info is None else _not_negative(info.estimated_capacity)


def _not_negative(capacities: Mapping[str, int]) -> dict[str, int]:
    """Drops negative numbers: annotations may contain anything."""
    return {name: capacity for name, capacity in capacities.items() if capacity >= 0}


def planned(demand: Demand, fill: Fill) -> tuple[Column, Column]:
    """Replicas and overflow. Overflow are replicas that stay in a cluster although it was seen not to run them.

    Without `avoid_disruption` all overflow stays, even if it should not be kept: dropping it would raise the estimate again,
    the next plan would put the replicas back, and the two plans would alternate forever.
    """
    if not demand.estimates:
        nothing = np.zeros_like(demand.current)
        return (without_moves(demand, fill) if demand.avoid_disruption else _desired(demand, fill)), nothing
    ceilings = demand.ceilings
    desired = _desired(demand, fill)
    unhindered = fill(demand.total, np.minimum(demand.least, ceilings), ceilings)
    overflow = np.maximum(unhindered - demand.estimated, 0)
    if not demand.avoid_disruption:
        return desired, overflow
    if not demand.keep_unschedulable:
        overflow = np.minimum(overflow, demand.total - int(desired.sum()))
    return without_moves(demand, fill), overflow


def _desired(demand: Demand, fill: Fill) -> Column:
    """The division, whatever runs today."""
    room = demand.room
    return fill(demand.total, np.minimum(demand.least, room), room)


def without_moves(demand: Demand, fill: Fill) -> Column:
    """The total, as far as it can be reached from what runs today without moving replicas.

    Scaling in first stops replicas beyond their bounds, scaling out first starts those missing to a minimum. Bounds alone stop
    nothing: a cluster above its maximum keeps its replicas until there is surplus.
    """
    total, present, room = demand.total, demand.present, demand.room
    running = int(present.sum())
    if running == total:
        return present
    floors = np.minimum(demand.least, room)
    if running > total:
        within = np.minimum(present, room)
        if int(within.sum()) >= total:
            return fill(total, np.minimum(floors, within), within)
        return fill(total, within, present)
    served = np.maximum(present, floors)
    if int(served.sum()) <= total:
        return fill(total, served, np.maximum(served, room))
    return fill(total, present, served)


def steps(unit: Unit, demand: Demand) -> tuple[str, ...]:
    """What the planner did, for explanations."""
    if not demand.avoid_disruption:
        return (f"{demand.total} replicas divided afresh: replicas may move",)
    everywhere = unit.current.values()
    running = sum(replicas_today(unit).values() if None in everywhere else cast(Iterable[int], everywhere))
    elsewhere = running - int(demand.current.sum())
    leaving = (f"{elsewhere} replicas run in clusters that were not chosen: they leave",) if elsewhere > 0 else ()
    return (*leaving, *_change_in_words(demand))


def _change_in_words(demand: Demand) -> tuple[str, ...]:
    running = int(demand.present.sum())
    if running == demand.total:
        return (f"{running} replicas run, as many as wanted: nothing starts, stops or moves",)
    change = "start" if running < demand.total else "stop"
    return (f"{running} replicas run, {demand.total} are wanted: {abs(demand.total - running)} {change}, none moves",)
