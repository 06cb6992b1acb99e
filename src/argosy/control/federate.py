"""Federate: from a user's object to its federated object, in one pass through `plan.pipeline` and one write.

The only writer of federated objects. Keys are sources; a pass reads source, policies and fleet, and stores the difference.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.types import FederatedTypeConfig, PropagationPolicy
from argosy.control.brake.brake import Brake
from argosy.control.brake.deletions import Deletion
from argosy.control.brake.removals import Judgement
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches, SourceChange
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView, policy_references, same_but_for_status
from argosy.control.collect import Collector
from argosy.control.context import ControllerContext
from argosy.control.failover import Failback
from argosy.control.migrate import Migrate
from argosy.control.scheduling.basis import DecisionBasis
from argosy.control.scheduling.remote_plugins import RemotePlugins
from argosy.control.scheduling.suspended_passes import SuspendedPasses
from argosy.control.scheduling.unplaced import Unplaced
from argosy.control.scheduling.webhooks import Webhooks
from argosy.control.sharding.peers import PeerReservations
from argosy.control.sources.finalized import JustFinalized
from argosy.control.sources.writer import SourceWriter
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.latency import LatencyMarks
from argosy.control.telemetry.metrics import Metrics
from argosy.control.telemetry.scheduling import ClusterChanged, FedObjChanged, FTCChanged, PolicyChanged
from argosy.control.timings import Timings
from argosy.control.wake import DISPATCH, FEDERATE, Due, Loop, Sweep, Wake, itself
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata, decode
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_to
from argosy.plan.brake.held_removal import held_removal_of, with_held_removal
from argosy.plan.brake.kept import kept, told
from argosy.plan.copies import placement
from argosy.plan.failover.custom_migration import next_expiry
from argosy.plan.failover.failover import BEHIND_ALL
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline import namespaces
from argosy.plan.pipeline.federate import NameTaken
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.policy import override_refs
from argosy.plan.pipeline.run import Outcome
from argosy.plan.scheduling.rules import NO_RULES
from argosy.plan.scheduling.wakeups import Concern, Wakeups

__all__ = ["Federate"]

Object = dict[str, Any]

#: Expiries are handled a moment later, so that they have passed however times are rounded.
_AFTER_THE_END = 0.05
#: Timers do not follow changes of the wall clock.
_LONGEST_SLEEP = 3600.0


class Federate(Loop[SourceKey]):
    name = FEDERATE

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[SourceKey],
        caches: Caches,
        fleet: LiveFleet,
        collector: Collector,
        peers: PeerReservations | None,
        basis: DecisionBasis,
        brake: Brake,
        webhooks: Webhooks,
        plugins: RemotePlugins,
        recorder: ObjectRecorder,
        marks: tuple[LatencyMarks, ...],
        metrics: Metrics,
        timings: Timings,
        *,
        workers: int,
        federate_all: bool = False,
    ):
        self.queue = queue
        self.workers = workers
        self._caches = caches
        self._fleet = fleet
        self._collector = collector
        self._peers = peers
        self._basis = basis
        self._brake = brake
        self._webhooks = webhooks
        self._recorder = recorder
        self._marks = marks
        self._metrics = metrics
        self._timings = timings
        self._all = federate_all
        self._finalized = JustFinalized(timings.longest_request)
        self._writer = SourceWriter(client, caches, self._finalized, recorder, metrics)
        self._suspended: SuspendedPasses[SourceKey] = SuspendedPasses(plugins.answer, queue.add)
        self._unplaced: Unplaced[SourceKey] = Unplaced()
        #: Those of them whose rules look at other workloads.
        self._waiting_for_others: dict[SourceKey, None] = {}
        #: Sources that are being deleted, and since when their followers are waited for.
        self._deleted_at: dict[SourceKey, float] = {}

    @classmethod
    def of(cls, shared: ControllerContext, migrate: Migrate) -> "Federate":
        options = shared.options
        basis = DecisionBasis(
            shared.caches,
            shared.claims,
            shared.reserved,
            shared.placed,
            shared.profiles,
            shared.priorities,
            migrate,
            Failback(shared.caches, shared.collector),
            shared.evictions,
            shared.done,
            shared.followers,
            shared.arrivals,
            options,
            shared.metrics.scheduling,
        )
        return cls(
            shared.client,
            shared.queue(),
            shared.caches,
            shared.fleet,
            shared.collector,
            shared.peers,
            basis,
            shared.brake,
            shared.webhooks,
            shared.plugins,
            shared.recorder,
            (shared.arrival, shared.returning),
            shared.metrics,
            shared.timings,
            workers=options.workers,
            federate_all=options.federate_all,
        )

    @property
    def suspended(self) -> int:
        """Objects that wait for the answer of a remote plugin."""
        return len(self._suspended)

    async def close(self) -> None:
        await self._suspended.close()

    # What wakes a source.

    def wakes(self) -> Iterable[Wake[Any, SourceKey] | Sweep[Any, SourceKey]]:
        caches, basis, again = self._caches, self._basis, self._timings.room_retry
        yield Wake(caches.source_changes, self._of_source, "a user changed it", self._first)
        why = "others wrote its federated object, or a copy to be removed is gone"
        yield Wake(caches.federated_changes, self._of_federated, why, self._first)
        for policies, label in (
            (caches.policies[True], keys.PROPAGATION_POLICY_LABEL),
            (caches.policies[False], keys.CLUSTER_PROPAGATION_POLICY_LABEL),
            (caches.overrides[True], keys.OVERRIDE_POLICY_LABEL),
            (caches.overrides[False], keys.CLUSTER_OVERRIDE_POLICY_LABEL),
        ):
            yield Wake(policies, partial(self._naming, label), "a policy it names changed", basis.rank)
        yield Wake(caches.catalog.changes, self._of_type, "its type is federated otherwise", basis.rank)
        yield Wake(self._webhooks.changes, self._suspended.plugin_changed, "the plugin it asked is another one")
        yield Wake(self._fleet.room, self._without_room, "it found no cluster, and one has room", 1, again)
        yield Wake(basis.reserved.released, self._without_room, "it found no cluster, and room is given back", 1, again)
        if self._peers is not None:
            why = "it found no cluster, and another shard gave room back"
            yield Wake(self._peers.released, self._without_room, why, 1, again)
        why = "it may only run beside or apart from others, and these moved"
        yield Wake(basis.placed.moved, self._without_company, why, 1, again)
        yield Wake(basis.migrate.found, itself, "members were seen to be able to run more or less of it")
        why, quiet = "an object that needs it came, went or changed", self._timings.leaders_quiet
        yield Wake(basis.followers.led, itself, why, basis.rank, quiet)
        why, grace = "something it needs does not exist", self._timings.missing_grace
        yield Wake(basis.followers.lacking, itself, why, 1, grace)
        yield Wake(basis.followers.found, itself, "what it waited for exists")
        yield Wake(self._brake.judged, itself, "what it would take away may go, or is held")
        yield Wake(self._collector.changes, basis.failback.of_copy, "replicas come back to a recovered cluster")
        why = "a policy selects it, or did"
        yield Sweep(basis.claims.changes, itself, basis.claims.concerned, why, basis.rank)
        yield Sweep(basis.profiles.changes, itself, basis.profiles.naming, "its policy's profile changed", basis.rank)
        yield Sweep(self._fleet.facts, itself, self._concerned, "a cluster came, went or changed")

    def _first(self, key: SourceKey) -> int:
        """Ahead of all objects woken because of something else."""
        return self._basis.rank(key) - BEHIND_ALL

    def _of_source(self, told: SourceChange) -> list[SourceKey]:
        key, change = told.key, told.change
        if change.new is None:
            self._unplaced.discard(key)
            self._waiting_for_others.pop(key, None)
            self._deleted_at.pop(key, None)
            self._suspended.forget(key)
            self._basis.done.forget(key)
            self._basis.unwritten.note(key, None)
            for marks in self._marks:
                marks.drop(key)
            return [key] if self._finalized.gone(told) else []
        if change.origin or not self._concerns(key, change.new.metadata):
            return []
        if self._is_write(told):
            for marks in self._marks:
                marks.started(key, change.new.metadata.generation)
        self._incoming(FedObjChanged)
        return [key]

    def _is_write(self, told: SourceChange) -> bool:
        """Whether a user has just written it. Of what the first list brings, nobody knows when it was written."""
        old, new = told.change.old, told.change.new
        if old is None:
            return self._caches.sources_synced(told.type)
        return new is not None and old.metadata.generation != new.metadata.generation

    def _of_federated(self, change: Change[FederatedView]) -> list[SourceKey]:
        """Another controller's step is done, a recorded removal can be dropped, or the federated object was deleted."""
        view = change.new or change.old
        if view is None or change.origin == FEDERATE:
            return []
        nothing_to_settle = keys.TO_BE_REMOVED not in view.metadata.annotations
        if change.origin == DISPATCH and nothing_to_settle and same_but_for_status(change.old, view):
            return []
        key = self._caches.source_of(view)
        if key is None:
            return []
        self._incoming(FedObjChanged)
        return [key]

    def _naming(self, label: str, change: Change[Any]) -> Iterator[SourceKey]:
        """Sources whose label names a policy that was created, deleted, or changed in more than its status."""
        old, new = change.old, change.new
        if old is not None and new is not None and _same_content(old, new):
            return
        for key in self._caches.sources_naming(f"{label}={change.key}"):
            self._incoming(PolicyChanged)
            yield key

    def _without_room(self, _: Any) -> list[SourceKey]:
        return self._unplaced.wake()

    def _without_company(self, _: None) -> list[SourceKey]:
        return list(self._waiting_for_others)

    def _concerned(self, clusters: Collection[str]) -> Iterator[Due[SourceKey] | None]:
        """First who is in one of these clusters and may have to leave it, then who may have to be placed anew for another reason.
        Those of whom only the record is behind come last. Each by priority."""
        wakeups = Wakeups(self._fleet.snapshot)
        inside: list[SourceKey] = []
        others: list[SourceKey] = []
        for key, _ in self._caches.all_sources():
            view = self._caches.federated_view(key)
            (others if view is None or view.placed.isdisjoint(clusters) else inside).append(key)
            yield None
        for found, urgency in ((inside, 0), (others, BEHIND_ALL)):
            waiting: dict[int, list[SourceKey]] = {}
            for key in found:
                rank = self._rank(key, wakeups, urgency)
                if rank is not None:
                    waiting.setdefault(rank, []).append(key)
                yield None
            for rank in sorted(waiting):
                for key in waiting[rank]:
                    self._incoming(ClusterChanged)
                    yield Due(key, rank)

    def _rank(self, key: SourceKey, wakeups: Wakeups, urgency: int) -> int | None:
        """None if the change does not concern it."""
        source = self._caches.source(key)
        if source is None:
            return None
        if key.type == "namespaces":
            return 1  # objects in the namespace wait for it
        concern = self._concern(key, source.metadata, wakeups)
        if concern is Concern.NONE:
            return None
        return self._basis.rank(key) + (2 * BEHIND_ALL if concern is Concern.RECORD else urgency)

    def _concern(self, key: SourceKey, metadata: Metadata, wakeups: Wakeups) -> Concern:
        view, reference = self._caches.federated_view(key), self._basis.claims.in_force(key, metadata).ref
        if self._brake.concerns(key):  # what it waits for may be undone
            return Concern.PLACEMENT
        if reference is None and not policy_references(metadata):
            return Concern.NONE
        placed = view.placed if view is not None else frozenset()
        if view is None or not placed or reference is None or override_refs(metadata.labels, metadata.namespace):
            return Concern.PLACEMENT
        unwritten = self._basis.unwritten.of(key)
        return wakeups.concern(self._basis.policy(reference), view.metadata.annotations, placed, unwritten)

    def _of_type(self, types: TypeChange) -> Iterator[SourceKey]:
        old, new = types
        if old is None or new is None or old.spec == new.spec:
            return
        for key, source in self._caches.all_sources():
            if key.type == new.name and self._concerns(key, source.metadata):
                self._incoming(FTCChanged)
                yield key

    def _concerns(self, key: SourceKey, metadata: Metadata) -> bool:
        """Cheap, since most objects of a federated type are not to be propagated."""
        return (
            self._all
            or bool(policy_references(metadata))
            or keys.FEDERATE_FINALIZER in metadata.finalizers
            or (
                key.type == "namespaces"
                and namespaces.propagates(metadata.name, metadata.annotations, self._basis.excluded)
            )
            or self._caches.federated_view(key) is not None
            or self._basis.claims.selected(key, metadata) is not None
            or self._basis.is_led(key, metadata.annotations)
        )

    def _incoming(self, event: str) -> None:
        self._metrics.scheduling.incoming.labels(event).inc()

    # One pass.

    async def reconcile(self, key: SourceKey) -> Result | None:
        config = self._caches.catalog.get(key.type)
        raw = self._caches.source_raw(key)
        if config is None:
            return None
        slipped = self._finalized.slipped(key)
        if raw is None and slipped is not None:
            await self._writer.delete_of_slipped(key, config, slipped)
        self._finalized.settled(key)
        if raw is None:
            return None  # dispatch decides what follows from a missing source
        source = decode(raw, dict)
        source.setdefault("apiVersion", config.api_version)
        source.setdefault("kind", config.kind)
        view = self._caches.federated_view(key)
        if source["metadata"].get("deletionTimestamp"):
            return await self._delete(key, config, source, view)
        if view is not None and view.metadata.deletion_timestamp:
            return None  # created anew once it is gone
        known = self._caches.source(key)
        if known is not None and self._basis.claims.is_unknown(key, known.metadata):
            return None  # taken up when it is known
        existing_raw = self._caches.federated_raw(key)
        stored = decode(existing_raw, dict) if existing_raw is not None else None
        existing = _without_settled_removals(stored, view) if stored is not None else None
        outcome = self._decide(key, source, existing, config)
        if outcome is None:
            return None
        outcome = self._braked(key, outcome, existing, view)
        wanted = outcome.object if outcome.object is not None else existing
        if wanted is None:
            return None
        self._wake_when_a_wish_ends(key, wanted)
        if outcome.object is None and existing is stored:
            await self._writer.mark_source(key, config, source, wanted)
            return None
        with self._basis.reserved.decided(key, wanted):
            if not await self._writer.mark_source(key, config, source, wanted):
                return None  # deleted before it had our finalizer, so no copy was ever made
            if self._caches.source(key) is None:
                return None  # the same, just when it got the finalizer
            await self._writer.store(config, wanted, outcome.create)
        stored_view = self._caches.federated_view(key)
        for note in outcome.notes:
            if stored_view is not None:
                self._recorder.event(stored_view, note.type, note.reason, note.message)
        return None

    async def _delete(
        self, key: SourceKey, config: FederatedTypeConfig, source: Object, view: FederatedView | None
    ) -> Result | None:
        verdict = self._brake.deletion(key) if view is not None else Deletion.GO
        if verdict is Deletion.WAIT:
            return Result(requeue_after=self._timings.conflict)
        if verdict is Deletion.HELD:
            await self._tell_held(key, config, view)
            return None
        self._brake.decided(key)
        if view is not None and not view.metadata.deletion_timestamp and self._awaits_followers(key):
            return Result(requeue_after=self._timings.conflict)
        await self._writer.delete(key, config, source, view)
        return None

    async def _tell_held(self, key: SourceKey, config: FederatedTypeConfig, view: FederatedView | None) -> None:
        """That its deletion is held is kept with the object: it stays so after a restart."""
        held, raw = self._brake.held_deletion(key), self._caches.federated_raw(key)
        if held is None or raw is None or view is None or held_removal_of(view.metadata.annotations) == held:
            return
        federated = decode(raw, dict)
        annotations = with_held_removal(annotations_of(federated), held)
        metadata = {**federated["metadata"], "annotations": annotations}
        await self._writer.store(config, {**federated, "metadata": metadata}, create=False)
        self._recorder.event(view, "Warning", EventReason.REMOVAL_HELD, held.message)

    def _braked(self, key: SourceKey, outcome: Outcome, existing: Object | None, view: FederatedView | None) -> Outcome:
        """The outcome, or one that takes nothing away while the brake has not let that go."""
        if outcome.departure is None or outcome.object is None or existing is None:
            self._brake.forget(key)
            return outcome
        answer = self._brake.ask(key, outcome.departure, view)
        if answer.judgement is Judgement.GO:
            return outcome
        begun = outcome.departure.cause if answer.begun else None
        kept_object, notes = kept(existing, outcome.object, answer.held), told(existing, answer.held, begun)
        return msgspec.structs.replace(outcome, object=kept_object, notes=notes)

    def _awaits_followers(self, key: SourceKey) -> bool:
        """Whether its followers have yet to note that it is being deleted. They are waited for, but not for long."""
        if self._basis.followers.is_released(key):
            self._deleted_at.pop(key, None)
            return False
        now = clock.monotonic()
        return now - self._deleted_at.setdefault(key, now) < self._timings.followers_patience

    def _decide(
        self, key: SourceKey, source: Object, existing: Object | None, config: FederatedTypeConfig
    ) -> Outcome | None:
        """None if nothing can be decided now; the key is woken when that changes."""
        self._metrics.scheduling.start()
        self._unplaced.begin(key)
        bound = self._basis.evictions.bound(key)
        pause = self._basis.evictions.pause(bound)
        if pause is not None:
            self.queue.add(key, self._basis.rank(key), pause + _AFTER_THE_END)
        try:
            decided = self._suspended.run(key, self._basis.steps(key, source, existing, config, bound))
        except NameTaken as error:
            self._recorder.on(reference_to(source), "Warning", "NameTaken", str(error))
            return None
        if decided is None:
            return None  # woken when the plugin has answered
        if decided.unanswered:
            self.queue.add(key, priority=1, after=self._timings.plugin_retry)
        outcome = decided.result
        self._basis.took_turn(key, existing, outcome, config, bound)
        if outcome.until is not None:
            wait = (outcome.until - clock.now()).total_seconds()
            self.queue.add(key, after=min(max(wait, 0.0) + _AFTER_THE_END, self._timings.kind_patience))
        policy = self._basis.policy_of(key)
        if outcome.decision is not None:
            self._basis.unwritten.note(key, outcome.unwritten)
        self._metrics.scheduling.end(outcome.decision, policy.spec.scheduling_profile if policy is not None else "")
        self._remember_unplaced(key, outcome)
        return outcome

    def _remember_unplaced(self, key: SourceKey, outcome: Outcome) -> None:
        if outcome.held is not None and outcome.held.reason == HeldReason.UNSCHEDULABLE:
            self._unplaced.add(key)
        else:
            self._unplaced.discard(key)
        rules = outcome.decision.unit.rules if outcome.decision is not None else NO_RULES
        if key in self._unplaced and (rules.affinity or rules.anti_affinity):
            self._waiting_for_others[key] = None
        else:
            self._waiting_for_others.pop(key, None)

    def _wake_when_a_wish_ends(self, key: SourceKey, federated: Object) -> None:
        """A custom migration expires at a given time."""
        now = clock.now()
        end = next_expiry(annotations_of(federated).get(keys.APPLIED_MIGRATION_CONFIGURATION), now)
        if end is not None:
            self.queue.add(key, after=min((end - now).total_seconds() + _AFTER_THE_END, _LONGEST_SLEEP))


def _same_content(old: Any, new: Any) -> bool:
    """Reference counts are in a policy's status; what it selects matters to others than those that name it."""
    before, after = (each.spec.placing if isinstance(each, PropagationPolicy) else each.spec for each in (old, new))
    return bool(before == after and old.metadata.annotations == new.metadata.annotations)


def _without_settled_removals(federated: Object, view: FederatedView | None) -> Object:
    """Drop recorded removals of copies that dispatch has seen gone: they are not in the status of this generation."""
    if view is None or view.status.synced_generation != view.metadata.generation:
        return federated
    annotations = annotations_of(federated)
    noted = set(placement.to_be_removed(view.metadata.annotations))
    absent = noted - {entry.cluster for entry in view.status.clusters}
    cleaned = placement.after_removal(annotations, absent) if absent else None
    if cleaned is None:
        return federated
    return {**federated, "metadata": {**federated["metadata"], "annotations": cleaned}}
