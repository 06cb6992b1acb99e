"""Unmergeable: statuses cannot be put together, and it is known whose are to blame: alone, theirs fails too."""

from collections.abc import Callable, Mapping

import msgspec

from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.kinds.observation import Aggregation

__all__ = ["Unmergeable", "to_blame"]


class Unmergeable(ValueError):
    def __init__(self, clusters: Mapping[str, str]):
        super().__init__(", ".join(f"{name}: {why}" for name, why in sorted(clusters.items())))
        self.clusters = clusters


def to_blame(aggregate: Callable[[Aggregation], Json | None], aggregation: Aggregation) -> dict[str, str]:
    """The clusters whose status alone cannot be merged, and why."""
    found = {}
    for each in aggregation.present:
        try:
            aggregate(msgspec.structs.replace(aggregation, observations=[each]))
        except MISSHAPEN as error:
            found[each.cluster] = f"its status cannot be understood: {error}"[:300]
    return found
