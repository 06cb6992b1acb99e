"""What the loops share, assembled once, in the order of the data flow: state that is kept current, and the access to members.

Every part gets all it needs in its constructor. `states` are the parts that follow changes, in the order of subscription.
"""

import contextlib
import socket
from typing import Any

from argosy.api import keys
from argosy.control.brake.brake import Brake
from argosy.control.caches.informers import Caches
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.collect import Collector
from argosy.control.copies.operations import Operations
from argosy.control.copies.pause import Pause
from argosy.control.fence import Fence, fenced
from argosy.control.followers import Followers
from argosy.control.install.existing import mark
from argosy.control.members import join
from argosy.control.members.access import Access
from argosy.control.members.cascade import Cascade
from argosy.control.members.connect import Connector, http_connector
from argosy.control.members.katalyst import Katalyst
from argosy.control.members.member import Members
from argosy.control.members.probe import Prober
from argosy.control.members.secrets import MemberSecrets, SecretView
from argosy.control.options import Options
from argosy.control.policies.uses import PolicyUses
from argosy.control.scheduling.arrivals import Arrivals
from argosy.control.scheduling.claims import Claims
from argosy.control.scheduling.done import DoneWork
from argosy.control.scheduling.evictions import Evictions
from argosy.control.scheduling.placed import PlacedWorkloads
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.scheduling.priorities import Priorities
from argosy.control.scheduling.profiles import Profiles
from argosy.control.scheduling.remote_plugins import RemotePlugins
from argosy.control.scheduling.reservations import ReservedFleet
from argosy.control.scheduling.webhooks import Webhooks
from argosy.control.sharding.others import OtherShards
from argosy.control.sharding.peers import PeerReservations
from argosy.control.sharding.publisher import ReservationPublisher
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.latency import LatencyMarks
from argosy.control.telemetry.metrics import Metrics
from argosy.control.telemetry.upstream import UpstreamMetrics
from argosy.control.timings import Timings
from argosy.control.wake import State
from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.kube.events import EventRecorder
from argosy.kube.informer import Informer
from argosy.kube.queue import WorkQueue
from argosy.kube.supervise import Supervisor
from argosy.plan.failover.pacing import of_shard
from argosy.plan.scheduling.profile import Registry

__all__ = ["ControllerContext"]


