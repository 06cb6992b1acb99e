"""ClusterResourcesLeastAllocated: prefer clusters with the most left."""

import numpy as np

from argosy.fleet.snapshot import GPU, Column, Fleet
from argosy.plan.plugins.allocation import allocations, asked
from argosy.plan.scheduling.framework import MAX_SCORE, Score
from argosy.plan.scheduling.unit import Unit

#: A GPU left idle costs more than a core.
WEIGHTS = {GPU: 4}


def score(unit: Unit, fleet: Fleet) -> Column:
    return fleet.remembered(("least", asked(unit)), lambda: _score(unit, fleet))


def _score(unit: Unit, fleet: Fleet) -> Column:
    """The percentage left of each resource, averaged by weight; integer division throughout."""
    total = np.zeros(len(fleet), dtype=np.int64)
    weights = 0
    for resource, allocatable, requested in allocations(unit, fleet):
        weight = WEIGHTS.get(resource, 1)
        left = np.where(requested > allocatable, 0, allocatable - requested)
        total += weight * (left * MAX_SCORE // np.maximum(allocatable, 1))
        weights += weight
    return total // weights


SCORE = Score("ClusterResourcesLeastAllocated", score)
