"""APIResources: a cluster must serve the object's group, version and kind."""

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.scheduling.framework import Always, Filter
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) didn't support this APIVersion"
REMEDY = "a cluster that serves this group, version and kind: install the CRD there, or upgrade the cluster"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    return fleet.serving((unit.group, unit.version, unit.kind))


FILTER = Filter("APIResources", feasible, Always(REASON), remedy=REMEDY)
