"""ClusterResourcesBalancedAllocation: prefer clusters whose resources are evenly used."""

import numpy as np

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.plugins.allocation import allocations, asked
from argosy.plan.scheduling.framework import MAX_SCORE, Score
from argosy.plan.scheduling.unit import Unit


def score(unit: Unit, fleet: Fleet) -> Column:
    return fleet.remembered(("balanced", asked(unit)), lambda: _score(unit, fleet))


def _score(unit: Unit, fleet: Fleet) -> Column:
    """100 if all resources are used to the same degree, less the more they differ, 0 if one is used up."""
    used = np.array(
        [
            np.where(item.allocatable > 0, item.requested / np.maximum(item.allocatable, 1), 1.0)
            for item in allocations(unit, fleet)
        ]
    )
    if len(used) == 2:
        spread = np.abs(used[0] - used[1]) / 2
    else:
        spread = np.sqrt(((used - used.mean(axis=0)) ** 2).sum(axis=0) / len(used))
    scores: Column = np.where((used >= 1).any(axis=0), 0, (1 - spread) * MAX_SCORE).astype(np.int64)
    return scores


SCORE = Score("ClusterResourcesBalancedAllocation", score)
