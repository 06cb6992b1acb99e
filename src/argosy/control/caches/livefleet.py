"""The live fleet: the current snapshot that decisions are made on, and word of changes that matter to them.

Fed by FederatedCluster events and, between their heartbeats, by the capacity the watches on nodes and pods add up.
"""

from collections.abc import Callable
from enum import Enum, auto

import msgspec

from argosy.api.types import ClusterResources, FederatedCluster
from argosy.fleet.member import Member
from argosy.fleet.snapshot import Fleet
from argosy.kube.informer import Change

__all__ = ["FleetChange", "LiveFleet"]


class FleetChange(Enum):
    """Why objects may have to be looked at again."""

    #: A cluster came, went, or changed in labels, taints, APIs, readiness, joining or leaving.
    FACTS = auto()
    #: A cluster has more room than before: worth a try for what found none.
    ROOM = auto()


class LiveFleet:
    def __init__(self) -> None:
        self.snapshot = Fleet()
        self._clusters: dict[str, FederatedCluster] = {}
        self._capacity: dict[str, ClusterResources] = {}
        self._listeners: list[Callable[[str, FleetChange], None]] = []

    def on_change(self, listener: Callable[[str, FleetChange], None]) -> None:
        self._listeners.append(listener)

    def observe(self, change: Change[FederatedCluster]) -> None:
        """Handler for the clusters' informer."""
        if change.new is None:
            self._clusters.pop(change.key, None)
            self._capacity.pop(change.key, None)
            self.snapshot = self.snapshot.without_cluster(change.key)
            self._tell(change.key, FleetChange.FACTS)
            return
        self._clusters[change.key] = change.new
        self._refresh(change.key)

    def set_capacity(self, cluster: str, resources: ClusterResources) -> None:
        """What the watches add up to right now; the stored status follows with the next heartbeat."""
        if self._capacity.get(cluster) == resources or cluster not in self._clusters:
            return
        self._capacity[cluster] = resources
        self._refresh(cluster)

    def drop_capacity(self, cluster: str) -> None:
        """The watches are gone: the stored status counts again."""
        if self._capacity.pop(cluster, None) is not None and cluster in self._clusters:
            self._refresh(cluster)

    def set_stale(self, cluster: str, stale: bool) -> None:
        """Whether what the cluster has available was not heard of for long."""
        self.snapshot = self.snapshot.with_stale(cluster, stale)

    def _refresh(self, name: str) -> None:
        cluster = self._clusters[name]
        live = self._capacity.get(name)
        if live is not None:
            status = msgspec.structs.replace(cluster.status, resources=live)
            cluster = msgspec.structs.replace(cluster, status=status)
        before = self.snapshot.member(name)
        self.snapshot = self.snapshot.with_cluster(cluster)
        after = self.snapshot.member(name)
        if after is None or after is before:
            return
        if before is None or _facts(before) != _facts(after):
            self._tell(name, FleetChange.FACTS)
        elif any(amount > before.available.get(resource, 0) for resource, amount in after.available.items()):
            self._tell(name, FleetChange.ROOM)

    def _tell(self, name: str, change: FleetChange) -> None:
        for listener in self._listeners:
            listener(name, change)


def _facts(member: Member) -> tuple[object, ...]:
    return (
        member.joined,
        member.ready,
        member.terminating,
        member.labels_digest,
        member.taints_digest,
        member.apis_digest,
    )
