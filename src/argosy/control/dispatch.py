"""Dispatch: propagate a federated object to the members in its placements, and remove it from those no longer there.

One pass over one object: clusters whose record says that they already have exactly this are skipped without rendering; the
others are written in parallel; one status write reports the round. A slow cluster is reported later and holds up neither the
other clusters, nor their report, nor other objects (see `rounds`).

Deleted are copies in clusters that may hold one (by placements, the recorded removals, or status) and are no longer wanted. A
cluster or source that cannot be seen never causes a deletion. Nor does a template that is refused (`plan.copies.identity`): for
such an object nothing is written to any member, and nothing removed.
"""

import functools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.conditions import EventReason, Propagation, Refused
from argosy.api.shards import WHOLE, Shard, bucket_of
from argosy.api.types import FederatedCluster, PropagationEntry
from argosy.control.brake.brake import Brake
from argosy.control.brake.deletions import Deletion
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches, SourceChange
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import FederatedKey, SourceKey
from argosy.control.caches.views import FederatedView, SourceView, same_but_for_status
from argosy.control.collect import Collector, CopyChange
from argosy.control.context import ControllerContext
from argosy.control.copies import deletion
from argosy.control.copies.item import Item, Nobodys, item_of
from argosy.control.copies.operations import Applied, Operations
from argosy.control.copies.pause import Pause, PauseGuard, pause_changed
from argosy.control.copies.replacements import is_served_elsewhere
from argosy.control.copies.report import Report
from argosy.control.copies.rounds import Rounds, Work, next_round
from argosy.control.copies.unsent import unsent, unsent_anywhere
from argosy.control.fence import Withheld
from argosy.control.members.guarded import Guarded
from argosy.control.members.member import Connected, Member, Members
from argosy.control.sharding.shards import NAMESPACES
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.latency import LatencyMarks
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.control.wake import DISPATCH, Loop, Sweep, Wake, itself
from argosy.kube.client import Client
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata, Partial, key_of
from argosy.kube.queue import Result, WorkQueue
from argosy.plan.brake.cause import Cause
from argosy.plan.copies import adoption, placement
from argosy.plan.copies.identity import Refusal
from argosy.plan.copies.render import (
    RenderError,
    in_bucket,
    is_as_written,
    is_current,
    needs_update,
    render,
    version_of,
)
from argosy.plan.failover import failover
from argosy.plan.pipeline import pending

__all__ = ["Dispatch"]


