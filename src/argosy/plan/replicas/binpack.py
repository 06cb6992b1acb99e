"""The bin-pack planner: fill one cluster after another, in the order of preference.

The columns come in that order. `scheduled` is what each cluster was seen to run. While pods are still being scheduled, no
new plan is made; surplus kept for stuck pods is removed once all pods have a node.
"""

from collections.abc import Mapping

import numpy as np

from argosy.fleet.snapshot import Column
from argosy.plan.replicas.demand import Demand, without_moves
from argosy.plan.replicas.fill import before, fill_in_order

__all__ = ["bin_pack", "desired", "filled", "is_settled"]


def is_settled(scheduled: Mapping[str, int], estimated: Mapping[str, int], current: Mapping[str, int]) -> bool:
    """Whether each cluster runs all that it can or was told to; until then, nobody knows which clusters lack room."""
    return all(number == estimated.get(name, current.get(name, 0)) for name, number in scheduled.items())


def bin_pack(demand: Demand, scheduled: Column) -> tuple[Column, Column]:
    """Replicas and overflow. `scheduled` is 0 if nothing is known."""
    plan, overflow = desired(demand)
    if not demand.avoid_disruption:
        return plan, overflow
    if not demand.keep_unschedulable:
        found_home = np.minimum(scheduled, demand.limited)
        missing = demand.total - int(found_home.sum())
        if missing == 0:
            return found_home, np.zeros_like(found_home)
        overflow = np.minimum(overflow, max(missing, 0))
    return without_moves(demand, filled), overflow


def desired(demand: Demand) -> tuple[Column, Column]:
    """Minimums first, then all to the first cluster with room. Overflow: what a cluster would have got beyond its estimate."""
    total, estimated, ceilings, room = demand.total, demand.estimated, demand.ceilings, demand.room
    least = np.minimum(demand.least, room)
    plan = fill_in_order(total, least)
    overflow = np.zeros_like(plan)
    if demand.estimates:
        asked = np.minimum(np.minimum(demand.least, ceilings), np.maximum(total - before(plan), 0))
        overflow = np.maximum(asked - estimated, 0)
    remaining = total - int(plan.sum())
    extra = fill_in_order(remaining, room - plan)
    if demand.estimates:
        asked = np.minimum(plan + np.maximum(remaining - before(extra), 0), ceilings)
        overflow = np.maximum(overflow, asked - estimated)
    return plan + extra, overflow


def filled(total: int, floors: Column, ceilings: Column) -> Column:
    """Floors first, then in order."""
    plan = fill_in_order(total, floors)
    return plan + fill_in_order(total - int(plan.sum()), ceilings - plan)
