"""Aggregate: the members' statuses back to the user, merged into the source's status, and by field in CollectedStatus.

Woken by member objects (batched, so that a burst costs one pass), by the source and by the federated object. Writes only what
changed: at most one CollectedStatus and one source status per pass.

A member's copy that is not a valid object of its kind, or too large to be stored with the others, must not affect the other
members' part: its cluster counts as unreachable and reports the problem, until the copy changes.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from argosy.api import keys, resources
from argosy.api.types import CollectedStatus, FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.control.caches.informers import Caches, SourceChange
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.projection import as_object
from argosy.control.caches.views import CollectedView, FederatedView
from argosy.control.causes import Causes
from argosy.control.collect import Collector, CopyChange, Readable
from argosy.control.context import ControllerContext
from argosy.control.members.probe import Prober, TroubleChange
from argosy.control.refusals import Refusals
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.latency import LatencyMarks
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.control.wake import AGGREGATE, FEDERATE, Loop, Sweep, Wake, itself
from argosy.kube import clock, mergepatch, timestamps
from argosy.kube.client import Client, Patch
from argosy.kube.errors import AlreadyExists, ApiError, BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound
from argosy.kube.informer import Change
from argosy.kube.objects import decode, split_key
from argosy.kube.queue import Result, WorkQueue
from argosy.plan.copies.placement import may_hold_copies, to_be_removed
from argosy.plan.fields import MISSHAPEN
from argosy.plan.kinds.observation import Observation
from argosy.plan.kinds.registry import kind_of
from argosy.plan.kinds.unmergeable import Unmergeable
from argosy.plan.status.aggregate import feedback_of, in_motion, source_status
from argosy.plan.status.collect import Seen, collected_status
from argosy.plan.status.misfit import misfit, overlarge
from argosy.plan.status.wanted import Known

__all__ = ["Aggregate"]

#: Annotations that conditions quote.
_SAID = (keys.HELD, keys.HELD_COPIES, keys.WAITS_FOR)


class _Untold(NamedTuple):
    """The times of the first and the last change, and whether replicas were seen starting or stopping."""

    first: float
    last: float
    moving: bool = False


class Aggregate(Loop[SourceKey]):
    name = AGGREGATE
    #: Few: statuses must not hold up propagation to members.
    workers = 4

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[SourceKey],
        caches: Caches,
        fleet: LiveFleet,
        collector: Collector,
        prober: Prober,
        refusals: Refusals,
        recorder: ObjectRecorder,
        marks: LatencyMarks,
        metrics: Metrics,
        timings: Timings,
        busy: Callable[[], bool],
    ):
        """`busy` tells whether objects are waiting to be propagated to members."""
        self.queue = queue
        self._fleet = fleet
        self._busy = busy
        self._client = client
        self._caches = caches
        self._collector = collector
        self._causes = Causes(caches, prober, refusals, recorder, timings)
        self._marks = marks
        self._metrics = metrics
        self._timings = timings
        #: Changes that were not reported yet.
        self._untold: dict[SourceKey, _Untold] = {}
        #: Clusters whose copies of an object were invalid when it was reported last.
        self._doubted: dict[SourceKey, frozenset[str]] = {}
        #: Objects that were reported although copies in a ready cluster could not be read.
        self._unread: dict[Readable, dict[SourceKey, None]] = {}

    @classmethod
    def of(cls, shared: ControllerContext, refusals: Refusals, busy: Callable[[], bool]) -> "Aggregate":
        return cls(
            shared.client,
            shared.queue(),
            shared.caches,
            shared.fleet,
            shared.collector,
            shared.prober,
            refusals,
            shared.recorder,
            shared.returning,
            shared.metrics,
            shared.timings,
            busy,
        )

    # What wakes an object.

    def wakes(self) -> Iterable[Wake[Any, SourceKey] | Sweep[Any, SourceKey]]:
        timings = self._timings
        yield Wake(self._collector.changes, self._of_copy, "a member changed a copy", delay=timings.status_quiet)
        yield Wake(self._collector.read, self._of_read, "copies could not be read before")
        pods, refused = self._causes.pods, self._causes.refused
        yield Wake(pods, self._of_pods, "pods of it do not start, or start again", delay=timings.status_quiet)
        yield Wake(refused, self._untold_of, "a member creates no pods for it, or does again")
        yield Wake(self._caches.source_changes, self._of_source, "a user changed it", delay=timings.status_quiet)
        # After a dispatch, changes in the members usually come first.
        federated, longest = self._caches.federated_changes, timings.status_longest
        yield Wake(federated, self._of_federated, "it was dispatched", delay=longest)
        why = "others wrote its collected status"
        yield Wake(self._caches.collected_changes, self._of_collected, why, delay=timings.status_quiet)
        yield Sweep(self._fleet.reach, itself, self._in_clusters, "a cluster can be read again, or no more", 1)
        yield Sweep(self._caches.clusters, _heard_of, self._in_clusters, "a cluster is heard of again, or no more", 1)

    def _of_copy(self, copy: CopyChange) -> list[SourceKey]:
        return [] if copy.change.origin else self._untold_of(copy.source)

    def _of_pods(self, change: TroubleChange) -> list[SourceKey]:
        key = self._causes.source_of(change)
        return self._untold_of(key) if key is not None else []

    def _of_read(self, readable: Readable) -> Iterable[SourceKey]:
        return self._unread.pop(readable, {})

    def _of_source(self, told: SourceChange) -> list[SourceKey]:
        if told.change.origin or told.change.new is None or self._caches.federated_view(told.key) is None:
            return []
        return self._untold_of(told.key)

    def _untold_of(self, key: SourceKey) -> list[SourceKey]:
        """Delayed until the object's members have settled: a roll-out costs a few merges, not hundreds."""
        now = clock.monotonic()
        before = self._untold.get(key)
        self._untold[key] = _Untold(now, now) if before is None else before._replace(last=now)
        return [key]

    def _of_federated(self, change: Change[FederatedView]) -> list[SourceKey]:
        """A write of federate is reported back once it was dispatched. What is dispatched nowhere is reported at once: new
        labels, the end of a removal, another reason for what holds the object."""
        if change.new is None or (change.origin == FEDERATE and not _tells_more(change.old, change.new)):
            return []
        key = self._caches.source_of(change.new)
        return [key] if key is not None else []

    def _of_collected(self, change: Change[CollectedView]) -> list[SourceKey]:
        """Also a former leader may have: what it had sent before may arrive late."""
        if change.origin or change.old is None:
            return []
        view = self._caches.federated[bool(change.old.metadata.namespace)].get(change.key)
        key = self._caches.source_of(view) if view is not None else None
        return [key] if key is not None else []

    def _in_clusters(self, clusters: Collection[str]) -> Iterator[SourceKey | None]:
        for gone in [each for each in self._unread if each.cluster not in self._caches.clusters]:
            del self._unread[gone]
        for key, _ in self._caches.all_sources():
            view = self._caches.federated_view(key)
            concerned = view is not None and any(entry.cluster in clusters for entry in view.status.clusters)
            yield key if concerned else None

    # One merge.

    async def reconcile(self, key: SourceKey) -> Result | None:
        untold = self._untold.get(key)
        if untold is not None and not self._is_due(untold):
            return Result(requeue_after=self._timings.status_quiet)
        self._untold.pop(key, None)
        config = self._caches.catalog.get(key.type)
        federated_raw = self._caches.federated_raw(key)
        if config is None or federated_raw is None:
            self._forget(key)
            return None
        federated = decode(federated_raw, FederatedObject)
        if federated.metadata.deletion_timestamp:
            self._forget(key)
            return None
        seen = self._seen(key, config, federated)
        if seen is None:
            return Result(requeue_after=self._timings.conflict)
        now = clock.monotonic()
        untold = untold or _Untold(now, now)
        try:
            result = await self._tell(key, config, federated, seen, untold)
        except (ApiError, *MISSHAPEN) as error:
            doubtful = self._doubtful(key, config, seen, error)
            if not doubtful:
                raise
            self._doubt(key, doubtful)
            believed = {name: Seen(None, reachable=False) if name in doubtful else each for name, each in seen.items()}
            return await self._tell(key, config, federated, believed, untold, frozenset(doubtful))
        self._doubt(key, {})
        again = self._causes.again(key, config, seen) if result is None else None
        return Result(requeue_after=again) if again is not None else result

    def _forget(self, key: SourceKey) -> None:
        """Nothing is told of the object any more."""
        for unread in self._unread.values():
            unread.pop(key, None)
        self._doubt(key, {})
        self._causes.forget(key)

    def _doubt(self, key: SourceKey, doubtful: dict[str, str]) -> None:
        """Record in which clusters copies of the object are invalid, and why. In all others they are not, or not any more."""
        for name in self._doubted.pop(key, frozenset()) - doubtful.keys():
            self._collector.doubt(name, key.type, key.key, "")
        for name, why in doubtful.items():
            self._collector.doubt(name, key.type, key.key, why)
        if doubtful:
            self._doubted[key] = frozenset(doubtful)

    async def _tell(
        self,
        key: SourceKey,
        config: FederatedTypeConfig,
        federated: FederatedObject,
        seen: dict[str, Seen],
        untold: _Untold,
        doubted: frozenset[str] = frozenset(),
    ) -> Result | None:
        """Write what is known, unless it will change again soon. Everything is computed before anything is written."""
        now = clock.monotonic()
        wait = untold.first + self._timings.status_longest_busy - now
        placed = federated.placed
        copies = (each.object for name, each in seen.items() if each.reachable and (each.object or name in placed))
        if wait > 0 and in_motion(config, copies):
            self._untold[key] = untold._replace(moving=True)
            return Result(requeue_after=wait)
        seen = self._causes.found(key, config, seen)
        existing = self._caches.collected(key)
        collected = None
        if config.spec.status_collection.enabled:
            stored = _as_json(existing) if existing is not None else None
            collected = collected_status(_reference(federated, config), config, seen, stored, timestamps.now())
        writes = []
        source_raw = self._caches.source_raw(key)
        if source_raw is not None and config.spec.status_aggregation.enabled:
            source = self._source(source_raw, config)
            if not source["metadata"].get("deletionTimestamp"):
                observations = self._observations(key, config, federated, seen, doubted)
                known = Known(
                    source=source,
                    type_config=config,
                    federated=federated,
                    collected=msgspec.convert(collected, CollectedStatus) if collected is not None else existing,
                    clusters=tuple(each for name in seen if (each := self._caches.clusters.get(name)) is not None),
                    fleet_paused=False,
                )
                status = source_status(source, federated, observations, timestamps.now(), known)
                writes.append(self._write_source(key, config, source, federated, status))
        if collected is not None:
            writes.append(self._write_collected(key, config, collected, is_new=existing is None))
        self._causes.tell(key, config, federated, seen)
        await asyncio.gather(*writes)
        return None

    def _doubtful(
        self, key: SourceKey, config: FederatedTypeConfig, seen: dict[str, Seen], error: Exception
    ) -> dict[str, str]:
        """The clusters whose copies (present or last known) may have caused the error, and why: invalid objects, or too large
        ones."""
        large = isinstance(error, ApiError) and _is_about_size(error)
        if isinstance(error, ApiError) and not large and not isinstance(error, Invalid | BadRequest):
            return {}
        last_known = self._last_known(key)
        copies = {
            name: copy for name, each in seen.items() if (copy := each.object or last_known.get(name)) is not None
        }
        misfits = {name: why for name, copy in copies.items() if (why := misfit(config, copy))}
        if not misfits and isinstance(error, Unmergeable):
            misfits = dict(error.clusters)
        if not large:
            return misfits
        return overlarge({name: copy for name, copy in copies.items() if name not in misfits}) | misfits

    def _is_due(self, untold: "_Untold") -> bool:
        """Whether the object is due, as far as its changes alone can tell."""
        now, timings, busy = clock.monotonic(), self._timings, self._busy()
        longest = timings.status_longest_busy if busy or untold.moving else timings.status_longest
        return now - untold.first >= longest or (not busy and now - untold.last >= timings.status_quiet * 0.9)

    def _seen(self, key: SourceKey, config: FederatedTypeConfig, federated: FederatedObject) -> dict[str, Seen] | None:
        """The object in every cluster that may hold it; None while a reachable member's cache is not synced.

        If a cache cannot sync (the member does not serve the kind), the member counts as unreachable until it can.
        """
        seen = {}
        for name in may_hold_copies(federated):
            cluster = self._caches.clusters.get(name)
            if cluster is None:
                continue
            synced = self._collector.synced(name, config.name)
            answers = cluster.answers and cluster.silent_since is None
            if answers and not synced:
                if not self._collector.failing(name, config.name):
                    return None
                self._unread.setdefault(Readable(name, config.name), {})[key] = None
            found = self._collector.get(name, config.name, key.key)
            there = as_object(found) if found is not None else None
            seen[name] = Seen(there, reachable=answers and synced, silent_since=cluster.silent_since or "")
        return seen

    async def _write_collected(
        self, key: SourceKey, config: FederatedTypeConfig, wanted: dict[str, Any], *, is_new: bool
    ) -> None:
        resource = resources.COLLECTED_STATUSES if config.namespaced else resources.CLUSTER_COLLECTED_STATUSES
        try:
            if is_new:
                raw = await self._client.create(resource, wanted, into=bytes)
            else:
                raw = await self._client.update(resource, wanted, into=bytes)
        except (AlreadyExists, NotFound):
            self.queue.add(key, after=self._timings.conflict)  # our cache is behind
            return
        except Forbidden as error:
            if not error.namespace_terminating:
                raise
            return
        self._metrics.control_writes.labels(resource.kind, "create" if is_new else "update").inc()
        self._caches.remember_collected(AGGREGATE, raw, config.namespaced)

    async def _write_source(
        self,
        key: SourceKey,
        config: FederatedTypeConfig,
        source: dict[str, Any],
        federated: FederatedObject,
        status: dict[str, Any] | None,
    ) -> None:
        body: dict[str, Any] = {}
        annotations = feedback_of(source, federated) if kind_of(source).feedback_with_status else None
        if annotations is not None:
            body["metadata"] = {"annotations": _difference(source, annotations)}
        if status is not None:
            body["status"] = mergepatch.create(source.get("status") or {}, status)
        if body:
            # With the version it was computed for: else the response would show a user's write in between as if it were ours.
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": source["metadata"]["resourceVersion"]}
            await self._patch_status(key, config, body)
        observed = (status or source.get("status") or {}).get("observedGeneration")
        if observed is not None and observed == source["metadata"].get("generation"):
            self._marks.finished(key, observed, config.name)

    def _last_known(self, key: SourceKey) -> dict[str, dict[str, Any]]:
        collected = self._caches.collected(key)
        return {entry.cluster: entry.collected_fields for entry in collected.clusters} if collected else {}

    def _observations(
        self,
        key: SourceKey,
        config: FederatedTypeConfig,
        federated: FederatedObject,
        seen: dict[str, Seen],
        doubted: frozenset[str],
    ) -> list[Observation]:
        """Uses the CollectedStatus for members that cannot be read now, unless their copies are invalid."""
        last_known = {name: known for name, known in self._last_known(key).items() if name not in doubted}
        written = {entry.cluster: entry.last_observed_generation for entry in federated.status.clusters}
        observations = []
        for name in federated.placed:
            there = seen.get(name)
            if there is None:
                continue
            found, known = there.object, True
            if found is None and not there.reachable:
                found = last_known.get(name)
                known = found is not None
            cause = there.cause if there.reachable else None
            observations.append(
                Observation(name, found, there.reachable, known, written.get(name, 0), there.silent_since, cause)
            )
        return observations

    async def _patch_status(self, key: SourceKey, config: FederatedTypeConfig, body: dict[str, Any]) -> None:
        namespace, name = split_key(key.key)
        try:
            raw = await self._client.patch(
                config.resource, name, body, namespace or None, kind=Patch.MERGE, subresource="status", into=bytes
            )
        except (NotFound, MethodNotAllowed):  # deleted meanwhile, or a kind without status
            return
        self._metrics.control_writes.labels(config.kind, "status").inc()
        self._caches.remember_source(AGGREGATE, raw, key.type)

    def _source(self, raw: bytes, config: FederatedTypeConfig) -> dict[str, Any]:
        source: dict[str, Any] = decode(raw, dict)
        source.setdefault("apiVersion", config.api_version)
        source.setdefault("kind", config.kind)
        return source


