"""Manager: the controllers put together, in the order the data passes them, and started and stopped as one.

Everything they share is made here; who hears of which change is said here and nowhere else. So is who owns what: whatever
wakes a loop, a key of another shard is not worked on (`_start_loop`).
"""

import asyncio
import re
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from argosy.api import keys
from argosy.api.shards import WHOLE, Shard
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.control.aggregate import Aggregate
from argosy.control.caches.informers import Caches, SourceKey
from argosy.control.caches.livefleet import FleetChange, LiveFleet
from argosy.control.caches.views import FederatedView, same_but_for_status
from argosy.control.clusters import Clusters
from argosy.control.collect import Collector
from argosy.control.copies.item import FederatedKey
from argosy.control.copies.operations import Operations
from argosy.control.copies.pause import Pause
from argosy.control.dispatch import Dispatch
from argosy.control.failover import Failover, Returning
from argosy.control.federate import Federate
from argosy.control.fence import Fence, FenceLost, fenced
from argosy.control.members import join
from argosy.control.members.cascade import Cascade
from argosy.control.members.connect import Connector, http_connector
from argosy.control.members.katalyst import Katalyst
from argosy.control.members.member import Member, Members
from argosy.control.members.probe import Prober
from argosy.control.members.secrets import MemberSecrets, SecretView
from argosy.control.migrate import Migrate
from argosy.control.permissions import Permissions
from argosy.control.scheduling.placed import PlacedWorkloads
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.scheduling.priorities import Priorities
from argosy.control.scheduling.profiles import Profiles
from argosy.control.scheduling.remote_plugins import RemotePlugins
from argosy.control.scheduling.reservations import ReservedFleet
from argosy.control.scheduling.webhooks import Webhooks
from argosy.control.sharding.connections import ClusterConnections
from argosy.control.sharding.peers import PeerReservations
from argosy.control.sweep import Sweep
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.latency import LatencyMarks
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.kube.answers import DEFAULT, AnswerLimits
from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.endpoints import EndpointRules
from argosy.kube.events import EventRecorder
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import key_of, split_key
from argosy.kube.pace import Pace
from argosy.kube.queue import Result, WorkQueue, run_workers
from argosy.kube.supervise import Supervisor
from argosy.plan.failover import failover
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.profile import Registry

__all__ = ["Manager", "Options"]

K = TypeVar("K", bound=Hashable)


class Options(msgspec.Struct, frozen=True):
    """What an operator may choose."""

    #: Federate every object of a configured type, as KubeAdmiral does, not only those something wants propagated.
    federate_all: bool = False
    exclude_namespaces: str = ""
    workers: int = 32
    member_qps: float = 500.0
    member_burst: int = 1000
    #: How much of a member's answer is read.
    answers: AnswerLimits = DEFAULT
    #: Count what Katalyst reclaims in members that have it.
    katalyst: bool = False
    #: Which part of the objects is ours.
    shard: Shard = WHOLE
    #: Where members and webhooks may be.
    endpoints: EndpointRules = EndpointRules()


