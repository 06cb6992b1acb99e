"""Connections of a shard that does not own the clusters (shard 0 does): it connects to members, and writes nothing about them.

Every shard talks to every member. The owner decides on joining, health, leaving and the content of the secret; here the
connection follows what the owner wrote. In a cascading deletion each shard removes its own copies.
"""

from collections.abc import Iterable
from typing import Any

from argosy.api.types import FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.control.caches.views import cluster_of_more_than_health
from argosy.control.context import ControllerContext
from argosy.control.members.access import Access
from argosy.control.members.cascade import Cascade
from argosy.control.members.identity import WrongCluster
from argosy.control.members.secrets import MemberSecrets
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Wake, itself
from argosy.fleet.credentials import CredentialsError
from argosy.kube.informer import Change
from argosy.kube.queue import Result, WorkQueue

__all__ = ["ClusterConnections"]

#: Several changes within this time share one reconcile.
_SOON = 1.0


class ClusterConnections(Loop[str]):
    name = "clusters"
    workers = 16

    def __init__(
        self,
        queue: WorkQueue[str],
        caches: Caches,
        secrets: MemberSecrets,
        access: Access,
        cascade: Cascade,
        timings: Timings,
    ):
        self.queue = queue
        self._secrets = secrets
        self._caches = caches
        self._access = access
        self._cascade = cascade
        self._timings = timings

    @classmethod
    def of(cls, shared: ControllerContext) -> "ClusterConnections":
        return cls(shared.queue(), shared.caches, shared.secrets, shared.access, shared.cascade, shared.timings)

    def wakes(self) -> Iterable[Wake[Any, str]]:
        yield Wake(self._caches.clusters, cluster_of_more_than_health, "it changed in more than its health")
        yield Wake(self._secrets.informer, self._secrets.clusters_of, "its credentials changed")
        yield Wake(self._access.rejected, itself, "the member refused its credentials", delay=_SOON)
        yield Wake(self._access.mismatched, itself, "another cluster answered in its place")
        yield Wake(self._caches.clusters, _answers_again, "the owner heard of the member again")

    async def reconcile(self, name: str) -> Result | None:
        cluster = self._caches.clusters.get(name)
        if cluster is None or not cluster.joined:
            await self._access.disconnect(name)
            return None
        again = Result(requeue_after=self._timings.health_period)
        try:
            member = await self._access.connected(cluster)
        except WrongCluster:  # the owner reports it
            return Result(requeue_after=min(self._timings.health_period, self._timings.identity_recheck))
        except CredentialsError:
            return again
        if member is not None and cluster.silent_since is None:
            member.answers(again=False)
        if not cluster.terminating:
            return again
        left = await self._cascade.progress(cluster, member)
        return Result(requeue_after=self._timings.cascade_recheck) if left else None


def _answers_again(change: Change[FederatedCluster]) -> tuple[str, ...]:
    """The name of a cluster whose member is heard of again."""
    old, new = change.old, change.new
    answers = old is not None and new is not None and old.silent_since is not None and new.silent_since is None
    return (change.key,) if answers else ()
