"""PrioritySort: the order of clusters, by configured priority where there is one, else by score."""

from collections.abc import Sequence

from argosy.api import keys
from argosy.plan.framework import ClusterScore, Select
from argosy.plan.unit import Unit


def select(unit: Unit, scored: Sequence[ClusterScore]) -> list[ClusterScore]:
    """As soon as one cluster has a priority, scores no longer matter. Ties by name."""
    ranked = list(scored)
    if unit.priorities or (unit.divides and unit.replicas_strategy == keys.BINPACK):
        ranked = [ClusterScore(item.cluster, unit.priorities.get(item.cluster, 0)) for item in scored]
    return sorted(ranked, key=lambda item: (-item.score, item.cluster))


SELECT = Select("PrioritySort", select)
