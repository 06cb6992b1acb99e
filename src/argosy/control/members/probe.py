"""Probing a joined member: its health, and now and then the APIs it serves and the resources that its nodes have free.

Most probes are one small request, so that members can be probed often. Node and pod watches run under the member's supervisor
and maintain totals; a probe reads the totals and lists nothing.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from argosy.api.types import APIResource, ClusterResources
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.members.katalyst import Katalyst
from argosy.control.members.member import Connected, Member, Members
from argosy.control.timings import Timings
from argosy.control.wake import Follow, Signal
from argosy.fleet.apis import ordered
from argosy.fleet.capacity import Capacity, NodeView, PodView
from argosy.fleet.health import Health, probe_failed, probe_result
from argosy.fleet.katalyst import NodeResources
from argosy.fleet.pods.replicasets import Pods, PodsByReplicaSet
from argosy.fleet.pods.troubles import Trouble, Troubles, WorkloadRef
from argosy.kube import clock
from argosy.kube.discovery import Discovery
from argosy.kube.errors import ApiError, BadAnswer, TooManyRequests, TransportError
from argosy.kube.informer import Change, Informer
from argosy.kube.resource import Resource
from argosy.kube.selectors import LabelSelector

__all__ = ["Observation", "PodChange", "Prober", "TroubleChange"]

_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
_PODS = Resource("", "v1", "pods", "Pod")
#: Members whose APIs are read at the same time: the answers are large.
_READ_AT_ONCE = 16
_LONGEST_VERSION = 63
#: Pods change often; the snapshot is updated at most this often.
_CAPACITY_PERIOD = 0.25


class Observation(NamedTuple):
    """The result of one probe; resources and APIs are None if they were not read, and the stored ones stay."""

    health: Health
    resources: ClusterResources | None = None
    apis: tuple[APIResource, ...] | None = None
    #: The member's Kubernetes version; empty if it could not be read.
    version: str = ""


class PodChange(NamedTuple):
    """A pod in a member was created or deleted, got a node or failed to. `replica_set` is the uid of its ReplicaSet."""

    cluster: str
    key: str
    replica_set: str


class TroubleChange(NamedTuple):
    """A pod of this workload in a member has a trouble it did not have, or no longer has one."""

    cluster: str
    workload: WorkloadRef


class Prober:
    name = "capacity"

    def __init__(
        self,
        members: Members,
        fleet: LiveFleet,
        timings: Timings,
        katalyst: Katalyst | None = None,
        excluded_nodes: tuple[LabelSelector, ...] = (),
    ):
        """With Katalyst, the resources it reclaims in members count as well."""
        self._members = members
        self._katalyst = katalyst
        self._fleet = fleet
        self._timings = timings
        self._excluded = excluded_nodes
        self._watched: dict[str, _Watched] = {}
        #: Since when clusters without any event so far are waited for.
        self._missed: dict[str, float] = {}
        #: When all of a ready member was read last.
        self._read: dict[str, float] = {}
        self._reading = asyncio.Semaphore(_READ_AT_ONCE)
        self.pods: Signal[PodChange] = Signal("pods in members")
        self.troubles: Signal[TroubleChange] = Signal("pods in members that do not start")

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._members.changes, self._member_changed, "nodes and pods of a connected member are watched")
        if self._katalyst is not None:
            yield Follow(self._katalyst.changes, self._further_changed, "what Katalyst reclaims counts")

    def _further(self, cluster: str) -> NodeResources | None:
        """What a cluster's nodes offer besides their own allocatable."""
        return self._katalyst.resources(cluster) if self._katalyst is not None else None

    def _further_changed(self, cluster: str) -> None:
        watched = self._watched.get(cluster)
        if watched is not None:
            watched.changed.set()

    def judge_figures(self, now: float) -> None:
        """Record which clusters' figures are stale: no event of their nodes or pods for long."""
        for name in self._fleet.snapshot.names:
            watched = self._watched.get(name)
            heard = watched.last_heard if watched is not None else 0.0
            # Before the first event of a connection, the waiting time counts.
            since = heard or self._missed.setdefault(name, now)
            if heard:
                self._missed.pop(name, None)
            self._fleet.set_stale(name, now - since > self._timings.capacity_stale)
        for name in self._missed.keys() - set(self._fleet.snapshot.names):
            del self._missed[name]

    def pods_of(self, cluster: str, replica_set: str) -> Pods | None:
        """The pods of a ReplicaSet, by its uid; None while the member's pods are not known."""
        watched = self._watched.get(cluster)
        return watched.by_replica_set.of(replica_set) if watched is not None and watched.pods.has_synced else None

    def troubles_of(self, cluster: str, workload: WorkloadRef) -> list[Trouble] | None:
        """Why pods of a workload are not ready, one for each that has a known trouble; None while its pods are not known."""
        watched = self._watched.get(cluster)
        return list(watched.troubles.of(workload)) if watched is not None and watched.pods.has_synced else None

    async def observe(self, member: Member, known: tuple[APIResource, ...] = (), *, again: bool = False) -> Observation:
        """Probe once. Never raises because of the member's answers. `known` is what it served before.

        APIs and resources are read again if they were not for long, if something was wrong with the member since, or if they are
        asked for `again`.
        """
        limit, read = self._timings.probe_timeout, self._read.pop(member.name, -math.inf)
        try:
            async with asyncio.timeout(limit):
                answer = await member.client.healthz()
        except TooManyRequests as error:
            return Observation(probe_failed(busy=error.message))
        except ApiError as error:
            answer = error.message
        except BadAnswer as error:
            return Observation(probe_failed(healthz=str(error)))
        except (TransportError, TimeoutError):
            return Observation(probe_result(None))
        health = probe_result(answer)
        if health.ready != "True":
            return Observation(health)
        now = clock.monotonic()
        if now - read < self._timings.report_period and not again:
            self._read[member.name] = read
            return Observation(health)
        try:
            resources = await self._resources(member)
        except _Unread as error:
            return Observation(probe_failed(resources=str(error)))
        try:
            async with self._reading, asyncio.timeout(limit):
                found = await member.client.discover()
        except (ApiError, TransportError, TimeoutError) as error:
            return Observation(probe_failed(discovery=str(error) or "timed out"), resources)
        version = await _version(member, limit)
        if self._members.get(member.name) is member:
            self._read[member.name] = now
        return Observation(health, resources, _listed(found, known), version)

    async def _resources(self, member: Member) -> ClusterResources:
        watched = self._watched[member.name]
        try:
            async with asyncio.timeout(self._timings.capacity_sync):
                await watched.nodes.synced.wait()
                await watched.pods.synced.wait()
        except TimeoutError:
            # The member's error, if there is one: a missing right, say.
            why = [informer.last_error for informer in (watched.nodes, watched.pods) if not informer.has_synced]
            raise _Unread(next(filter(None, why), "timed out waiting for the node and pod caches")) from None
        try:
            return watched.capacity.resources(self._further(member.name))
        except ValueError as error:
            raise _Unread(str(error)) from None

    def _member_changed(self, connected: Connected) -> None:
        name, member = connected
        self._watched.pop(name, None)
        self._read.pop(name, None)
        self._fleet.drop_capacity(name)
        if member is None:
            return
        watched = _Watched(member, self._excluded, self._timings, self.pods.tell, self.troubles.tell)
        self._watched[name] = watched
        member.follow(f"watch nodes in {name}", watched.nodes)
        member.follow(f"watch pods in {name}", watched.pods)
        member.tasks.start(f"capacity of {name}", lambda: self._follow(name, watched), restart=True)

    async def _follow(self, name: str, watched: "_Watched") -> None:
        """Copy changed totals into the fleet snapshot, many pod events at a time."""
        await watched.nodes.synced.wait()
        await watched.pods.synced.wait()
        while True:
            await watched.changed.wait()
            watched.changed.clear()
            with contextlib.suppress(ValueError):  # the probe reports it
                self._fleet.set_capacity(name, watched.capacity.resources(self._further(name)))
            await asyncio.sleep(_CAPACITY_PERIOD)


