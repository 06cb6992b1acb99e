"""ClusterResourcesFit: a cluster must have room for one more pod, summed over its nodes. What runs there stays."""

import numpy as np

from argosy.fleet.snapshot import CPU, MEMORY, Fleet, Mask
from argosy.plan.plugins.allocation import allocations
from argosy.plan.scheduling.framework import Filter, Several
from argosy.plan.scheduling.unit import Unit

REASON = "Insufficient {resource}"
REMEDY = "more of these resources free in the cluster, or smaller requests"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    insufficient = _insufficient(unit, fleet)
    if not insufficient:
        return fleet.everyone
    short: Mask = np.logical_or.reduce(list(insufficient.values()))
    return ~short | fleet.mask_of(unit.current)


def _insufficient(unit: Unit, fleet: Fleet) -> dict[str, Mask]:
    """By reason, which clusters have too little of a resource. Nothing is checked without requests."""
    request = unit.request
    if not (request.milli_cpu or request.memory or any(request.scalars.values())):
        return {}
    counted = {CPU, MEMORY, *(name for name, amount in request.scalars.items() if amount > 0)}
    return {
        REASON.format(resource=item.resource): item.allocatable < item.requested
        for item in allocations(unit, fleet)
        if item.resource in counted
    }


FILTER = Filter("ClusterResourcesFit", feasible, Several(_insufficient), remedy=REMEDY)
