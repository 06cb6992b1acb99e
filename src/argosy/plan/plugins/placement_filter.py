"""PlacementFilter: a policy that lists clusters allows no others."""

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.scheduling.framework import Always, Filter
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) were not in placement list"
REMEDY = "the cluster must be in the policy's placement list"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    if not unit.cluster_names:
        return fleet.everyone
    return fleet.mask_of(unit.cluster_names)


FILTER = Filter("PlacementFilter", feasible, Always(REASON), remedy=REMEDY)
