"""PlacementFilter: a policy that lists clusters allows no others."""

import numpy as np

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.framework import Filter
from argosy.plan.unit import Unit

REASON = "cluster(s) were not in placement list"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    if not unit.cluster_names:
        return np.ones(len(fleet), dtype=np.bool_)
    return fleet.mask_of(unit.cluster_names)


def reason(unit: Unit, fleet: Fleet, row: int) -> str:
    return REASON


FILTER = Filter("PlacementFilter", feasible, reason)
