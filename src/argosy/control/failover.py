"""Failover: taints clusters that have failed, and removes the taint from those that have recovered. One key per cluster.

An annotation of the cluster says what is held up: by doubt, or because workloads leave a few at a time.

Scheduling decides what the taint means for workloads. This loop keeps the taint as `plan.failover.failover` says, by the ready
condition that `control/clusters` writes, and wakes workloads in failback when their members report. Runs only in the shard
that owns cluster-scoped objects.
"""

import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.api.conditions import READY, EventReason
from argosy.api.types import FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.projection import as_object
from argosy.control.collect import Collector, CopyChange
from argosy.control.context import ControllerContext
from argosy.control.scheduling.evictions import Evictions
from argosy.control.telemetry.metrics import Metrics
from argosy.control.wake import Loop, Wake
from argosy.kube import clock
from argosy.kube.client import Client, Patch
from argosy.kube.errors import NotFound
from argosy.kube.events import EventRecorder
from argosy.kube.informer import Change
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_of
from argosy.plan.failover import failover, pacing
from argosy.plan.failover.failback import failback_of
from argosy.plan.fields import get

__all__ = ["Failback", "Failover"]


class Failover(Loop[str]):
    name = "failover"
    workers = 1

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[str],
        caches: Caches,
        recorder: EventRecorder,
        rules: failover.Rules,
        evictions: Evictions,
        metrics: Metrics,
        *,
        debounce: float,
        report: float,
    ):
        """`debounce` is how long the stored health of a cluster may lag behind, `report` how often it is told how far workloads
        that leave are."""
        self.queue = queue
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._rules = rules
        self._evictions = evictions
        self._metrics = metrics
        self._report = report
        self._began = clock.monotonic() + debounce
        #: Clusters that are as they are only because too many are unready.
        self._doubted: set[str] = set()

    @classmethod
    def of(cls, shared: ControllerContext) -> "Failover":
        timings = shared.timings
        rules = failover.Rules(timings.failover_after, timings.failback_after)
        return cls(
            shared.client,
            shared.queue(),
            shared.caches,
            shared.events,
            rules,
            shared.evictions,
            shared.metrics,
            debounce=timings.unready_after,
            report=timings.health_period,
        )

    def wakes(self) -> Iterable[Wake[Any, str]]:
        why = "it, or another one, became ready or unready, or its taints changed"
        yield Wake(self._caches.clusters, self._of_cluster, why)

    def _of_cluster(self, change: Change[FederatedCluster]) -> list[str]:
        if change.old is not None and change.new is not None and _facts(change.old) == _facts(change.new):
            return []
        return [change.key, *self._doubted]

    async def reconcile(self, name: str) -> Result | None:
        cluster = self._caches.clusters.get(name)
        if cluster is None:
            self._doubted.discard(name)
            self._metrics.failover_suspended.set(bool(self._doubted))
            return None
        now = clock.now()
        unready = failover.unready_of(self._caches.clusters.values())
        doubt = pacing.are_too_many(self._evictions.pacing, *unready)
        watched = max(clock.monotonic() - self._began, 0.0)
        verdict = failover.verdict(cluster, self._rules, now, watched=watched, doubt=doubt)
        undoubted = failover.verdict(cluster, self._rules, now, watched=watched, doubt=False)
        waiting = self._evictions.waiting[name]
        state = ""
        if doubt and (verdict != undoubted or waiting):
            self._doubted.add(name)
            state = pacing.told_suspended(self._evictions.pacing, *unready)
        else:
            self._doubted.discard(name)
            if waiting:
                state = pacing.told_waiting(self._evictions.pacing, waiting)
        self._metrics.failover_suspended.set(bool(self._doubted))
        if verdict.taints is not None:
            cluster = await self._write(cluster, verdict.taints)
        await self._tell(cluster, state)
        again = [self._report] if failover.has_failed(cluster) else []
        again += [verdict.look_again] if verdict.look_again is not None else []
        return Result(requeue_after=min(again)) if again else None

    async def _tell(self, cluster: FederatedCluster, state: str) -> None:
        """What is held up, on the cluster. Of what waits only that it begins is an event."""
        before = cluster.metadata.annotations.get(keys.FAILOVER_STATE, "")
        if state == before:
            return
        body = {"metadata": {"annotations": {keys.FAILOVER_STATE: state or None}}}
        with contextlib.suppress(NotFound):
            raw = await self._client.patch(
                resources.FEDERATED_CLUSTERS, cluster.name, body, kind=Patch.MERGE, into=bytes
            )
            self._caches.clusters.remember(raw)
        if state and state.partition(":")[0] != before.partition(":")[0]:
            regarding = reference_of(resources.FEDERATED_CLUSTERS, cluster.metadata)
            self._recorder.event(regarding, "Warning", EventReason.FAILOVER_PACED, state)

    async def _write(self, cluster: FederatedCluster, taints: tuple[Any, ...]) -> FederatedCluster:
        # With resourceVersion: the list is replaced as a whole.
        body = {
            "metadata": {"resourceVersion": cluster.metadata.resource_version},
            "spec": {"taints": msgspec.to_builtins(taints) or None},
        }
        try:
            raw = await self._client.patch(
                resources.FEDERATED_CLUSTERS, cluster.name, body, kind=Patch.MERGE, into=bytes
            )
        except NotFound:
            return cluster
        self._caches.clusters.remember(raw)
        ready = cluster.condition(READY)
        since = ready.last_transition_time if ready is not None else None
        regarding = reference_of(resources.FEDERATED_CLUSTERS, cluster.metadata)
        if any(taint.key == keys.UNREADY_TAINT for taint in taints):
            message = (
                f"not ready since {since}: workloads that do not tolerate {keys.UNREADY_TAINT} are started elsewhere"
            )
            self._recorder.event(regarding, "Warning", EventReason.CLUSTER_FAILED, message)
        else:
            message = f"ready since {since}: workloads may come back"
            self._recorder.event(regarding, "Normal", EventReason.CLUSTER_RECOVERED, message)
        return self._caches.clusters.get(cluster.name) or cluster


