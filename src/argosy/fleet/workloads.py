"""Workloads: which labelled workloads the federation has placed in which clusters, for rules about other workloads.

Counts are kept per namespace and distinct set of labels, so that a question iterates over the label sets of a namespace and not
its workloads. Fed with changes of placements; decisions only read.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from argosy.kube.selectors import LabelSelector

__all__ = ["WorkloadKey", "Workloads"]

_LabelSet = frozenset[tuple[str, str]]


class WorkloadKey(NamedTuple):
    group: str
    kind: str
    namespace: str
    name: str


class _Placed(NamedTuple):
    labels: _LabelSet
    clusters: frozenset[str]


class Workloads:
    """An index that only `set` changes, between decisions."""

    __slots__ = ("_counts", "_placed")

    def __init__(self) -> None:
        self._placed: dict[WorkloadKey, _Placed] = {}
        #: Workloads per cluster, by namespace and labels.
        self._counts: dict[str, dict[_LabelSet, dict[str, int]]] = {}

    def __len__(self) -> int:
        return len(self._placed)

    def set(self, key: WorkloadKey, labels: Mapping[str, str], clusters: Iterable[str]) -> bool:
        """Set the clusters of a workload; none means that it is nowhere. Returns whether that changed."""
        after = _Placed(frozenset(labels.items()), frozenset(clusters))
        before = self._placed.get(key)
        if after == before or (before is None and not after.clusters):
            return False
        if before is not None:
            self._count(key, before, -1)
        if after.clusters:
            self._placed[key] = after
            self._count(key, after, +1)
        else:
            del self._placed[key]
        return True

    def placed(
        self, selector: LabelSelector, namespaces: Iterable[str], *, apart_from: WorkloadKey | None = None
    ) -> dict[str, int]:
        """How many workloads of these namespaces match, by cluster; `apart_from` does not count."""
        asked = frozenset(namespaces)
        total: dict[str, int] = {}
        for namespace in asked:
            for labels, counts in self._counts.get(namespace, {}).items():
                if selector.matches(dict(labels)):
                    for cluster, count in counts.items():
                        total[cluster] = total.get(cluster, 0) + count
        own = self._placed.get(apart_from) if apart_from is not None and apart_from.namespace in asked else None
        if own is not None and selector.matches(dict(own.labels)):
            for cluster in own.clusters:
                total[cluster] -= 1
        return {cluster: count for cluster, count in total.items() if count}

    def _count(self, key: WorkloadKey, placed: _Placed, by: int) -> None:
        counts = self._counts.setdefault(key.namespace, {}).setdefault(placed.labels, {})
        for cluster in placed.clusters:
            counts[cluster] = counts.get(cluster, 0) + by
            if not counts[cluster]:
                del counts[cluster]
        if not counts:
            del self._counts[key.namespace][placed.labels]
            if not self._counts[key.namespace]:
                del self._counts[key.namespace]
