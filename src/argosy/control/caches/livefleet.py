"""The live fleet: the current snapshot for decisions, and signals for changes that matter to them.

Fed by FederatedCluster events and, between their heartbeats, by the capacity computed from the watches on nodes and pods.
"""

from collections.abc import Iterable

import msgspec

from argosy.api.keys import UNREADY_TAINT
from argosy.api.types import ClusterResources, FederatedCluster
from argosy.control.wake import Follow, Signal
from argosy.fleet.member import ApiKey, Member
from argosy.fleet.snapshot import Fleet
from argosy.kube.informer import Change, Informer

__all__ = ["LiveFleet"]


class LiveFleet:
    name = "fleet"

    def __init__(self, clusters: Informer[FederatedCluster]) -> None:
        self._informer = clusters
        self.snapshot = Fleet()
        self._clusters: dict[str, FederatedCluster] = {}
        self._capacity: dict[str, ClusterResources] = {}
        #: The name of a cluster that came, went, or changed in labels, taints, APIs, readiness, joining or leaving.
        self.facts: Signal[str] = Signal("facts of a cluster")
        #: Of these only what says whether it can be read and written.
        self.reach: Signal[str] = Signal("reach of a cluster")
        #: The name of a cluster that has more room than before: worth a retry for objects that found none.
        self.room: Signal[str] = Signal("room in a cluster")
        #: A kind that no member served before.
        self.arrived: Signal[ApiKey] = Signal("kinds new to the fleet")

    def follows(self) -> Iterable[Follow[Change[FederatedCluster]]]:
        yield Follow(self._informer, self._cluster_changed, "decisions are made on the clusters as they are")

    def _cluster_changed(self, change: Change[FederatedCluster]) -> None:
        if change.new is None:
            self._clusters.pop(change.key, None)
            self._capacity.pop(change.key, None)
            self.snapshot = self.snapshot.without_cluster(change.key)
            self.reach.tell(change.key)
            self.facts.tell(change.key)
            return
        self._clusters[change.key] = change.new
        self._refresh(change.key)

    def set_capacity(self, cluster: str, resources: ClusterResources) -> None:
        """The capacity by the watches; the stored status follows with the next heartbeat."""
        if self._capacity.get(cluster) == resources or cluster not in self._clusters:
            return
        self._capacity[cluster] = resources
        self._refresh(cluster)

    def drop_capacity(self, cluster: str) -> None:
        """The watches ended: the stored status counts again."""
        if self._capacity.pop(cluster, None) is not None and cluster in self._clusters:
            self._refresh(cluster)

    def set_stale(self, cluster: str, stale: bool) -> None:
        """Whether the cluster's available resources have not been updated for long."""
        self.snapshot = self.snapshot.with_stale(cluster, stale)

    def _refresh(self, name: str) -> None:
        cluster = self._clusters[name]
        live = self._capacity.get(name)
        if live is not None:
            status = msgspec.structs.replace(cluster.status, resources=live)
            cluster = msgspec.structs.replace(cluster, status=status)
        known = self.snapshot
        before = known.member(name)
        self.snapshot = known.with_cluster(cluster)
        after = self.snapshot.member(name)
        if after is None or after is before:
            return
        # What a cluster that is new itself serves did not come just now.
        for api in sorted(after.apis - before.apis) if before is not None and before.apis else ():
            if not known.serving(api).any():
                self.arrived.tell(api)
        if before is None or _reach(before) != _reach(after):
            self.reach.tell(name)
        if before is None or _facts(before) != _facts(after):
            self.facts.tell(name)
        elif any(amount > before.available.get(resource, 0) for resource, amount in after.available.items()):
            self.room.tell(name)


def _facts(member: Member) -> tuple[object, ...]:
    return (*_reach(member), member.labels_digest, member.taints_digest)


def _reach(member: Member) -> tuple[object, ...]:
    failed = any(key == UNREADY_TAINT for key, _, _ in member.taints)
    return member.joined, member.ready, member.terminating, member.apis_digest, failed
