"""Federate: from a user's object to its federated object: one pass through `plan.pipeline.run`, one write.

The only writer of federated objects. Keys are sources; a pass reads source, policies and fleet and stores the difference. The
source gets our finalizer, together with the feedback annotations, before the federated object exists, so that no copy is
ever made whose deletion we would miss.
"""

import datetime
import math
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from argosy.api import keys, resources
from argosy.api.types import FederatedTypeConfig, OverridePolicy, PropagationPolicy
from argosy.control.caches.informers import Caches, SourceKey
from argosy.control.caches.views import FederatedView, SourceView, policy_references, same_but_for_status
from argosy.control.scheduling.profiles import Profiles
from argosy.control.scheduling.remote_plugins import RemotePlugins
from argosy.control.scheduling.reservations import ReservedFleet
from argosy.control.scheduling.suspended_passes import SuspendedPasses
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.latency import LatencyMarks
from argosy.control.telemetry.metrics import Metrics
from argosy.control.telemetry.scheduling import ClusterChanged, FedObjChanged, FTCChanged, PolicyChanged
from argosy.control.timings import Timings
from argosy.kube.client import Client, Patch
from argosy.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata, decode, split_key
from argosy.kube.queue import Result, WorkQueue
from argosy.plan.copies import placement
from argosy.plan.failover.custom_migration import next_expiry
from argosy.plan.failover.failover import BEHIND_ALL
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline import namespaces
from argosy.plan.pipeline import run as pipeline
from argosy.plan.pipeline.federate import NameTaken
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref
from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.rules import NO_RULES
from argosy.plan.scheduling.unit import AutoMigrationInfo
from argosy.plan.scheduling.wakeups import Concern, Wakeups
from argosy.plan.status.aggregate import feedback

__all__ = ["Federate"]

Object = dict[str, Any]

#: A wish that ends is looked at a moment later, so that it has ended by everybody's rounding.
_AFTER_THE_END = 0.05
#: Timers run on a clock that is not the calendar's.
_LONGEST_SLEEP = 3600.0


