"""Pause: nothing is written to members for one object, one cluster, or the whole fleet; everything else continues.

Set by the annotation `argosy.io/paused: "true"` on a source, on a FederatedCluster, or on the system namespace.
"""

from collections.abc import Mapping
from typing import Any

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.kube.informer import Change

__all__ = ["Pause", "pause_changed"]


class Pause:
    def __init__(self, caches: Caches):
        self._caches = caches

    def fleet(self) -> bool:
        """Also while unknown; loops start only when it is known."""
        namespace = self._caches.system.get(keys.SYSTEM_NAMESPACE)
        return not self._caches.system.has_synced or (namespace is not None and _says(namespace.metadata.annotations))

    def cluster(self, cluster: FederatedCluster) -> bool:
        return _says(cluster.metadata.annotations)

    def object(self, federated_annotations: Mapping[str, str]) -> bool:
        return _says(federated_annotations)


def pause_changed(change: Change[Any]) -> bool:
    """Whether an object was paused or resumed."""
    before, after = (each.metadata.annotations.get(keys.PAUSED) if each else None for each in (change.old, change.new))
    return bool(before != after)


def _says(annotations: Mapping[str, str]) -> bool:
    return annotations.get(keys.PAUSED) == "true"
