"""Connections of a shard that does not own the clusters (shard 0 does): members stay connected, and nothing is said of them.

Every shard talks to every member. Whether one joins, is healthy or may leave, and what its secret holds, the owner decides;
here the connection follows what the owner wrote. Of a cluster that leaves with its copies each shard takes away its own.
"""

from argosy.control.caches.informers import Caches
from argosy.control.members.access import Access
from argosy.control.members.cascade import Cascade
from argosy.control.members.identity import WrongCluster
from argosy.control.timings import Timings
from argosy.fleet.credentials import CredentialsError
from argosy.kube.queue import Result

__all__ = ["ClusterConnections"]


class ClusterConnections:
    def __init__(self, caches: Caches, access: Access, cascade: Cascade, timings: Timings):
        self._caches = caches
        self._access = access
        self._cascade = cascade
        self._timings = timings

    async def reconcile(self, name: str) -> Result | None:
        cluster = self._caches.clusters.get(name)
        if cluster is None or not cluster.joined:
            await self._access.disconnect(name)
            return None
        again = Result(requeue_after=self._timings.health_period)
        try:
            member = await self._access.connected(cluster)
        except WrongCluster:  # for its owner to tell, as what follows
            return Result(requeue_after=min(self._timings.health_period, self._timings.identity_recheck))
        except CredentialsError:
            return again
        if not cluster.terminating:
            return again
        left = await self._cascade.progress(cluster, member)
        return Result(requeue_after=self._timings.cascade_recheck) if left else None