class Dispatch(Loop[FederatedKey]):
    name = DISPATCH

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[FederatedKey],
        caches: Caches,
        fleet: LiveFleet,
        members: Members,
        collector: Collector,
        operations: Operations,
        pause: Pause,
        brake: Brake,
        recorder: ObjectRecorder,
        marks: LatencyMarks,
        metrics: Metrics,
        timings: Timings,
        *,
        workers: int,
        shard: Shard = WHOLE,
    ):
        self.queue = queue
        self.workers = workers
        self._shard = shard
        self._caches = caches
        self._fleet = fleet
        self._members = members
        self._collector = collector
        self._operations = operations
        self._pause = pause
        self._brake = brake
        self._recorder = recorder
        self._report = Report(client, caches, recorder, metrics)
        self._marks = marks
        self._metrics = metrics
        self._timings = timings
        self._rounds: Rounds[FederatedKey] = Rounds(timings.round_patience, queue.add)

    @classmethod
    def of(cls, shared: ControllerContext) -> "Dispatch":
        return cls(
            shared.client,
            shared.queue(),
            shared.caches,
            shared.fleet,
            shared.members,
            shared.collector,
            shared.operations,
            shared.pause,
            shared.brake,
            shared.recorder,
            shared.arrival,
            shared.metrics,
            shared.timings,
            workers=shared.options.workers,
            shard=shared.options.shard,
        )

    async def close(self) -> None:
        await self._rounds.close()

    # What wakes an object.

    def wakes(self) -> Iterable[Wake[Any, FederatedKey] | Sweep[Any, FederatedKey]]:
        caches, settled = self._caches, self._timings.member_event
        yield Wake(caches.federated_changes, self._of_federated, "it changed")
        yield Wake(caches.source_changes, self._of_source, "its source came, was resumed, or says more of its deletion")
        yield Wake(caches.catalog.changes, self._of_type, "its type came or changed: it may have waited for that", 1)
        gone = "its type is not federated any more"
        yield Wake(caches.catalog.changes, self._of_gone_type, gone, 1, self._timings.types_kept)
        yield Wake(self._brake.judged, self._of_judged, "whether it is deleted with its copies was decided")
        yield Wake(caches.system, self._if_fleet_paused, "the fleet was paused or resumed", 1)
        changes = self._collector.changes
        yield Wake(changes, self._of_removed_copy, "a copy that was to go is gone")
        yield Wake(changes, self._of_lost_copy, "a copy that was to stay is gone", delay=settled)
        yield Wake(changes, self._of_drifted_copy, "a copy is not as it was written", 1, settled)
        yield Sweep(caches.clusters, _paused_or_resumed, self._in_clusters, "a cluster was paused or resumed", 1)
        why = "a member that was not ready answers again"
        yield Sweep(caches.clusters, _answering_again, self._in_clusters, why, 1)
        yield Sweep(self._members.changes, _connected, self._in_clusters, "a member was connected", 1)
        yield Sweep(self._members.recovered, itself, self._in_clusters, "a member answers again", 1)
        yield Sweep(self._fleet.reach, itself, self._in_clusters, "a cluster came, went or became ready", 1)

    def _of_federated(self, change: Change[FederatedView]) -> list[FederatedKey]:
        if change.origin == DISPATCH and change.new is not None and same_but_for_status(change.old, change.new):
            return []
        return [FederatedKey("/" in change.key, change.key)]

    def _of_source(self, told: SourceChange) -> list[FederatedKey]:
        """The source says whether a deletion is intended, and what is paused; without a source nothing is propagated."""
        change, view = told.change, self._caches.federated_view(told.key)
        if change.origin or change.new is None or view is None:
            return []
        if not view.metadata.deletion_timestamp and change.old is not None and not pause_changed(change):
            return []
        return [told.key.federated]

    def _of_type(self, types: TypeChange) -> Iterator[FederatedKey]:
        old, new = types
        if new is None or (old is not None and old.spec == new.spec):
            return
        label = (new.api_version, new.kind)
        yield from (key for key, view in self._all() if label in view.metadata.labels.items())

    def _of_gone_type(self, types: TypeChange) -> Iterator[FederatedKey]:
        old, new = types
        if old is not None and new is None:
            label = (old.api_version, old.kind)
            yield from (key for key, view in self._all() if label in view.metadata.labels.items())

    def _of_judged(self, key: SourceKey) -> list[FederatedKey]:
        view = self._caches.federated_view(key)
        return [key.federated] if view is not None and view.metadata.deletion_timestamp else []

    def _if_fleet_paused(self, change: Change[Partial]) -> Iterator[FederatedKey]:
        if pause_changed(change):
            yield from (key for key, _ in self._all())

    def _in_clusters(self, clusters: Collection[str]) -> Iterator[FederatedKey | None]:
        """Everything that is or was in these clusters."""
        for key, view in self._all():
            noted = placement.to_be_removed(view.metadata.annotations)
            recorded = (entry.cluster for entry in view.status.clusters)
            concerned = not view.placed.isdisjoint(clusters) or any(name in clusters for name in (*noted, *recorded))
            yield key if concerned else None

    def _all(self) -> Iterator[tuple[FederatedKey, FederatedView]]:
        for namespaced, informer in self._caches.federated.items():
            for view in informer.values():
                yield FederatedKey(namespaced, key_of(view.metadata)), view

    def _of_removed_copy(self, copy: CopyChange) -> list[FederatedKey]:
        return self._of_gone_copy(copy, wanted=False)

    def _of_lost_copy(self, copy: CopyChange) -> list[FederatedKey]:
        return self._of_gone_copy(copy, wanted=True)

    def _of_gone_copy(self, copy: CopyChange, wanted: bool) -> list[FederatedKey]:
        view = self._caches.federated_view(copy.source)
        if view is None or copy.change.new is not None or copy.change.origin:
            return []
        stays = not view.metadata.deletion_timestamp and copy.cluster in view.placed
        return [copy.source.federated] if stays == wanted else []

    def _of_drifted_copy(self, copy: CopyChange) -> list[FederatedKey]:
        view, change = self._caches.federated_view(copy.source), copy.change
        if view is None or change.new is None or change.origin:
            return []
        found = change.new.metadata
        if change.old is not None and not _drifted(change.old.metadata, found):
            return []
        record = next((entry for entry in view.status.clusters if entry.cluster == copy.cluster), None)
        return [] if record is not None and is_as_written(record, found) else [copy.source.federated]

    # One pass.

    async def reconcile(self, key: FederatedKey) -> Result | None:
        item = item_of(self._caches, key)
        if item is None:
            self._report.forget(key)
            return None
        if isinstance(item, Nobodys):
            await self._report.refused(key, item.federated, item.refusal)
            return None
        self._collector.use(item.config)
        if item.federated.metadata.deletion_timestamp:
            return await self._delete(item)
        if item.refusal is not None:
            await self._refuse(item, item.refusal)
            return None
        if not pending.finished(item.annotations.get(keys.PENDING_CONTROLLERS)):
            await self._report.held(item)
            return None
        if keys.SYNC_FINALIZER not in item.federated.metadata.finalizers:
            await self._report.finalizers(item, sorted({*item.federated.metadata.finalizers, keys.SYNC_FINALIZER}))
            return None  # its own event wakes the object again
        if item.annotations.get(keys.DRY_RUN) == "true" and not item.federated.status.clusters:
            self._recorder.event(item.federated, "Normal", EventReason.DRY_RUN_WORKED, "dry run: nothing was created")
            return None
        # The source's own word counts before it is mirrored, which may be later than this pass. A source that was resumed is
        # waited for: what it says otherwise is mirrored with that.
        if self._pause.object(item.annotations) or self._pause.source(item.source, item.annotations):
            await self._report.round(
                item, unsent_anywhere(item, self._caches.clusters, self._collector), complete=False
            )
            return None
        return await self._round(item)

    async def _refuse(self, item: Item, refusal: Refusal) -> None:
        """Nothing is written and nothing removed: copies in members stay. The object is woken when the cause changes."""
        if refusal.reason is Refused.NO_SOURCE and self._caches.sources_awaited(item.config.name):
            return
        await self._report.refused(item.key, item.federated, refusal)

    async def _round(self, item: Item) -> Result | None:
        """Bring every affected cluster to its desired state and report."""
        wanted, concerned = set(item.federated.placed), placement.may_hold_copies(item.federated)
        works = {
            cluster: Work(
                item.aim(cluster, cluster in wanted),
                functools.partial(self._settle, item, cluster, cluster in wanted),
            )
            for cluster in sorted(concerned)
            if not self._is_connecting(item, cluster, cluster in wanted)
        }
        connecting = {cluster: unsent(item, cluster, self._collector) for cluster in concerned - works.keys()}
        results = connecting | await self._rounds.run(item.key, works)
        complete = not connecting and len(results) == len(concerned)
        await self._report.round(item, results, complete)
        if complete and all(applied.status is Propagation.OK for applied in results.values()):
            generation = int((item.federated.spec.template.get("metadata") or {}).get("generation") or 0)
            self._marks.finished(item.source, generation, item.config.name)
        return self._next(results)

    def _is_connecting(self, item: Item, cluster_name: str, wanted: bool) -> bool:
        """Whether the cluster could be written to but for its connection, which wakes the object when it is there.

        Until then nobody knows what the cluster has: what was recorded does not count for what is wanted now.
        """
        cluster = self._caches.clusters.get(cluster_name)
        if cluster is None or self._pause.cluster(cluster) or self._members.get(cluster_name) is not None:
            return False
        return self._obstacle(item, cluster, item.record(cluster_name), wanted) is None

    async def _settle(self, item: Item, cluster_name: str, wanted: bool) -> Applied:
        """One object in one cluster."""
        try:
            return await self._brought(item, cluster_name, wanted)
        except Withheld:
            return msgspec.structs.replace(unsent(item, cluster_name, self._collector), withheld=True)

    async def _brought(self, item: Item, cluster_name: str, wanted: bool) -> Applied:
        record = item.record(cluster_name)
        cluster = self._caches.clusters.get(cluster_name)
        if cluster is None:  # it left the federation, and its copies are no longer ours
            return Applied(None)
        if self._pause.cluster(cluster):
            return unsent(item, cluster_name, self._collector)
        obstacle = self._obstacle(item, cluster, record, wanted)
        member = self._members.get(cluster_name)
        if obstacle is not None:
            if obstacle.status is None and _cascades(cluster):
                waiting = Applied(Propagation.WAITING_FOR_CASCADING_DELETION)
                return waiting if member is None else await self._operations.absent(member)
            return obstacle
        if member is None:  # it was disconnected just now, and is connected again before long, which wakes the object
            return unsent(item, cluster_name, self._collector)
        if not wanted:
            if cluster_name not in item.noted:  # the next pass notes it, if that is let go
                return unsent(item, cluster_name, self._collector)
            if failover.has_failed(cluster) and not is_served_elsewhere(item, self._caches, self._collector):
                return Applied(Propagation.WAITING_FOR_REMOVAL)
            return await self._operations.remove(self._guarded(item, member), item.config, item.member_key)
        return self._awaiting_namespace(item, await self._ensure(item, member, record), cluster_name)

    def _awaiting_namespace(self, item: Item, applied: Applied, cluster: str) -> Applied:
        """A namespace that is still being propagated is no failure of the objects in it."""
        if not applied.lacks_namespace or not item.key.namespaced:
            return applied
        view = self._caches.federated_view(SourceKey(NAMESPACES, item.federated.metadata.namespace))
        if view is None or cluster not in view.placed:
            return applied
        state = next((entry.status for entry in view.status.clusters if entry.cluster == cluster), None)
        if state not in (None, Propagation.OK, Propagation.PENDING_CREATE):
            return applied
        return Applied(Propagation.PENDING_CREATE, retry_after=self._timings.conflict)

    def _obstacle(
        self, item: Item, cluster: FederatedCluster, record: PropagationEntry | None, wanted: bool
    ) -> Applied | None:
        """Why nothing can be written to the cluster now."""
        name = cluster.name
        if not cluster.joined:
            if not wanted and _never_written(record):
                return Applied(None)
            return Applied(Propagation.CLUSTER_NOT_READY if wanted else Propagation.WAITING_FOR_REMOVAL)
        if cluster.terminating:
            if _cascades(cluster):
                known = self._collector.synced(name, item.config.name)
                absent = known and self._collector.get(name, item.config.name, item.member_key) is None
                return Applied(None if absent else Propagation.WAITING_FOR_CASCADING_DELETION)
            return Applied(Propagation.CLUSTER_TERMINATING if wanted else None)
        if not cluster.answers:
            return Applied(Propagation.CLUSTER_NOT_READY if wanted else Propagation.WAITING_FOR_REMOVAL)
        if not cluster.ready and not self._collector.is_followed(name, item.config.name):
            waits = Propagation.CLUSTER_NOT_READY if wanted else Propagation.WAITING_FOR_REMOVAL
            return Applied(waits, retry_after=self._timings.conflict)
        if wanted and (why := item.held.why(name)):
            return Applied(Propagation.APPLY_OVERRIDES_FAILED, held=why)
        if wanted and keys.CASCADING_DELETE_FINALIZER not in cluster.metadata.finalizers:
            # Without the finalizer the cluster could be deleted during our write.
            return Applied(Propagation.FINALIZER_CHECK_FAILED, retry_after=self._timings.conflict)
        return None

    def _labelled(self, item: Item, desired: dict[str, Any]) -> dict[str, Any]:
        return desired if self._shard.is_whole else in_bucket(desired, bucket_of(item.federated.metadata.namespace))

    async def _ensure(self, item: Item, member: Member, record: PropagationEntry | None) -> Applied:
        template, annotations = item.federated.spec.template, item.annotations
        patches = item.patches(member.name)
        wanted_digest = item.digest(member.name)
        observed = self._collector.get(member.name, item.config.name, item.member_key)
        since = item.since(member.name, observed.metadata if observed is not None else None)
        settled = since.reports or not since.left
        if settled and observed is not None and is_current(record, wanted_digest, observed.metadata, template, patches):
            return Applied(Propagation.OK, observed.metadata)
        # Where others' changes were looked at, the version on record says nothing about what the copy is like.
        written = None if since.left or since.keeps else record
        try:
            adopt = adoption.adopts(annotations) and adoption.may_adopt(annotations, member.name)
            return await self._operations.apply(
                self._guarded(item, member),
                item.config,
                item.member_key,
                lambda present: self._labelled(item, render(template, patches, present, annotations, item.config)),
                lambda desired, present: (
                    not needs_update(desired, present, written, wanted_digest, version_of(_metadata(present)))
                ),
                adopt=adopt,
                since=since,
            )
        except RenderError as error:
            return Applied(error.status, error=str(error))
        except adoption.AdoptionError as error:
            return Applied(Propagation.COMPUTE_RESOURCE_FAILED, error=str(error))

    def _next(self, results: dict[str, Applied]) -> Result | None:
        found = next_round(results, self._timings.deletion_recheck)
        if found is not None and found.error:
            self._metrics.failures.labels("dispatch").inc()
        return found

    # Deletion.

    async def _delete(self, item: Item) -> Result | None:
        """Remove all copies from members; the finalizer goes when all of them verifiably hold none."""
        if keys.SYNC_FINALIZER not in item.federated.metadata.finalizers:
            return None
        # A source that is being deleted no longer mirrors its annotations, but may still be resumed.
        if self._pause.source(item.source, item.annotations):
            return None
        source = self._caches.source(item.source)
        if not deletion.is_meant(item, source):
            return await self._hold_deletion(item, source)
        match self._brake.deletion(item.source):
            case Deletion.WAIT:
                return Result(requeue_after=self._timings.conflict)
            case Deletion.HELD:
                held = self._brake.held_deletion(item.source)
                await self._report.held_deletion(item, held.message if held else "", Cause.SOURCES_DELETED)
                return None
        works = {
            cluster: Work("clean", functools.partial(self._clean, item, cluster))
            for cluster in sorted(placement.may_hold_copies(item.federated))
        }
        results = await self._rounds.run(item.key, works)
        complete = len(results) == len(works)
        if complete and all(applied.status is None for applied in results.values()):
            left = [f for f in item.federated.metadata.finalizers if f != keys.SYNC_FINALIZER]
            await self._report.finalizers(item, left)
            if any(applied.wrote == "release" for applied in results.values()):  # copies stay, and nothing else says so
                self._report.tell(item, results)
            self._marks.drop(item.source)
            self._report.forget(item.key)
            return None
        await self._report.round(item, results, complete)
        return self._next(results) or Result(requeue_after=self._timings.deletion_recheck)

    async def _hold_deletion(self, item: Item, source: SourceView | None) -> Result | None:
        """Copies stay, and the object says why; it is woken when a source appears."""
        if not self._caches.sources_synced(item.config.name):
            return Result(requeue_after=self._timings.deletion_recheck)
        await self._report.held_deletion(item, deletion.why_held(item, source))
        return None

    async def _clean(self, item: Item, cluster_name: str) -> Applied:
        cluster = self._caches.clusters.get(cluster_name)
        if cluster is None or (not cluster.joined and _never_written(item.record(cluster_name))):
            return Applied(None)
        member = self._members.get(cluster_name)
        if not cluster.joined or not cluster.answers or member is None:
            return Applied(Propagation.CLUSTER_NOT_READY)
        if self._pause.cluster(cluster):
            return Applied(Propagation.WAITING_FOR_REMOVAL)
        rescued = self._brake.deletion(item.source) is Deletion.RESCUE
        stays = functools.partial(adoption.orphans, item.annotations, rescued=rescued)
        guarded = self._guarded(item, member)
        try:
            return await self._operations.remove(guarded, item.config, item.member_key, stays, rescued=rescued)
        except Withheld:
            return Applied(Propagation.WAITING_FOR_REMOVAL, withheld=True)

    def _guarded(self, item: Item, member: Member) -> Guarded:
        """What is paused while it is under way is not sent."""
        return Guarded(member, PauseGuard(self._pause, self._caches, member.name, item.source, item.annotations))


def _connected(connected: Connected) -> tuple[str, ...]:
    return (connected.name,) if connected.member is not None else ()


def _answering_again(change: Change[FederatedCluster]) -> tuple[str, ...]:
    old, new = change.old, change.new
    answers = old is not None and new is not None and new.answers and not old.answers
    return (change.key,) if answers else ()


def _paused_or_resumed(change: Change[FederatedCluster]) -> tuple[str, ...]:
    return (change.key,) if pause_changed(change) else ()


def _cascades(cluster: FederatedCluster) -> bool:
    """Whether the cluster leaves with cascading deletion of our copies."""
    return cluster.joined and cluster.terminating and keys.CASCADING_DELETE in cluster.metadata.annotations


def _never_written(record: PropagationEntry | None) -> bool:
    """Nothing of ours can be in a cluster that never joined, unless a record says so."""
    return record is None or not record.version


def _drifted(old: Metadata, new: Metadata) -> bool:
    """Whether more than the status may have changed."""
    if not new.generation or old.uid != new.uid:
        return True
    return (old.generation, old.labels, old.annotations) != (new.generation, new.labels, new.annotations)


def _metadata(obj: dict[str, Any]) -> Metadata:
    return msgspec.convert(obj["metadata"], Metadata)
