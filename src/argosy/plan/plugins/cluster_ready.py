"""ClusterReady: nothing new goes to a cluster that is not ready; what runs there stays."""

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.framework import Filter
from argosy.plan.unit import Unit

REASON = "cluster(s) were unready"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    return fleet.ready | fleet.mask_of(unit.current)


def reason(unit: Unit, fleet: Fleet, row: int) -> str:
    return REASON


FILTER = Filter("ClusterReady", feasible, reason)