class Federate:
    def __init__(
        self,
        client: Client,
        caches: Caches,
        reserved: ReservedFleet,
        profiles: Profiles,
        answers: RemotePlugins,
        recorder: ObjectRecorder,
        marks: tuple[LatencyMarks, ...],
        metrics: Metrics,
        timings: Timings,
        *,
        exclude_namespaces: re.Pattern[str] | None = None,
        federate_all: bool = False,
        katalyst: bool = False,
    ):
        self._client = client
        self._caches = caches
        self._reserved = reserved
        self._profiles = profiles
        self._asking: SuspendedPasses[SourceKey] = SuspendedPasses(answers.answer, lambda key: self.queue.add(key))
        self._recorder = recorder
        self._marks = marks
        self._metrics = metrics
        self._timings = timings
        self._exclude = exclude_namespaces
        self._all = federate_all
        self._katalyst = katalyst
        self._unplaced: set[SourceKey] = set()
        #: Those of them whose rules look at other workloads.
        self._waiting_for_others: set[SourceKey] = set()
        #: When sources got our finalizer, the latest last; those of long ago are forgotten.
        self._finalized: dict[SourceKey, float] = {}
        #: Uids of sources that were deleted in spite of our finalizer.
        self._slipped: dict[SourceKey, str] = {}
        #: What members were seen to be able to run, and how many replicas serve in them; set by whoever watches that.
        self.migration: Callable[[SourceKey], AutoMigrationInfo | None] = lambda key: None
        self.available: Callable[[SourceKey], Mapping[str, int] | None] = lambda key: None
        #: The queue's priority of an object that is looked at for others' sake: its policy's, its clusters'. Above 0.
        self.rank: Callable[[SourceKey], int] = lambda key: 1
        self.queue: WorkQueue[SourceKey] = WorkQueue()

    # What wakes a source.

    def source_changed(self, type_name: str, change: Change[SourceView]) -> None:
        key = SourceKey(type_name, change.key)
        if change.new is None:
            self._unplaced.discard(key)
            self._waiting_for_others.discard(key)
            self._asking.forget(key)
            for marks in self._marks:
                marks.drop(key)
            just_finalized = self._was_just_finalized(key)
            if change.old is not None and just_finalized and _slipped(change.old.metadata, change.missing):
                self._slipped[key] = change.old.metadata.uid
                self.queue.add(key)
            return
        if self._caches.writer is None and self._concerns(key, change.new.metadata):
            if change.old is None or change.old.metadata.generation != change.new.metadata.generation:
                for marks in self._marks:
                    marks.started(key, change.new.metadata.generation)
            self._incoming(FedObjChanged)
            self.queue.add(key, priority=self.rank(key) - BEHIND_ALL)

    def federated_changed(self, change: Change[FederatedView]) -> None:
        """Somebody else's step was finished, a note of removal may go, or the object was deleted under us."""
        view = change.new or change.old
        writer = self._caches.writer
        if view is None or writer == "federate":
            return
        nothing_to_settle = keys.TO_BE_REMOVED not in view.metadata.annotations
        if writer == "dispatch" and nothing_to_settle and same_but_for_status(change.old, view):
            return
        key = self._caches.source_of(view)
        if key is not None:
            self._incoming(FedObjChanged)
            self.queue.add(key, priority=self.rank(key) - BEHIND_ALL)

    def _incoming(self, event: str) -> None:
        self._metrics.scheduling.incoming.labels(event).inc()

    def policy_changed(self, label: str, change: Change[Any]) -> None:
        """A propagation or override policy came, went, or changed in more than its status."""
        if change.old is not None and change.new is not None and _same_content(change.old, change.new):
            return
        for key in self._caches.sources_naming(f"{label}={change.key}"):
            self._incoming(PolicyChanged)
            self.queue.add(key, priority=self.rank(key))

    def profile_changed(self, key: SourceKey) -> None:
        """The profile that a source's policy names came, went or changed, or a plugin in it."""
        self.queue.add(key, priority=self.rank(key))

    def plugin_changed(self, name: str) -> None:
        """A plugin that lives elsewhere is another one than before: what it was asked is asked anew."""
        self._asking.plugin_changed(name)

    def room_gained(self) -> None:
        """Some cluster has more room than before."""
        for key in self._unplaced:
            self.queue.add(key, priority=1, after=self._timings.room_retry)

    def workloads_moved(self) -> None:
        """Some workload came to a cluster or left one: worth a try for what may only run beside or apart from others."""
        for key in self._waiting_for_others:
            self.queue.add(key, priority=1, after=self._timings.room_retry)

    def fleet_changed(self) -> Iterator[None]:
        """Some cluster came, went or is another one than before. A step an object.

        Those that matter most go first, and behind all of them those that stay where they are.
        """
        waiting: dict[int, list[SourceKey]] = {}
        wakeups = Wakeups(self._reserved.snapshot)
        for key, source in self._caches.all_sources():
            if key.type == "namespaces":
                waiting.setdefault(1, []).append(key)  # others wait for theirs
            elif (concern := self._concern(key, source.metadata, wakeups)) is not Concern.NONE:
                later = BEHIND_ALL if concern is Concern.RECORD else 0
                waiting.setdefault(self.rank(key) + later, []).append(key)
            yield
        for rank in sorted(waiting):
            for key in waiting[rank]:
                self._incoming(ClusterChanged)
                self.queue.add(key, priority=rank)
                yield

    def _concern(self, key: SourceKey, metadata: Metadata, wakeups: Wakeups) -> Concern:
        if not policy_references(metadata):
            return Concern.NONE
        view, reference = self._caches.federated_view(key), propagation_ref(metadata.labels, metadata.namespace)
        placed = view.placed if view is not None else frozenset()
        if view is None or not placed or reference is None or override_refs(metadata.labels, metadata.namespace):
            return Concern.PLACEMENT
        return wakeups.concern(self._policy(reference), view.metadata.annotations, placed)

    def type_changed(self, old: FederatedTypeConfig | None, new: FederatedTypeConfig | None) -> None:
        if old is None or new is None or old.spec == new.spec:
            return
        for key, source in self._caches.all_sources():
            if key.type == new.name and self._concerns(key, source.metadata):
                self._incoming(FTCChanged)
                self.queue.add(key, priority=self.rank(key))

    def _concerns(self, key: SourceKey, metadata: Metadata) -> bool:
        """Cheap: most objects of a configured type are nobody's business."""
        return (
            self._all
            or bool(policy_references(metadata))
            or keys.FEDERATE_FINALIZER in metadata.finalizers
            or (key.type == "namespaces" and namespaces.propagates(metadata.name, metadata.annotations, self._exclude))
            or self._caches.federated_view(key) is not None
        )

    # One pass.

    async def reconcile(self, key: SourceKey) -> Result | None:
        config = self._caches.catalog.get(key.type)
        raw = self._caches.source_raw(key)
        if config is None:
            return None
        slipped = self._slipped.get(key)
        if raw is None and slipped is not None:
            await self._delete_slipped(key, config, slipped)
        self._slipped.pop(key, None)
        if raw is None:
            return None  # a source that is gone is not a reason to do anything: dispatch asks what that means
        source = decode(raw, dict)
        source.setdefault("apiVersion", config.api_version)
        source.setdefault("kind", config.kind)
        view = self._caches.federated_view(key)
        if source["metadata"].get("deletionTimestamp"):
            return await self._delete(key, config, source, view)
        if view is not None and view.metadata.deletion_timestamp:
            return None  # made anew when it is gone
        existing_raw = self._caches.federated_raw(key)
        existing = decode(existing_raw, dict) if existing_raw is not None else None
        self._metrics.scheduling.start()
        try:
            decided = self._asking.run(key, self._steps(key, source, existing, config))
        except NameTaken as error:
            self._recorder.on(_reference(source), "Warning", "NameTaken", str(error))
            return None
        if decided is None:
            return None  # woken when the plugin that was asked has answered
        if decided.unanswered:
            self.queue.add(key, priority=1, after=self._timings.plugin_retry)
        outcome = decided.result
        self._metrics.scheduling.end(outcome.decision, self._profile_name(source))
        self._remember_unplaced(key, outcome)
        wanted = outcome.object if outcome.object is not None else existing
        if wanted is None:
            return None
        self._wake_when_a_wish_ends(key, wanted)
        cleaned = _without_settled_removals(wanted, view)
        if outcome.object is None and cleaned is wanted:
            await self._mark_source(key, config, source, wanted)
            return None
        with self._reserved.decided(key, cleaned):
            if not await self._mark_source(key, config, source, cleaned):
                return None  # deleted before it had our finalizer, and so nothing was ever made of it
            if self._caches.source(key) is None:
                return None  # the same, in the moment it got it
            await self._store(key, config, cleaned, outcome.create)
        for note in outcome.notes:
            self._recorder.on(_reference(source), note.type, note.reason, note.message)
        return None

    def _steps(
        self, key: SourceKey, source: Object, existing: Object | None, config: FederatedTypeConfig
    ) -> Generator[Ask, Reply, pipeline.Outcome]:
        metadata = source["metadata"]
        labels, namespace = metadata.get("labels") or {}, metadata.get("namespace") or ""
        reference = propagation_ref(labels, namespace)
        policy = self._policy(reference) if reference is not None else None
        inputs = PassInputs(
            source=source,
            type_config=config,
            fleet=self._reserved.fleet(key, own=policy is not None and policy.spec.limit_replicas_to_available),
            existing=existing,
            policy=policy,
            override_policies=self._override_policies(labels, namespace),
            profile=self._profiles.of(policy),
            registry=self._profiles.registry,
            wanted=self._all,
            exclude_namespaces=self._exclude,
            now=datetime.datetime.now(datetime.UTC),
            migration=self.migration(key),
            available=self.available(key),
            katalyst=self._katalyst,
            instrument=self._metrics.scheduling.timed,
        )
        return pipeline.run(inputs)

    def _profile_name(self, source: Object) -> str:
        metadata = source["metadata"]
        reference = propagation_ref(metadata.get("labels") or {}, metadata.get("namespace") or "")
        policy = self._policy(reference) if reference is not None else None
        return policy.spec.scheduling_profile if policy is not None else ""

    def _policy(self, reference: PolicyRef) -> PropagationPolicy | None:
        return self._caches.policies[bool(reference.namespace)].get(reference.key)

    def _override_policies(self, labels: dict[str, str], namespace: str) -> dict[PolicyRef, OverridePolicy]:
        found = {}
        for reference in override_refs(labels, namespace):
            policy = self._caches.overrides[bool(reference.namespace)].get(reference.key)
            if policy is not None:
                found[reference] = policy
        return found

    def _remember_unplaced(self, key: SourceKey, outcome: pipeline.Outcome) -> None:
        if outcome.held is not None and outcome.held.reason == HeldReason.UNSCHEDULABLE:
            self._unplaced.add(key)
        else:
            self._unplaced.discard(key)
        rules = outcome.decision.unit.rules if outcome.decision is not None else NO_RULES
        if key in self._unplaced and (rules.affinity or rules.anti_affinity):
            self._waiting_for_others.add(key)
        else:
            self._waiting_for_others.discard(key)

    def _wake_when_a_wish_ends(self, key: SourceKey, federated: Object) -> None:
        """Custom migration holds until a time."""
        now = datetime.datetime.now(datetime.UTC)
        end = next_expiry(annotations_of(federated).get(keys.APPLIED_MIGRATION_CONFIGURATION), now)
        if end is not None:
            self.queue.add(key, after=min((end - now).total_seconds() + _AFTER_THE_END, _LONGEST_SLEEP))

    async def close(self) -> None:
        await self._asking.close()

    # What is written.

    async def _mark_source(
        self, key: SourceKey, config: FederatedTypeConfig, source: Object, federated: Object
    ) -> bool:
        """Our finalizer and the feedback annotations on the source, in one write, if either is missing.

        False where the source is not there any more.
        """
        metadata = source["metadata"]
        changes: Object = {}
        finalizers = metadata.get("finalizers") or []
        if keys.FEDERATE_FINALIZER not in finalizers:
            changes["finalizers"] = sorted({*finalizers, keys.FEDERATE_FINALIZER})
            self._note_finalized(key)
        kind = kind_of(source)
        if config.spec.status_aggregation.enabled and kind.feedback and not kind.feedback_with_status:
            before = annotations_of(source)
            after = feedback(before, annotations_of(federated))
            if after is not None:
                changed = {name: after.get(name) for name in keys.FEEDBACK_ANNOTATIONS}
                changes["annotations"] = {n: v for n, v in changed.items() if before.get(n) != v}
        if not changes:
            return True
        # On what was read: a list is replaced whole, and the answer must not show a user's write as if it were ours.
        changes["resourceVersion"] = metadata["resourceVersion"]
        return await self._patch_source(key, config, changes)

    def _note_finalized(self, key: SourceKey) -> None:
        now = time.monotonic()
        self._finalized.pop(key, None)
        self._finalized[key] = now
        while now - next(iter(self._finalized.values())) > self._timings.longest_request:
            del self._finalized[next(iter(self._finalized))]

    def _was_just_finalized(self, key: SourceKey) -> bool:
        return time.monotonic() - self._finalized.pop(key, -math.inf) <= self._timings.longest_request

    async def _patch_source(self, key: SourceKey, config: FederatedTypeConfig, metadata: Object) -> bool:
        """False where it is gone."""
        namespace, name = split_key(key.key)
        try:
            raw = await self._client.patch(
                config.resource, name, {"metadata": metadata}, namespace or None, kind=Patch.MERGE, into=bytes
            )
        except NotFound:
            return False
        self._metrics.control_writes.labels(config.kind, "patch").inc()
        if metadata.get("finalizers") != []:
            self._caches.remember_source("federate", raw, key.type)
        return True

    async def _store(self, key: SourceKey, config: FederatedTypeConfig, federated: Object, create: bool) -> None:
        resource = resources.federated_objects(config.namespaced)
        namespace = federated["metadata"].get("namespace")
        try:
            if create:
                raw = await self._client.create(resource, federated, namespace, into=bytes)
            else:
                raw = await self._client.update(resource, federated, namespace, into=bytes)
        except (AlreadyExists, NotFound) as behind:
            # Our cache is behind what is stored; its event is on the way.
            raise Conflict(409, "Conflict", str(behind), behind.status) from behind
        except Forbidden as error:
            if not error.namespace_terminating:
                raise
            return  # it takes the source along
        except Invalid as error:
            self._recorder.on(_reference(federated), "Warning", "InvalidFederatedObject", str(error))
            raise
        self._metrics.control_writes.labels(resource.kind, "create" if create else "update").inc()
        self._caches.remember_federated("federate", raw, config.namespaced)

    # Deletion.

    async def _delete(
        self, key: SourceKey, config: FederatedTypeConfig, source: Object, view: FederatedView | None
    ) -> Result | None:
        """A source that is being deleted waits for its federated object, which waits for the members."""
        if keys.FEDERATE_FINALIZER not in (source["metadata"].get("finalizers") or ()):
            return None
        if view is None:
            if await self._is_stored(key, config):
                raise Conflict(409, "Conflict", "the federated object is not in the cache yet", {})
            left = [f for f in source["metadata"]["finalizers"] if f != keys.FEDERATE_FINALIZER]
            changes = {"finalizers": left, "resourceVersion": source["metadata"]["resourceVersion"]}
            await self._patch_source(key, config, changes)
            return None
        if not view.metadata.deletion_timestamp:
            resource = resources.federated_objects(config.namespaced)
            metadata = view.metadata
            try:
                await self._client.delete(
                    resource, metadata.name, metadata.namespace or None, uid=metadata.uid, propagation="Background"
                )
            except NotFound:
                return None
            self._metrics.control_writes.labels(resource.kind, "delete").inc()
        return None

    async def _delete_slipped(self, key: SourceKey, config: FederatedTypeConfig, uid: str) -> None:
        """The federated object goes, and says that this is meant."""
        view = self._caches.federated_view(key)
        if view is None or not any(owner.uid == uid for owner in view.metadata.owner_references):
            return
        resource, metadata = resources.federated_objects(config.namespaced), view.metadata
        confirmed = {"metadata": {"uid": metadata.uid, "annotations": {keys.CONFIRM_DELETION: "true"}}}
        namespace = metadata.namespace or None
        try:
            await self._client.patch(resource, metadata.name, confirmed, namespace, kind=Patch.MERGE, into=bytes)
            self._metrics.control_writes.labels(resource.kind, "patch").inc()
            if not metadata.deletion_timestamp:
                await self._client.delete(
                    resource, metadata.name, namespace, uid=metadata.uid, propagation="Background"
                )
                self._metrics.control_writes.labels(resource.kind, "delete").inc()
        except NotFound:
            return

    async def _is_stored(self, key: SourceKey, config: FederatedTypeConfig) -> bool:
        """Asked of the server: without its federated object nobody would clean the members any more."""
        namespace, name = split_key(key.federated_key)
        try:
            await self._client.get(resources.federated_objects(config.namespaced), name, namespace or None, into=bytes)
        except NotFound:
            return False
        return True


