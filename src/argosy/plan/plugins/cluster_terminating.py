"""ClusterTerminating: a cluster that is leaving gets no objects and keeps none."""

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.scheduling.framework import Always, Filter
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) were terminating"
REMEDY = "the cluster is leaving the federation: it would have to join again"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    return fleet.staying


FILTER = Filter("ClusterTerminating", feasible, Always(REASON), remedy=REMEDY)