def _heard_of(change: Change[FederatedCluster]) -> Iterable[str]:
    """The name of a cluster that is heard of no more, or again."""
    old, new = change.old, change.new
    return (change.key,) if old is not None and new is not None and old.silent_since != new.silent_since else ()


def _difference(source: dict[str, Any], annotations: dict[str, str]) -> dict[str, str | None]:
    before = source["metadata"].get("annotations") or {}
    changed: dict[str, str | None] = {k: v for k, v in annotations.items() if before.get(k) != v}
    return {**changed, **dict.fromkeys(key for key in before if key not in annotations)}


def _is_about_size(error: ApiError) -> bool:
    """The API server refuses a body of that size, or etcd an object of that size."""
    return error.code == 413 or "is too large" in error.message or "larger than max" in error.message


def _reference(federated: FederatedObject, config: FederatedTypeConfig) -> dict[str, Any]:
    """The part of the federated object that its CollectedStatus needs."""
    metadata = federated.metadata
    kind = resources.federated_objects(config.namespaced).kind
    found = {"name": metadata.name, "uid": metadata.uid, "labels": metadata.labels}
    if config.namespaced:
        found["namespace"] = metadata.namespace
    return {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": found}


def _tells_more(old: FederatedView | None, new: FederatedView) -> bool:
    """Whether a write of federate changes what is told, though nothing of it is dispatched."""
    if old is None:
        return False
    before, after = old.metadata.annotations, new.metadata.annotations
    gone = set(to_be_removed(before)).difference(to_be_removed(after))
    said = any(before.get(each) != after.get(each) for each in _SAID)
    return bool(gone) or said or old.metadata.labels != new.metadata.labels


def _as_json(collected: CollectedStatus) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(collected)
    return built
