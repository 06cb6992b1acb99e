"""Pause: nothing is written to members for one object, one cluster, or the whole fleet; everything else continues.

Set by the annotation `argosy.io/paused: "true"` on a source, on a FederatedCluster, or on the system namespace. What is under
way ends before its next write: whether it may be sent is asked once more then (`PauseGuard`).
"""

from collections.abc import Mapping
from typing import Any

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.fence import Withheld
from argosy.kube.informer import Change

__all__ = ["Pause", "PauseGuard", "pause_changed"]


class Pause:
    def __init__(self, caches: Caches):
        self._caches = caches

    def fleet(self) -> bool:
        """Also while unknown; loops start only when it is known."""
        namespace = self._caches.system.get(keys.SYSTEM_NAMESPACE)
        return not self._caches.system.has_synced or (namespace is not None and _says(namespace.metadata.annotations))

    def cluster(self, cluster: FederatedCluster) -> bool:
        return _says(cluster.metadata.annotations)

    def object(self, annotations: Mapping[str, str]) -> bool:
        """By the annotations of a source or of its federated object."""
        return _says(annotations)

    def source(self, key: SourceKey, mirrored: Mapping[str, str]) -> bool:
        """Whether nothing of an object is written: the fleet or its source is paused. Without one, what was mirrored counts."""
        source = self._caches.source(key)
        return self.fleet() or _says(source.metadata.annotations if source is not None else mirrored)


class PauseGuard:
    """Withholds writes of one object to one cluster once either is paused."""

    def __init__(self, pause: Pause, caches: Caches, cluster: str, source: SourceKey, mirrored: Mapping[str, str]):
        self._pause = pause
        self._caches = caches
        self._cluster = cluster
        self._source = source
        self._mirrored = mirrored

    def check(self) -> None:
        cluster = self._caches.clusters.get(self._cluster)
        paused = cluster is not None and self._pause.cluster(cluster)
        if paused or self._pause.source(self._source, self._mirrored):
            raise Withheld(f"{self._source} or {self._cluster} is paused")


def pause_changed(change: Change[Any]) -> bool:
    """Whether an object was paused or resumed."""
    before, after = (each.metadata.annotations.get(keys.PAUSED) if each else None for each in (change.old, change.new))
    return bool(before != after)


def _says(annotations: Mapping[str, str]) -> bool:
    return annotations.get(keys.PAUSED) == "true"
