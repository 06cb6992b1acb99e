"""ClusterResourcesMostAllocated: prefer clusters that are in use already, so that others can be emptied."""

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.plugins.allocation import weighted_percentage
from argosy.plan.scheduling.framework import Score
from argosy.plan.scheduling.unit import Unit


def score(unit: Unit, fleet: Fleet) -> Column:
    return weighted_percentage(unit, fleet, lambda allocation: allocation.requested)


SCORE = Score("ClusterResourcesMostAllocated", score)