class ControllerContext:
    def __init__(
        self,
        client: Client,
        options: Options,
        timings: Timings,
        metrics: Metrics,
        fence: Fence | None,
        connect: Connector | None,
        plugins: Registry,
        workers: PluginWorkers | None,
    ):
        """`workers` provide the plugins of Python packages and run them; their creator closes them."""
        shard = options.shard
        self.client = client = fenced(client, fence)
        self.options = options
        self.timings = timings
        self.metrics = metrics
        self.tasks = Supervisor()
        self.events = EventRecorder(client, "argosy", instance=socket.gethostname())
        self.recorder = ObjectRecorder(self.events)
        self.arrival, self.returning = LatencyMarks(metrics.propagation), LatencyMarks(metrics.status_return)

        # The objects of the control plane, and the fleet they describe.
        self.caches = Caches(client, timings, self.tasks, shard)
        self.fleet = LiveFleet(self.caches.clusters)
        self.brake = Brake(self.caches, options.brake, timings, metrics, alone=shard.is_whole)
        self.priorities = Priorities(client, timings)

        # Members, and their objects.
        self.members = Members()
        self.secrets = MemberSecrets(client, self._watch_secrets(), self.caches.clusters)
        self.access = Access(
            self.secrets, self.members, self.caches.catalog, self._connector(connect, fence), metrics, timings
        )
        self.collector = Collector(self.members, self.caches.catalog, timings, shard)
        self.katalyst = Katalyst(self.members, self.caches.clusters, timings) if options.katalyst else None
        self.prober = Prober(self.members, self.fleet, timings, self.katalyst)
        self.pause = Pause(self.caches)
        self.operations = Operations(self.caches, self.collector, metrics)
        self.cascade = Cascade(self.caches, self.operations, self.pause, timings, shard)

        # The inputs of scheduling.
        self.claims = Claims(self.caches)
        self.peers = None if shard.is_whole else PeerReservations(client, shard, timings)
        self.reserved = ReservedFleet(self.caches, self.collector, self.fleet, self.peers)
        self.uses = PolicyUses(self.caches, self.peers)
        self.publisher = self._publisher()
        self.others = None if shard.is_whole else OtherShards(client, shard, self.caches, self.events, metrics, timings)
        pacing = of_shard(options.failover, shard.count)
        self.evictions = Evictions(self.caches, self.fleet, pacing, timings)
        self.done = DoneWork(self.caches, self.collector)
        self.followers = Followers(self.caches, self.brake)
        self.upstream = UpstreamMetrics(metrics, self.caches, self.uses)
        self.arrivals = Arrivals(self.caches, self.fleet, timings)
        self.placed = PlacedWorkloads(self.caches, self.fleet.snapshot.workloads)
        # Every shard calls webhooks; only one records events about their configuration.
        told = self.events if shard.owns_cluster_scoped else None
        self.workers = workers
        self.webhooks = Webhooks(self.caches.clusters.get, timings, told, options.endpoints, self.caches.webhooks)
        known = plugins if workers is None else workers.registry
        self.profiles = Profiles(self.caches, self.webhooks, known, told, workers)
        self.plugins = RemotePlugins(self.webhooks, workers, metrics)

    @property
    def states(self) -> list[State]:
        states: list[State] = [self.caches, self.fleet, self.brake, self.collector]
        if self.katalyst is not None:
            states.append(self.katalyst)
        inputs: list[State] = [self.claims, self.reserved, self.evictions, self.done, self.followers]
        inputs += [self.arrivals, self.placed, self.uses]
        return [*states, self.prober, *inputs, self.webhooks, self.profiles]

    def queue(self) -> WorkQueue[Any]:
        """A new queue, for one loop."""
        return WorkQueue(Backoff(base=self.timings.retry_first, cap=self.timings.retry_most))

    async def start(self) -> None:
        """Start watching; returns when everything that decisions depend on is known."""
        self.metrics.registry.register(self.upstream)
        self.tasks.start("events", self.events.run)
        self.tasks.start("watch cluster secrets", self.secrets.informer.run)
        self.tasks.start("watch priority classes", self.priorities.informer.run)
        if self.peers is not None:
            self.tasks.start("watch reservations of other shards", self.peers.informer.run)
        await self.caches.run()
        await self.secrets.informer.synced.wait()
        if self.options.shard.owns_cluster_scoped:
            self.tasks.start_once("mark the system namespace", self._mark_system_namespace)
        self.profiles.check_all()
        if self.publisher is not None:
            self.tasks.start("publish reservations", self.publisher.run)
        if self.others is not None:
            self.tasks.start("watch leases of other shards", self.others.run)

    async def close(self) -> None:
        with contextlib.suppress(KeyError):  # it was not started
            self.metrics.registry.unregister(self.upstream)
        await self.profiles.close()
        await self.webhooks.close()
        await self.members.close()

    def _watch_secrets(self) -> Informer[SecretView]:
        liveness = self.timings.watch_liveness
        return Informer(self.client, join.SECRETS, SecretView, namespace=keys.SYSTEM_NAMESPACE, liveness=liveness)

    async def _mark_system_namespace(self) -> None:
        """As `argosy install` makes it. Helm makes it without annotations."""
        system = self.caches.system.get(keys.SYSTEM_NAMESPACE)
        if system is not None and not system.metadata.annotations.get(keys.NO_FEDERATED_RESOURCE):
            with contextlib.suppress(ApiError, TransportError):
                await mark(self.client, self.caches.system.resource, keys.SYSTEM_NAMESPACE, None)

    def _publisher(self) -> ReservationPublisher | None:
        if self.peers is None:
            return None
        return ReservationPublisher(
            self.client,
            self.options.shard,
            lambda: self.reserved.totals,
            self.uses.of_cluster_scoped,
            self.peers,
            self.timings,
        )

    def _connector(self, chosen: Connector | None, fence: Fence | None) -> Connector:
        """Writes to members are fenced like those to the control plane."""
        options = self.options
        connect = chosen or http_connector(
            qps=options.member_qps,
            burst=options.member_burst,
            endpoints=options.endpoints,
            limits=options.answers,
            longest_hold=self.timings.member_hold,
        )
        return lambda name, connection, challenge: fenced(connect(name, connection, challenge), fence)
