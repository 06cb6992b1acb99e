"""Katalyst: watches the resources reclaimed on members' nodes, for clusters whose annotation asks for it.

One watch per member, under the member's supervisor; it ends with the member, or when the annotation is removed. A member
without Katalyst, or one that forbids the watch, has none of its resources, and nothing else waits for them.
"""

from collections.abc import Iterable
from typing import Any

from argosy.api.types import FederatedCluster
from argosy.control.members.member import Connected, Member, Members
from argosy.control.timings import Timings
from argosy.control.wake import Follow, Signal
from argosy.fleet.katalyst import CUSTOM_NODE_RESOURCES, CustomNodeResourceView, NodeResources, asks_for_katalyst
from argosy.kube.informer import Change, Informer

__all__ = ["Katalyst"]


class Katalyst:
    name = "katalyst"

    def __init__(self, members: Members, clusters: Informer[FederatedCluster], timings: Timings) -> None:
        self._members = members
        self._clusters = clusters
        self._timings = timings
        self._resources: dict[str, NodeResources] = {}
        #: The name of a cluster whose nodes offer other resources than before.
        self.changes: Signal[str] = Signal("resources of Katalyst in a member")

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._members.changes, self._member_changed, "a connected member is watched if it has Katalyst")
        yield Follow(self._clusters, self._cluster_changed, "the annotation that asks for it came or went")

    def resources(self, name: str) -> NodeResources | None:
        """The resources of a cluster; None if it is not watched."""
        return self._resources.get(name)

    def _cluster_changed(self, change: Change[FederatedCluster]) -> None:
        member = self._members.get(change.key)
        if member is not None and change.new is not None:
            self._follow(member, change.new)

    def _member_changed(self, connected: Connected) -> None:
        name, member = connected
        self._resources.pop(name, None)  # its watch ends with the member's other tasks
        cluster = self._clusters.get(name)
        if member is not None and cluster is not None:
            self._follow(member, cluster)

    def _follow(self, member: Member, cluster: FederatedCluster) -> None:
        name, task = member.name, f"watch Katalyst's resources in {member.name}"
        if not asks_for_katalyst(cluster.metadata.annotations):
            if self._resources.pop(name, None) is not None:
                member.unfollow(task)
                self.changes.tell(name)
            return
        if name in self._resources:
            return
        resources = self._resources[name] = NodeResources()

        def seen(change: Change[CustomNodeResourceView]) -> None:
            resources.set(change.key, change.new)
            self.changes.tell(name)

        informer: Informer[CustomNodeResourceView] = Informer(
            member.client,
            CUSTOM_NODE_RESOURCES,
            CustomNodeResourceView,
            liveness=self._timings.watch_liveness,
            backoff=self._timings.watch_backoff,
            on_change=seen,
        )
        member.follow(task, informer)
