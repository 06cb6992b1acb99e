"""The writes of the clusters loop: finalizers, annotations and the status of a FederatedCluster.

They carry the resourceVersion that was read, and what was written is in the cache at once.
"""

from typing import Any

import msgspec

from argosy.api import conditions as texts
from argosy.api import keys, resources
from argosy.api.types import ClusterCondition, ClusterStatus, FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.kube import mergepatch, timestamps
from argosy.kube.client import Client, Patch

__all__ = ["ClusterWriter"]

_FINALIZERS = (keys.CASCADING_DELETE_FINALIZER, keys.CLUSTER_FINALIZER)


class ClusterWriter:
    def __init__(self, client: Client, caches: Caches):
        self._client = client
        self._caches = caches

    async def with_finalizers(self, cluster: FederatedCluster) -> FederatedCluster:
        missing = [finalizer for finalizer in _FINALIZERS if finalizer not in cluster.metadata.finalizers]
        if not missing:
            return cluster
        return await self._set_finalizers(cluster, sorted({*cluster.metadata.finalizers, *missing}))

    async def without_finalizer(self, cluster: FederatedCluster, finalizer: str) -> FederatedCluster:
        left = [present for present in cluster.metadata.finalizers if present != finalizer]
        return await self._set_finalizers(cluster, left)

    async def _set_finalizers(self, cluster: FederatedCluster, finalizers: list[str]) -> FederatedCluster:
        metadata: dict[str, Any] = {"finalizers": finalizers, "resourceVersion": cluster.metadata.resource_version}
        raw = await self._client.patch(
            resources.FEDERATED_CLUSTERS, cluster.name, {"metadata": metadata}, kind=Patch.MERGE, into=bytes
        )
        if cluster.terminating and not finalizers:  # it is gone, and its deletion event may have come already
            return msgspec.json.decode(raw, type=FederatedCluster)
        return self._remember(raw)

    async def annotated(self, cluster: FederatedCluster, key: str, value: str) -> FederatedCluster:
        if cluster.metadata.annotations.get(key, "") == value:
            return cluster
        metadata = {"annotations": {key: value}, "resourceVersion": cluster.metadata.resource_version}
        raw = await self._client.patch(
            resources.FEDERATED_CLUSTERS, cluster.name, {"metadata": metadata}, kind=Patch.MERGE, into=bytes
        )
        return self._remember(raw)

    async def set_joined(
        self, cluster: FederatedCluster, status: str, reason: str, message: str, performed: bool | None = None
    ) -> None:
        changed = cluster.status
        if performed is not None:
            changed = msgspec.structs.replace(changed, join_performed=performed)
        await self.write_status(cluster, _with(cluster, changed, texts.JOINED, status, reason, message))

    async def not_released(self, cluster: FederatedCluster, why: str) -> None:
        """An attempt to release the member failed. Written each time: whoever may give it up goes by the last attempt."""
        latest = self._caches.clusters.get(cluster.name) or cluster
        failed = _with(latest, latest.status, texts.RELEASED, "False", texts.NOT_RELEASED_REASON, why)
        await self.write_status(latest, failed)

    async def answers(self, cluster: FederatedCluster) -> None:
        """The member that is to be released lets us in: attempts that failed before count no more."""
        latest = self._caches.clusters.get(cluster.name) or cluster
        others = tuple(each for each in latest.status.conditions if each.type != texts.RELEASED)
        if others != latest.status.conditions:
            await self.write_status(latest, msgspec.structs.replace(latest.status, conditions=others))

    async def write_status(self, cluster: FederatedCluster, status: ClusterStatus) -> FederatedCluster:
        # As a difference, so that what is gone (a resource no node has any more) is removed from the stored status as well.
        changes = mergepatch.create(msgspec.to_builtins(cluster.status), msgspec.to_builtins(status))
        body = {"metadata": {"resourceVersion": cluster.metadata.resource_version}, "status": changes}
        raw = await self._client.patch(
            resources.FEDERATED_CLUSTERS, cluster.name, body, kind=Patch.MERGE, subresource="status", into=bytes
        )
        return self._remember(raw)

    def _remember(self, raw: bytes) -> FederatedCluster:
        self._caches.clusters.remember(raw)
        return msgspec.json.decode(raw, type=FederatedCluster)


def _with(
    cluster: FederatedCluster, status: ClusterStatus, type: str, value: str, reason: str, message: str
) -> ClusterStatus:
    """The status with this condition first."""
    now = timestamps.now()
    before = cluster.condition(type)
    since = before.last_transition_time if before is not None and before.status == value else None
    condition = ClusterCondition(type, value, now, since or now, reason, message)
    others = tuple(other for other in cluster.status.conditions if other.type != type)
    return msgspec.structs.replace(status, conditions=(condition, *others))
