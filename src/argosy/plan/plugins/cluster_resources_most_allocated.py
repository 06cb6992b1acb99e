"""ClusterResourcesMostAllocated: prefer clusters that are in use already, so that others can be emptied."""

import numpy as np

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.plugins.allocation import allocations
from argosy.plan.plugins.cluster_resources_least_allocated import WEIGHTS
from argosy.plan.scheduling.framework import MAX_SCORE, Score
from argosy.plan.scheduling.unit import Unit


def score(unit: Unit, fleet: Fleet) -> Column:
    """The percentage in use of each resource, averaged by weight; integer division throughout."""
    total = np.zeros(len(fleet), dtype=np.int64)
    weights = 0
    for resource, allocatable, requested in allocations(unit, fleet):
        weight = WEIGHTS.get(resource, 1)
        used = np.where(requested > allocatable, 0, requested)
        total += weight * (used * MAX_SCORE // np.maximum(allocatable, 1))
        weights += weight
    return total // weights


SCORE = Score("ClusterResourcesMostAllocated", score)
