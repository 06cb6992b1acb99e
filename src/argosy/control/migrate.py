"""Migrate: how many replicas members are able to run, for each workload whose policy uses auto migration.

Woken by member objects, by pods that get a node or fail to, by thresholds that pass and by clusters that gain room. It writes
nothing: federate's next pass stores the result together with the placement that follows from it.

Pods come from the one watch on each member's pods (`probe`). The member is asked for the current ReplicaSet once per version of
the workload's copy there, and only while not all of its replicas are ready.
"""

import datetime
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

from argosy.api import keys
from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.informers import Caches
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.projection import as_object
from argosy.control.caches.views import FederatedView
from argosy.control.collect import Collector, CopyChange
from argosy.control.context import ControllerContext
from argosy.control.members.member import Members
from argosy.control.members.probe import PodChange, Prober
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Signal, Wake
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, BadAnswer, Forbidden, NotFound, TransportError
from argosy.kube.informer import Change
from argosy.kube.objects import HasMetadata, decode, split_key
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.resource import Resource
from argosy.plan.failover import auto_migration as migrate
from argosy.plan.failover.full_clusters import observed
from argosy.plan.fields import MISSHAPEN, number
from argosy.plan.scheduling.unit import AutoMigrationInfo

__all__ = ["Migrate"]

log = logging.getLogger(__name__)
_REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
_DEPLOYMENT = ("apps", "Deployment")
#: Pods are checked a moment after their threshold, so that it has passed however times are rounded.
_AFTER_THRESHOLD = 0.05


class _Present(NamedTuple):
    """The ReplicaSet of one version of a Deployment; None if it has none yet."""

    version: tuple[str, int]
    uid: str | None


