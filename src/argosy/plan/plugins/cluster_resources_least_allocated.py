"""ClusterResourcesLeastAllocated: prefer clusters with the most free resources."""

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.plugins.allocation import Allocation, asked, weighted_percentage
from argosy.plan.scheduling.framework import Score
from argosy.plan.scheduling.unit import Unit


def score(unit: Unit, fleet: Fleet) -> Column:
    return fleet.remembered(("least", asked(unit)), lambda: weighted_percentage(unit, fleet, _left))


def _left(allocation: Allocation) -> Column:
    return allocation.allocatable - allocation.requested


SCORE = Score("ClusterResourcesLeastAllocated", score)
