"""Katalyst: watches what members reclaim on their nodes, where a cluster's annotation asks for it.

One watch a member, under the member's supervisor; it ends with the member, or when the annotation goes. A member without
Katalyst, or one that forbids the watch, has none of its resources, and nothing else waits for them.
"""

from collections.abc import Callable

from argosy.api.types import FederatedCluster
from argosy.control.members.member import Member, Members
from argosy.control.timings import Timings
from argosy.fleet.katalyst import CUSTOM_NODE_RESOURCES, CustomNodeResourceView, NodeResources, asks_for_katalyst
from argosy.kube.informer import Change, Informer

__all__ = ["Katalyst"]


class Katalyst:
    def __init__(
        self,
        members: Members,
        cluster: Callable[[str], FederatedCluster | None],
        changed: Callable[[str], None],
        timings: Timings,
    ) -> None:
        self._cluster = cluster
        self._changed = changed
        self._timings = timings
        self._members: dict[str, Member] = {}
        self._resources: dict[str, NodeResources] = {}
        members.on_change(self._member_changed)

    def resources(self, name: str) -> NodeResources | None:
        """What is known of a cluster; None where nothing is watched."""
        return self._resources.get(name)

    def cluster_changed(self, change: Change[FederatedCluster]) -> None:
        """Handler for the clusters' informer: the annotation may have come or gone."""
        member = self._members.get(change.key)
        if member is not None and change.new is not None:
            self._follow(member, change.new)

    def _member_changed(self, name: str, member: Member | None) -> None:
        self._members.pop(name, None)
        self._resources.pop(name, None)  # its watch ends with the member's other tasks
        if member is None:
            return
        self._members[name] = member
        cluster = self._cluster(name)
        if cluster is not None:
            self._follow(member, cluster)

    def _follow(self, member: Member, cluster: FederatedCluster) -> None:
        name, task = member.name, f"watch Katalyst's resources in {member.name}"
        if not asks_for_katalyst(cluster.metadata.annotations):
            if self._resources.pop(name, None) is not None:
                member.unfollow(task)
                self._changed(name)
            return
        if name in self._resources:
            return
        resources = self._resources[name] = NodeResources()
        informer: Informer[CustomNodeResourceView] = Informer(
            member.client,
            CUSTOM_NODE_RESOURCES,
            CustomNodeResourceView,
            liveness=self._timings.watch_liveness,
            backoff=self._timings.watch_backoff,
        )

        def seen(change: Change[CustomNodeResourceView]) -> None:
            resources.set(change.key, change.new)
            self._changed(name)

        informer.add_handler(seen)
        member.follow(task, informer)
