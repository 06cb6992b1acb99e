"""APIResources: a cluster must serve the object's group, version and kind. What runs in one that has not told yet stays there."""

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.scheduling.framework import Always, Filter
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) didn't support this APIVersion"
REMEDY = "a cluster that serves this group, version and kind: install the CRD there, or upgrade the cluster"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    serving = fleet.serving((unit.group, unit.version, unit.kind))
    if serving is fleet.everyone or not unit.current:
        return serving
    return serving | (fleet.undiscovered & fleet.mask_of(unit.current))


FILTER = Filter("APIResources", feasible, Always(REASON), remedy=REMEDY)
