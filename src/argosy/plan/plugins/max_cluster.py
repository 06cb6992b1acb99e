"""MaxCluster: at most so many clusters, the best ones."""

from collections.abc import Sequence

from argosy.plan.framework import ClusterScore, FrameworkError, Select
from argosy.plan.unit import Unit

REASON = "max cluster is less than 0"


def select(unit: Unit, scored: Sequence[ClusterScore]) -> list[ClusterScore]:
    """The order that came in is kept among equals."""
    if unit.max_clusters is not None and unit.max_clusters < 0:
        raise FrameworkError(REASON)
    return sorted(scored, key=lambda item: -item.score)[: unit.max_clusters]


SELECT = Select("MaxCluster", select)
