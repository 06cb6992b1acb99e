"""ClusterReady: an unready cluster gets no new objects; what runs there stays."""

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.scheduling.framework import Always, Filter
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) were unready"
REMEDY = "the cluster must become ready: see its conditions with `argosy status`"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    if fleet.ready is fleet.everyone:
        return fleet.everyone
    return fleet.ready | fleet.mask_of(unit.current)


FILTER = Filter("ClusterReady", feasible, Always(REASON), remedy=REMEDY)