class Manager:
    """All controllers of one control plane. `run` until cancelled; `ready` once every cache has been filled."""

    def __init__(
        self,
        client: Client,
        *,
        options: Options = Options(),
        timings: Timings = Timings(),
        metrics: Metrics | None = None,
        fence: Fence | None = None,
        connect: Connector | None = None,
        plugins: Registry = IN_TREE,
        workers: PluginWorkers | None = None,
    ):
        """`workers` are asked for plugins of Python packages, and offer them; whoever made them closes them."""
        client = fenced(client, fence)
        shard = options.shard
        self.options = options
        self.timings = timings
        self.metrics = metrics or Metrics()
        self.ready = asyncio.Event()
        self.tasks = Supervisor()
        self.members = Members()
        self.fleet = LiveFleet()
        self.caches = Caches(client, timings, self.tasks, shard)
        self.collector = Collector(self.members, self.caches.catalog, timings, shard)

        self._events = EventRecorder(client, "argosy", instance=socket.gethostname())
        self._secrets: Informer[SecretView] = Informer(
            client, join.SECRETS, SecretView, namespace=keys.SYSTEM_NAMESPACE, liveness=timings.watch_liveness
        )
        recorder = ObjectRecorder(self._events)
        # Every shard asks webhooks; one of them tells what is wrong with them.
        about_scheduling = self._events if shard.owns_cluster_scoped else None
        self._webhooks = Webhooks(self.caches.clusters.get, timings, about_scheduling, options.endpoints)
        self._workers = workers
        known = plugins if workers is None else workers.registry
        self._profiles = Profiles(self.caches, self._webhooks, known, about_scheduling, workers)
        answers = RemotePlugins(self._webhooks, workers, self.metrics)
        pause = Pause(self.caches)
        arrival, returning = LatencyMarks(self.metrics.propagation), LatencyMarks(self.metrics.status_return)
        operations = Operations(self.caches, self.collector, self.metrics)
        cascade = Cascade(self.caches, operations, pause, timings, shard)
        exclude = re.compile(options.exclude_namespaces) if options.exclude_namespaces else None
        self._prober = prober = Prober(self.members, self.fleet, timings)
        chosen = connect or http_connector(
            qps=options.member_qps,
            burst=options.member_burst,
            endpoints=options.endpoints,
            limits=options.answers,
            longest_hold=timings.member_hold,
        )
        connector = _fenced(chosen, fence)

        self.reserved = ReservedFleet(self.caches, self.collector, self.fleet)
        self.federate = Federate(
            client,
            self.caches,
            self.reserved,
            self._profiles,
            answers,
            recorder,
            (arrival, returning),
            self.metrics,
            timings,
            exclude_namespaces=exclude,
            federate_all=options.federate_all,
            katalyst=options.katalyst,
        )
        self.dispatch = Dispatch(
            client,
            self.caches,
            self.members,
            self.collector,
            operations,
            pause,
            recorder,
            arrival,
            self.metrics,
            timings,
            shard,
        )
        self.aggregate = Aggregate(
            client, self.caches, self.collector, returning, self.metrics, timings, busy=self._propagating
        )
        self.clusters = Clusters(
            client,
            self.caches,
            MemberSecrets(client, self._secrets, self.caches.clusters),
            self.members,
            prober,
            cascade,
            connector,
            self._events,
            self.metrics,
            timings,
        )
        self.migrate = Migrate(
            self.caches, self.collector, self.members, prober, self.fleet, timings, self._wake_federate
        )
        self.reserved.released = self.federate.room_gained
        if not shard.is_whole:
            peers = PeerReservations(client, shard, lambda: self.reserved.totals, timings)
            peers.released = self.federate.room_gained
            self.reserved.peers = peers
        self._placed = PlacedWorkloads(self.caches, self.fleet.snapshot.workloads, self.federate.workloads_moved)
        if options.katalyst:
            katalyst = Katalyst(self.members, self.caches.clusters.get, prober.capacity_changed, timings)
            self.caches.clusters.add_handler(katalyst.cluster_changed)
            prober.further = katalyst.resources
        self._returning = Returning(self.caches, self.collector, self._wake_federate)
        self.federate.migration, self.federate.available = self.migrate.info, self._returning.available
        self._priorities = Priorities(client, timings)
        self.federate.rank = lambda key: self._priorities.rank(self.caches.source_raw(key))
        rules = failover.Rules(timings.failover_after, timings.failback_after)
        debounce = timings.health_threshold + timings.health_period
        self._failover = Failover(client, self.caches, self._events, rules, debounce)
        self._permissions = Permissions(client, self.caches.catalog, self._events)
        self._followers = ClusterConnections(self.caches, self.clusters.access, cascade, timings)
        self.cluster_queue: WorkQueue[str] = WorkQueue(self._backoff())
        self.clusters.wake = lambda name, after: self.cluster_queue.add(name, after=after)
        for loop in (self.federate, self.dispatch, self.aggregate, self.migrate):
            loop.queue = WorkQueue(self._backoff())
        #: Which objects another fleet concerns, and which ones a member that can be written to (again).
        self._fleet_sweep = Sweep(self._visit_all, timings.sweep)
        self._reach_sweep = Sweep(self.dispatch.wake_all_in, timings.sweep)
        #: ... and which ones another profile.
        self._profile_sweep = Sweep(self._visit_naming, timings.sweep)
        self._paces: list[Pace[Any]] = []
        self._wire()

    def _backoff(self) -> Backoff:
        return Backoff(base=self.timings.retry_first, cap=self.timings.retry_most)

    def _wire(self) -> None:
        """Who hears of what."""
        caches = self.caches
        caches.system.add_handler(self._system_changed)
        caches.clusters.add_handler(self.fleet.observe)
        caches.clusters.add_handler(self.reserved.cluster_changed)
        caches.clusters.add_handler(self._cluster_changed)
        if self.options.shard.owns_cluster_scoped:
            caches.clusters.add_handler(self._failover.cluster_changed)
        self._secrets.add_handler(self._secret_changed)
        caches.on_source(self.federate.source_changed)
        caches.on_source(self._placed.source_changed)
        caches.on_source(lambda type_name, change: self._source_changed(SourceKey(type_name, change.key), change))
        for namespaced, informer in caches.federated.items():
            informer.add_handler(self.reserved.federated_changed)
            informer.add_handler(self.federate.federated_changed)
            informer.add_handler(partial(self._federated_changed, namespaced))
            informer.add_handler(self.migrate.federated_changed)
            informer.add_handler(self._placed.federated_changed)
        for policies, label in (
            (caches.policies[True], keys.PROPAGATION_POLICY_LABEL),
            (caches.policies[False], keys.CLUSTER_PROPAGATION_POLICY_LABEL),
            (caches.overrides[True], keys.OVERRIDE_POLICY_LABEL),
            (caches.overrides[False], keys.CLUSTER_OVERRIDE_POLICY_LABEL),
        ):
            policies.add_handler(partial(self.federate.policy_changed, label))
        caches.profiles.add_handler(self._profiles.profile_changed)
        caches.webhooks.add_handler(self._webhooks.observe)
        self._webhooks.on_change(self._profiles.webhook_changed)
        self._webhooks.on_change(self.federate.plugin_changed)
        self._profiles.on_change(self._profile_sweep.ask)
        caches.catalog.on_change(self.federate.type_changed)
        caches.catalog.on_change(self._type_changed)
        caches.catalog.on_change(self._permissions.type_changed)
        self.fleet.on_change(self._fleet_changed)
        self.members.on_change(self._member_changed)
        self.members.on_recovery(self._reach_sweep.ask)

    # Changes that concern several loops.

    def _federated_changed(self, namespaced: bool, change: Change[FederatedView]) -> None:
        view = change.new
        if self.caches.writer != "dispatch" or view is None or not same_but_for_status(change.old, view):
            self.dispatch.wake(FederatedKey(namespaced, change.key))
        if view is None or self.caches.writer == "federate":
            return  # what federate wrote is reported back once it was dispatched
        key = self.caches.source_of(view)
        if key is not None:
            self.aggregate.wake_later(key)

    def _source_changed(self, key: SourceKey, change: Change[Any]) -> None:
        view = self.caches.federated_view(key)
        if self.caches.writer is not None or change.new is None or view is None:
            return
        self.aggregate.wake(key)
        # Whether a deletion is meant, and not paused, the source says; and without it nothing is carried to members.
        if view.metadata.deletion_timestamp or change.old is None:
            self.dispatch.wake(FederatedKey("/" in key.key, key.federated_key))

    def _system_changed(self, change: Change[Any]) -> None:
        if _pause_changed(change):
            self._wake_everything()

    def _cluster_changed(self, change: Change[FederatedCluster]) -> None:
        if _more_than_health(change):
            self.cluster_queue.add(change.key)
        if _pause_changed(change):
            self._reach_sweep.ask(change.key)

    def _secret_changed(self, change: Change[SecretView]) -> None:
        name = change.key.rpartition("/")[2]
        for cluster in self.clusters.clusters_of_secret(name):
            self.cluster_queue.add(cluster)

    def _fleet_changed(self, cluster: str, change: FleetChange) -> None:
        if change is FleetChange.ROOM:
            self.federate.room_gained()
            self.migrate.room_gained(cluster)
        else:
            self._fleet_sweep.ask(cluster)

    def _visit_all(self, clusters: Collection[str]) -> Iterator[None]:
        yield from self.federate.fleet_changed()
        yield from self.dispatch.wake_all_in(clusters)
        yield from self.aggregate.wake_all_in(clusters)

    def _wake_federate(self, key: SourceKey) -> None:
        self.federate.queue.add(key)

    def _visit_naming(self, profiles: Collection[str]) -> Iterator[None]:
        for key in self._profiles.naming(profiles):
            self.federate.profile_changed(key)
            yield

    def _member_changed(self, name: str, member: Member | None) -> None:
        if member is not None:
            self._reach_sweep.ask(name)

    def _type_changed(self, old: FederatedTypeConfig | None, new: FederatedTypeConfig | None) -> None:
        """Federated objects of a type that comes, comes back or changed may have waited for it."""
        if new is None or (old is not None and old.spec == new.spec):
            return
        label = (new.api_version, new.kind)
        for namespaced, informer in self.caches.federated.items():
            for view in informer.values():
                if label in view.metadata.labels.items():
                    self.dispatch.wake(FederatedKey(namespaced, key_of(view.metadata)), priority=1)

    def _propagating(self) -> bool:
        """Whether objects wait to be carried to members."""
        return len(self.federate.queue) + len(self.dispatch.queue) > 0

    def _wake_everything(self) -> None:
        for namespaced, informer in self.caches.federated.items():
            for view in informer.values():
                self.dispatch.wake(FederatedKey(namespaced, key_of(view.metadata)), priority=1)

    # Running.

    async def run(self) -> None:
        """Until cancelled."""
        try:
            self.tasks.start("events", self._events.run)
            self.tasks.start("watch cluster secrets", self._secrets.run)
            self.tasks.start("watch priority classes", self._priorities.informer.run)
            await self.caches.run()
            await self._secrets.synced.wait()
            self._profiles.check_all()
            # Every shard is connected to every member; only the clusters' owner says anything about them.
            clusters = self.clusters if self.options.shard.owns_cluster_scoped else self._followers
            self._start_loop("clusters", self.cluster_queue, clusters.reconcile, 16)
            self._start_loop("federate", self.federate.queue, self.federate.reconcile, self.options.workers)
            self._start_loop("dispatch", self.dispatch.queue, self.dispatch.reconcile, self.options.workers)
            # Few: statuses must not hold up what is on its way to members.
            self._start_loop("aggregate", self.aggregate.queue, self.aggregate.reconcile, 4)
            self._start_loop("migrate", self.migrate.queue, self.migrate.reconcile, 4)
            if self.options.shard.owns_cluster_scoped:
                self._start_loop("failover", self._failover.queue, self._failover.reconcile, 1)
                self._start_loop("permissions", self._permissions.queue, self._permissions.reconcile, 1)
            if self.reserved.peers is not None:
                self.tasks.start("watch neighbours", self.reserved.peers.informer.run)
                self.tasks.start("tell neighbours", self.reserved.peers.run)
            self.tasks.start("sweep fleet", self._fleet_sweep.run)
            self.tasks.start("sweep members", self._reach_sweep.run)
            self.tasks.start("sweep profiles", self._profile_sweep.run)
            self.tasks.start("measure", self._measure)
            self.ready.set()
            await asyncio.Event().wait()  # parts that die are seen by `healthy`; only cancellation ends this
        finally:
            self.ready.clear()
            await self.stop()

    def problems(self) -> list[str]:
        """Parts that died or do not get on, and what else only a restart mends, for the health check."""
        dead = [f"{name}: {why}" for name, why in self.tasks.failures.items()]
        stalled = [problem for pace in self._paces if (problem := pace.problem())]
        return dead + stalled + (self._workers.problems() if self._workers is not None else [])

    def notes(self) -> list[str]:
        """What is not well and no reason to start anew: plugins of others that do not answer."""
        silent = self._workers.silent if self._workers is not None else {}
        return [f"plugin {name!r} {why}" for name, why in sorted(silent.items())]

    async def stop(self) -> None:
        await self.tasks.close()
        await self.federate.close()
        await self._profiles.close()
        await self._webhooks.close()
        await self.dispatch.close()
        await self.members.close()

    def _start_loop(
        self, name: str, queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[Result | None]], workers: int
    ) -> None:
        seconds = self.metrics.reconcile.labels(name)
        shard = self.options.shard

        async def measured(key: K) -> Result | None:
            if isinstance(key, SourceKey | FederatedKey) and not shard.owns(split_key(key.key)[0]):
                return None
            started = time.perf_counter()
            try:
                return await reconcile(key)
            except FenceLost:
                return None
            finally:
                seconds.observe(time.perf_counter() - started)

        def failed(key: K, error: Exception) -> None:
            self.metrics.failures.labels(name).inc()

        pace: Pace[K] = Pace(name, self.metrics.spinning.labels(name).inc)
        self._paces.append(pace)
        self.tasks.start(
            name,
            lambda: run_workers(
                queue, measured, workers, on_error=failed, pace=pace, conflict_delay=self.timings.conflict
            ),
        )

    async def _measure(self) -> None:
        """Gauges and staleness that nothing else moves, once a second; the lag is how much later than a second it comes."""
        queues: dict[str, WorkQueue[Any]] = {
            "clusters": self.cluster_queue,
            "federate": self.federate.queue,
            "dispatch": self.dispatch.queue,
            "aggregate": self.aggregate.queue,
            "migrate": self.migrate.queue,
        }
        while True:
            before = time.monotonic()
            await asyncio.sleep(1.0)
            now = time.monotonic()
            self.metrics.loop_lag.set(max(now - before - 1.0, 0.0))
            self._prober.judge_figures(now)
            for name, queue in queues.items():
                self.metrics.queue_length.labels(name).set(len(queue))
                self.metrics.queue_age.labels(name).set(queue.oldest_age())
            oldest: dict[str, float] = {}
            for (cluster, _), informer in self.collector.informers().items():
                oldest[cluster] = max(oldest.get(cluster, 0.0), now - informer.last_event)
            for cluster, age in oldest.items():
                self.metrics.watch_age.labels(cluster).set(age)
            if self._workers is not None:
                for plugin in self._workers.plugins:
                    self.metrics.plugin_silent.labels(plugin).set(plugin in self._workers.silent)
                for package, times in self._workers.ended.items():
                    self.metrics.plugin_ended.labels(package).set(times)
            snapshot = self.fleet.snapshot
            self.metrics.clusters.labels("joined").set(int(snapshot.joined.sum()))
            self.metrics.clusters.labels("ready").set(int(snapshot.ready.sum()))


def _fenced(connect: Connector, fence: Fence | None) -> Connector:
    """Members are written to under the same fence as the control plane."""
    return lambda name, connection, challenge: fenced(connect(name, connection, challenge), fence)


def _more_than_health(change: Change[FederatedCluster]) -> bool:
    """Our own heartbeat must not be a reason for the next probe: a member slower than a second would be probed for ever."""
    old, new = change.old, change.new
    if old is None or new is None or old.joined != new.joined:
        return True
    before, after = old.metadata, new.metadata
    return (before.generation, before.labels, before.annotations, before.finalizers, before.deletion_timestamp) != (
        after.generation,
        after.labels,
        after.annotations,
        after.finalizers,
        after.deletion_timestamp,
    )


def _pause_changed(change: Change[Any]) -> bool:
    old = change.old.metadata.annotations.get(keys.PAUSED) if change.old is not None else None
    new = change.new.metadata.annotations.get(keys.PAUSED) if change.new is not None else None
    return bool(old != new)