def _slipped(last: Metadata, missing: bool) -> bool:
    """Whether a source that is gone was deleted, by somebody's word, although it had our finalizer.

    kube-apiserver looks for finalizers before it deletes, not while: one that comes in between keeps nothing. That is only
    said of those that have just got it. Who takes the finalizer away first, or loses the object otherwise (in the store, say),
    did not say that its copies should go.
    """
    return not missing and keys.FEDERATE_FINALIZER in last.finalizers and not last.deletion_timestamp


def _without_settled_removals(federated: Object, view: FederatedView | None) -> Object:
    """Drop the note of clusters whose copy dispatch has seen gone: they are not in the status of this generation."""
    if view is None or view.status.synced_generation != view.metadata.generation:
        return federated
    annotations = annotations_of(federated)
    noted = set(placement.to_be_removed(view.metadata.annotations))
    absent = noted - {entry.cluster for entry in view.status.clusters}
    cleaned = placement.after_removal(annotations, absent) if absent else None
    if cleaned is None:
        return federated
    return {**federated, "metadata": {**federated["metadata"], "annotations": cleaned}}


def _same_content(old: Any, new: Any) -> bool:
    """Policies' reference counts live in their status and concern nobody here."""
    return bool(old.spec == new.spec and old.metadata.annotations == new.metadata.annotations)


def _reference(obj: Object) -> Object:
    metadata = obj["metadata"]
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"]}
    if metadata.get("uid"):
        reference["uid"] = metadata["uid"]
    if metadata.get("namespace"):
        reference["namespace"] = metadata["namespace"]
    return reference