class _Unread(Exception):
    """Nodes or pods are not known; the message says why."""


class _Watched:
    """The watches on one member's nodes and pods, and their totals."""

    def __init__(
        self,
        member: Member,
        excluded: tuple[LabelSelector, ...],
        timings: Timings,
        on_pod: Callable[[PodChange], None],
        on_trouble: Callable[[TroubleChange], None],
    ):
        self._cluster = member.name
        self.capacity = Capacity(excluded)
        self.by_replica_set = PodsByReplicaSet()
        self.troubles = Troubles()
        self._on_pod = on_pod
        self._on_trouble = on_trouble
        self.changed = asyncio.Event()
        liveness, backoff = timings.watch_liveness, timings.watch_backoff
        self.nodes: Informer[NodeView] = Informer(
            member.client, _NODES, NodeView, liveness=liveness, backoff=backoff, on_change=self._node
        )
        self.pods: Informer[PodView] = Informer(
            member.client, _PODS, PodView, liveness=liveness, backoff=backoff, on_change=self._pod
        )

    @property
    def last_heard(self) -> float:
        """The time of the older of both watches' last events, by the monotonic clock; 0 if one had none yet."""
        return min(self.nodes.last_event, self.pods.last_event)

    def _node(self, change: Change[NodeView]) -> None:
        self.capacity.set_node(change.key, change.new)
        self.changed.set()

    def _pod(self, change: Change[PodView]) -> None:
        self.capacity.set_pod(change.key, change.new)
        self.changed.set()
        made_by = self.by_replica_set.change(change.key, change.old, change.new)
        if made_by:
            self._on_pod(PodChange(self._cluster, change.key, made_by))
        before, after = (each.trouble if each is not None else None for each in (change.old, change.new))
        for workload in self.troubles.change(change.key, before, after):
            self._on_trouble(TroubleChange(self._cluster, workload))


async def _version(member: Member, limit: float) -> str:
    """Only shown to people, so a member that does not tell it is as good as any."""
    try:
        async with asyncio.timeout(limit):
            told = (await member.client.version()).get("gitVersion")
    except (ApiError, TransportError, TimeoutError):
        return ""
    return told[:_LONGEST_VERSION] if isinstance(told, str) else ""


def _listed(found: Discovery, known: tuple[APIResource, ...]) -> tuple[APIResource, ...]:
    """The APIs for a FederatedCluster's status.

    A group version that could not be read keeps its known APIs: not knowing must not look like not serving.
    """
    listed = {
        APIResource(
            group=resource.group,
            version=resource.version,
            kind=resource.kind,
            plural_name=resource.plural,
            scope="Namespaced" if resource.namespaced else "Cluster",
        )
        for resource in found.resources
    }
    unread = {name.rpartition("/")[::2] for name in found.failures}
    listed |= {api for api in known if (api.group, api.version) in unread}
    return ordered(listed)