class Failback:
    """Workloads in failback to a recovered cluster: their available replicas, and which one a changed copy belongs to."""

    def __init__(self, caches: Caches, collector: Collector):
        self._caches = caches
        self._collector = collector

    def available(self, key: SourceKey) -> dict[str, int] | None:
        """Available replicas in each reachable member; None if the type does not report them."""
        config, view = self._caches.catalog.get(key.type), self._caches.federated_view(key)
        path = config.spec.path_definition.available_replicas_status if config is not None else ""
        if config is None or view is None or not path or keys.FAILBACK not in view.metadata.annotations:
            return None
        numbers = {}
        for cluster in view.placed:
            known, found = self._caches.clusters.get(cluster), self._collector.get(cluster, config.name, key.key)
            if known is None or not known.answers or not self._collector.synced(cluster, config.name):
                continue
            lives = found is not None and not found.metadata.deletion_timestamp
            number = get(as_object(found), path, 0) if found is not None and lives else 0
            numbers[cluster] = number if isinstance(number, int) else 0
        return numbers

    def of_copy(self, copy: CopyChange) -> list[SourceKey]:
        """The workload, if it is in failback."""
        view = self._caches.federated_view(copy.source)
        on_its_way = view is not None and failback_of(view.metadata.annotations).target
        return [copy.source] if on_its_way else []


def _facts(cluster: FederatedCluster) -> tuple[Any, ...]:
    ready, metadata = cluster.condition(READY), cluster.metadata
    return (
        cluster.joined,
        cluster.terminating,
        ready.status if ready is not None else "",
        cluster.spec.taints,
        metadata.annotations,
    )