class Migrate(Loop[SourceKey]):
    name = "migrate"
    workers = 4

    def __init__(
        self,
        queue: WorkQueue[SourceKey],
        caches: Caches,
        collector: Collector,
        members: Members,
        prober: Prober,
        fleet: LiveFleet,
        timings: Timings,
    ):
        self.queue = queue
        self._caches = caches
        self._collector = collector
        self._members = members
        self._prober = prober
        self._fleet = fleet
        self._timings = timings
        #: A workload whose estimates differ from its federated object's.
        self.found: Signal[SourceKey] = Signal("what members can run of a workload")
        self._infos: dict[SourceKey, AutoMigrationInfo] = {}
        #: By cluster, the workloads with an estimate there.
        self._capped: dict[str, dict[SourceKey, None]] = {}
        self._present: dict[tuple[str, SourceKey], _Present] = {}
        #: The workload of a ReplicaSet, as far as known.
        self._made_for: dict[tuple[str, str], SourceKey] = {}
        self._refusing: set[str] = set()

    @classmethod
    def of(cls, shared: ControllerContext) -> "Migrate":
        return cls(
            shared.queue(),
            shared.caches,
            shared.collector,
            shared.members,
            shared.prober,
            shared.fleet,
            shared.timings,
        )

    def info(self, key: SourceKey) -> AutoMigrationInfo | None:
        """What members were seen to be able to run; None if not checked yet."""
        return self._infos.get(key)

    # What wakes a workload.

    def wakes(self) -> Iterable[Wake[Any, SourceKey]]:
        quiet = self._timings.migration_quiet
        yield Wake(self._caches.federated_changes, self._of_federated, "it is to migrate, or is placed elsewhere")
        yield Wake(self._collector.changes, self._of_copy, "a member changed a copy", delay=quiet)
        yield Wake(self._prober.pods, self._of_pod, "a pod of it got a node, or failed to", delay=quiet)
        why = "a cluster it was too large for has room"
        yield Wake(self._fleet.room, self._capped_in, why, 1, self._timings.room_retry)

    def _of_federated(self, change: Change[FederatedView]) -> list[SourceKey]:
        view = change.new or change.old
        key = self._caches.source_of(view) if view is not None else None
        if view is None or key is None:
            return []
        if change.new is None or not _migrates(change.new):
            if change.old is not None and _migrates(change.old):
                self._forget(key)
            return []
        news = change.old is None or not _migrates(change.old) or change.old.placed != change.new.placed
        return [key] if news else []

    def _capped_in(self, cluster: str) -> list[SourceKey]:
        return list(self._capped.get(cluster, ()))

    def _of_copy(self, copy: CopyChange) -> list[SourceKey]:
        return [copy.source] if self._concerns(copy.source) else []

    def _of_pod(self, pod: PodChange) -> list[SourceKey]:
        """The name of an unknown ReplicaSet tells its Deployment. If that is wrong, the change of the Deployment's status wakes
        it."""
        key = self._made_for.get((pod.cluster, pod.replica_set))
        if key is None:
            config = self._caches.catalog.of_kind("apps/v1", "Deployment")
            parts = pod.key.rsplit("-", 2)
            if config is None or len(parts) < 3:
                return []
            key = SourceKey(config.name, parts[0])
        return [key] if self._concerns(key) else []

    def _concerns(self, key: SourceKey) -> bool:
        view = self._caches.federated_view(key)
        return view is not None and _migrates(view)

    # One check.

    async def reconcile(self, key: SourceKey) -> Result | None:
        view, config = self._caches.federated_view(key), self._caches.catalog.get(key.type)
        if view is None or config is None or view.metadata.deletion_timestamp or not _serves(config):
            self._forget(key)
            return None
        annotations = view.metadata.annotations
        threshold = migrate.threshold_of(annotations.get(keys.POD_UNSCHEDULABLE_THRESHOLD))
        if threshold is None:
            self._forget(key)
            return None
        stored = migrate.info_of(annotations.get(keys.AUTO_MIGRATION_INFO))
        pictures: dict[str, migrate.Estimate | None] = {}
        for cluster in sorted(view.placed):
            try:
                seen, there = await self._picture(cluster, key, config, threshold)
            except (ApiError, TransportError, TimeoutError) as error:
                seen, there = None, True
                self._tell_refusal(cluster, error)
            if there:
                pictures[cluster] = seen
        # Asking members took time: the object may have been replaced meanwhile, or no longer migrate.
        now = self._caches.federated_view(key)
        if now is None or now.metadata.uid != view.metadata.uid or not _migrates(now):
            self._forget(key)
            return None
        raw = self._caches.source_raw(key)
        info = observed(pictures, stored, self._fleet.snapshot.member, decode(raw, dict) if raw is not None else None)
        self._remember(key, info)
        if info != stored:
            self.found.tell(key)
        crossings = [seen.next_crossing for seen in pictures.values() if seen is not None and seen.next_crossing]
        if crossings:
            return Result(requeue_after=min(crossings).total_seconds() + _AFTER_THRESHOLD)
        if None in pictures.values():
            return Result(requeue_after=self._timings.report_period)
        return None

    async def _picture(
        self, cluster: str, key: SourceKey, config: FederatedTypeConfig, threshold: datetime.timedelta
    ) -> tuple[migrate.Estimate | None, bool]:
        """The estimate for a member, None if it is unreachable; and whether it has a copy, or might."""
        member, known = self._members.get(cluster), self._caches.clusters.get(cluster)
        if member is None or known is None or not known.ready or not self._collector.synced(cluster, config.name):
            return None, True
        found = self._collector.get(cluster, config.name, key.key)
        if found is None:
            return None, False
        copy, paths = as_object(found), config.spec.path_definition
        desired = number(copy, paths.replicas_spec) or 0
        replicas, ready = number(copy, paths.replicas_status) or 0, number(copy, paths.ready_replicas_status) or 0
        pods = None
        if replicas != ready:
            uid = await self._replica_set(cluster, key, config, found)
            pods = self._prober.pods_of(cluster, uid) if uid is not None else None
            if uid is not None and pods is None:
                return None, True
        now = clock.now()
        return migrate.estimate(desired, replicas, ready, pods, now, threshold), True

    def _tell_refusal(self, cluster: str, error: Exception) -> None:
        """Once per cluster: a missing right is missing for every workload."""
        if isinstance(error, Forbidden) and cluster not in self._refusing:
            self._refusing.add(cluster)
            log.warning("member %s: unschedulable pods are not migrated: %s", cluster, error)

    async def _replica_set(
        self, cluster: str, key: SourceKey, config: FederatedTypeConfig, copy: HasMetadata
    ) -> str | None:
        """The uid of the ReplicaSet of the copy's current template."""
        version = (copy.metadata.uid, copy.metadata.generation)
        present = self._present.get((cluster, key))
        if present is not None and present.version == version and present.uid is not None:
            return present.uid
        member = self._members.get(cluster)
        if member is None:
            return None
        namespace, name = split_key(key.key)

        async def ask(client: Client) -> str | None:
            try:
                deployment = await client.get(config.resource, name, namespace)
            except NotFound:
                return None
            try:
                selector = (deployment["spec"].get("selector") or {}).get("matchLabels") or {}
                text = ",".join(f"{label}={value}" for label, value in sorted(selector.items()))
                listed = await client.list(_REPLICA_SETS, namespace, label_selector=text, resource_version="0")
                newest = migrate.newest_replica_set(deployment, listed.items)
                return str(newest["metadata"]["uid"]) if newest is not None else None
            except MISSHAPEN as error:
                raise BadAnswer(f"{name} or its ReplicaSets are invalid: {error!r}") from None

        uid = await member.call(ask)
        if present is not None and present.uid is not None:
            self._made_for.pop((cluster, present.uid), None)
        self._present[cluster, key] = _Present(version, uid)
        if uid is not None:
            self._made_for[cluster, uid] = key
        return uid

    # Memory.

    def _remember(self, key: SourceKey, info: AutoMigrationInfo) -> None:
        before = self._infos.get(key)
        self._infos[key] = info
        for cluster in before.estimated_capacity if before is not None else ():
            if cluster not in info.estimated_capacity:
                self._uncap(cluster, key)
        for cluster in info.estimated_capacity:
            self._capped.setdefault(cluster, {})[key] = None

    def _uncap(self, cluster: str, key: SourceKey) -> None:
        capped = self._capped.get(cluster, {})
        capped.pop(key, None)
        if not capped:
            self._capped.pop(cluster, None)

    def _forget(self, key: SourceKey) -> None:
        info = self._infos.pop(key, None)
        for cluster in info.estimated_capacity if info is not None else ():
            self._uncap(cluster, key)
        for cluster in list(self._fleet.snapshot.names):
            present = self._present.pop((cluster, key), None)
            if present is not None and present.uid is not None:
                self._made_for.pop((cluster, present.uid), None)


def _migrates(view: FederatedView) -> bool:
    return keys.POD_UNSCHEDULABLE_THRESHOLD in view.metadata.annotations


def _serves(config: FederatedTypeConfig) -> bool:
    """Pods are found by their ReplicaSets, which only Deployments have."""
    source = config.spec.source_type
    return config.spec.auto_migration.enabled and (source.group, source.kind) == _DEPLOYMENT
