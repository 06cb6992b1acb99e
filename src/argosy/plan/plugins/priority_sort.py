"""PrioritySort: the order of clusters, by configured priority where there is one, else by score."""

from argosy.api import keys
from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import Ranked, Select, by_score
from argosy.plan.scheduling.unit import Unit


def select(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
    """If any cluster has a priority, scores do not matter. Ties are broken by name, which is the order of rows."""
    rows, scores = ranked
    if unit.priorities or (unit.divides and unit.replicas_strategy == keys.BINPACK):
        scores = fleet.column(unit.priorities)[rows]
    order = by_score(rows, scores)
    return Ranked(rows[order], scores[order])


SELECT = Select("PrioritySort", select)
