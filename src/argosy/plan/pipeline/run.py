"""The pipeline: a source object and its policies in, the whole federated object to store out.

One pass does what the steps of the type config ask for, in order: propagate a namespace, schedule, override. It stops in
front of a step of somebody else's controller and goes on behind it once that one is done. Same inputs give the same
bytes, so a pass over what is right already asks for no write. What it cannot decide (a policy that is not there, nothing
that fits) it holds: the last placement stays, and the object says why.

Deleting sources and reading policies and clusters are the caller's part; the fleet it gives must be complete.
"""

import datetime
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import orjson

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.federated import FederatedObject
from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.profiles import SchedulingProfile
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.kube import duration
from argosy.plan.copies.placement import is_placed_by, placed, with_overrides, with_placement, with_removals_noted
from argosy.plan.explain.record import Inputs, encode, record_of
from argosy.plan.explain.summary import placement_text
from argosy.plan.failover import auto_migration as migrate
from argosy.plan.failover import failover
from argosy.plan.failover.custom_migration import applied_to
from argosy.plan.fields import Json, equal
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline import namespaces, pending
from argosy.plan.pipeline.federate import federated_object
from argosy.plan.pipeline.held import Held, HeldReason, held_of, with_held
from argosy.plan.pipeline.override import OverrideError, overrides
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref
from argosy.plan.plugins import IN_TREE
from argosy.plan.replicas.divide import Division, division_of
from argosy.plan.scheduling.framework import Ask, FrameworkError, Profile, Reply
from argosy.plan.scheduling.profile import Registry, content_of
from argosy.plan.scheduling.schedule import Decision, decide, profile_of, unasked
from argosy.plan.scheduling.triggers import decide as whether_to_schedule
from argosy.plan.scheduling.triggers import triggers_of
from argosy.plan.scheduling.unit import AutoMigrationInfo, UnitError, current_placement, unit_of

__all__ = ["Note", "Outcome", "federate", "federate_steps", "is_wanted"]


class Note(msgspec.Struct, frozen=True):
    """An event to record on the federated object and its source."""

    type: str
    reason: str
    message: str


class Outcome(msgspec.Struct, frozen=True):
    """`object` is to be created or updated; None means that nothing is to be written."""

    object: Json | None = None
    create: bool = False
    held: Held | None = None
    notes: tuple[Note, ...] = ()
    #: What scheduling decided, where it ran.
    decision: Decision | None = None
    #: The settings that keep it from being scheduled although something changed.
    deferred: str = ""


def _as_it_is(profile: Profile) -> Profile:
    return profile


def is_wanted(source: Json, type_config: FederatedTypeConfig, exclude: re.Pattern[str] | None = None) -> bool:
    """Whether something about the source itself asks for its propagation: a policy it names, or the namespace rule."""
    metadata = source["metadata"]
    if propagation_ref(labels_of(source), metadata.get("namespace") or "") is not None:
        return True
    steps = type_config.spec.controllers
    return (
        type_config.kind == "Namespace"
        and any(keys.NSAUTOPROP_CONTROLLER in step for step in steps)
        and namespaces.propagates(metadata["name"], annotations_of(source), exclude)
    )


def federate(source: Json, existing: Json | None, type_config: FederatedTypeConfig, **given: Any) -> Outcome:
    """One pass, given what `federate_steps` takes, with nobody to ask: a profile's remote plugins hold the object."""
    return unasked(federate_steps(source, existing, type_config, **given))


def federate_steps(
    source: Json,
    existing: Json | None,
    type_config: FederatedTypeConfig,
    *,
    fleet: Fleet,
    policy: PropagationPolicy | None = None,
    profile: SchedulingProfile | None = None,
    registry: Registry = IN_TREE,
    override_policies: Mapping[PolicyRef, OverridePolicy] | None = None,
    exclude_namespaces: re.Pattern[str] | None = None,
    wanted: bool = False,
    now: datetime.datetime | None = None,
    migration: AutoMigrationInfo | None = None,
    available: Mapping[str, int] | None = None,
    katalyst: bool = False,
    instrument: Callable[[Profile], Profile] = _as_it_is,
) -> Generator[Ask, Reply, Outcome]:
    """One pass over one source that is not being deleted.

    `policy`, `profile` and `override_policies` are those the source names, as far as they exist; profiles choose from the
    plugins of `registry`. `wanted` says that
    something besides the source asks for it: an object that leads it, or the choice to federate everything.
    `now` is what wishes for a time are measured by, and `migration` what members were seen to be able to run: None
    leaves what is stored. `available` has the replicas that serve in each member, for those that come back to one.
    With `katalyst`, what pods ask for of Katalyst's resources counts. `instrument` may wrap the plugins that run.
    Yields what it has to ask plugins that live elsewhere.
    Raises NameTaken where the federated object belongs to another source.
    """
    metadata = source["metadata"]
    if annotations_of(source).get(keys.NO_FEDERATED_RESOURCE) or metadata.get("namespace") == keys.SYSTEM_NAMESPACE:
        return Outcome()
    if existing is None and not wanted and not is_wanted(source, type_config, exclude_namespaces):
        return Outcome()
    if existing is not None and existing["metadata"].get("deletionTimestamp"):
        return Outcome()  # it is made anew once it is gone
    before = _comparable(existing)
    base = federated_object(source, before, type_config)
    given = _Given(
        fleet,
        policy,
        profile,
        registry,
        override_policies or {},
        exclude_namespaces,
        now,
        migration,
        available,
        katalyst,
        instrument,
    )
    run = _Pass(source, base, before, type_config, given)
    yield from run.steps()
    result = run.result()
    if before is not None and equal(result, before):
        return Outcome(held=run.held, decision=run.decision, deferred=run.deferred)
    return Outcome(run.with_record(result), before is None, run.held, tuple(run.notes), run.decision, run.deferred)


def _comparable(existing: Json | None) -> Json | None:
    """Who manages which field is the server's to say: it is neither compared nor written."""
    if existing is None:
        return None
    metadata = {key: value for key, value in existing["metadata"].items() if key != "managedFields"}
    return {**existing, "metadata": metadata}


class _Given(NamedTuple):
    """What the pass may look at besides the object."""

    fleet: Fleet
    policy: PropagationPolicy | None
    profile: SchedulingProfile | None
    registry: Registry
    override_policies: Mapping[PolicyRef, OverridePolicy]
    exclude_namespaces: re.Pattern[str] | None
    now: datetime.datetime | None
    migration: AutoMigrationInfo | None
    available: Mapping[str, int] | None
    katalyst: bool
    instrument: Callable[[Profile], Profile]


class _Blocked(Exception):
    """The pass cannot go on behind this step."""

    def __init__(self, reason: HeldReason, message: str, event: EventReason):
        super().__init__(message)
        self.held = Held(reason, message)
        self.event = event


_Steps = Generator[Ask, Reply, None]
#: A step that may ask is a generator.
_Step = Callable[["_Pass"], _Steps | None]


class _Pass:
    """The state of one pass: the spec and annotations as they become, and what there is to tell."""

    def __init__(
        self, source: Json, base: Json, before: Json | None, type_config: FederatedTypeConfig, given: _Given
    ) -> None:
        self._source = source
        self._base = base
        self._before = before
        self._type_config = type_config
        self._given = given
        self._namespace: str = source["metadata"].get("namespace") or ""
        self.spec: Json = base["spec"]
        self.annotations = annotations_of(base)
        self._held_before = held_of(self.annotations)
        self.held: Held | None = None
        self.notes: list[Note] = []
        self.decision: Decision | None = None
        self.deferred = ""
        self._pending = self._pending_at_start()

    def _pending_at_start(self) -> pending.Steps:
        """All steps for what is new or changed; else those that were left, so that an unreadable list starts again."""
        if self._before is None or not equal(self._base, self._before):
            return self._type_config.spec.controllers
        try:
            left = pending.parse(self.annotations.get(keys.PENDING_CONTROLLERS))
        except pending.Unreadable:
            return self._type_config.spec.controllers
        named = {name for step in self._type_config.spec.controllers for name in step}
        # A step of ours that the type config no longer has would wait for nobody.
        return pending.without(left, self._own_steps.keys() - named)

    @property
    def _own_steps(self) -> dict[str, "_Step"]:
        return {
            keys.NSAUTOPROP_CONTROLLER: _Pass._propagate_namespace,
            keys.FEDERATED_HPA_CONTROLLER: _Pass._autoscale,
            keys.GLOBAL_SCHEDULER: _Pass._schedule,
            keys.OVERRIDE_CONTROLLER: _Pass._override,
        }

    def steps(self) -> _Steps:
        controllers = self._type_config.spec.controllers
        waiting = True
        for number, step in enumerate(controllers):
            for controller in step:
                run = self._own_steps.get(controller)
                if run is None or not pending.may_act(self._pending, controller):
                    continue
                waiting = False
                before = self.spec
                try:
                    asking = run(self)
                    if asking is not None:
                        yield from asking
                except _Blocked as blocked:
                    self._hold(blocked.held, blocked.event)
                    return
                changed = not equal(before, self.spec)
                self._pending = pending.after(self._pending, controller, controllers[number + 1 :], changed)
        if waiting:
            self.held = self._held_before

    def result(self) -> Json:
        annotations = self.annotations
        before = self._before["spec"] if self._before is not None else {}
        if before.get("placements") is not self.spec.get("placements"):
            annotations = with_removals_noted(annotations, placed(before), placed(self.spec))
        annotations = with_held(annotations, self.held)
        annotations[keys.PENDING_CONTROLLERS] = pending.dump(self._pending)
        return {**self._base, "metadata": {**self._base["metadata"], "annotations": annotations}, "spec": self.spec}

    def with_record(self, result: Json) -> Json:
        """The result to be written, and with it why it was decided so. The record alone is no reason to write."""
        policy, profile = self._given.policy, self._given.profile
        if self.decision is None or policy is None:
            return result
        inputs = Inputs(
            policy=f"{policy.kind}/{policy.metadata.name}",
            policy_generation=policy.metadata.generation,
            profile=policy.spec.scheduling_profile,
            profile_generation=profile.metadata.generation if profile is not None else 0,
            source_generation=self.spec["template"]["metadata"].get("generation") or 0,
        )
        result["metadata"]["annotations"][keys.DECISION] = encode(record_of(self.decision, inputs))
        return result

    def _hold(self, held: Held, event: EventReason) -> None:
        """Told once: a pass that finds the same obstacle again has nothing to add."""
        self.held = held
        if held != self._held_before:
            self.notes.append(Note("Warning", event, held.message))

    # Namespaces.

    def _propagate_namespace(self) -> None:
        name = self._source["metadata"]["name"]
        if not namespaces.propagates(name, annotations_of(self._source), self._given.exclude_namespaces):
            return  # what is there stays there: opting out must not empty a namespace that is in use
        self.spec = with_placement(self.spec, keys.NSAUTOPROP_CONTROLLER, self._given.fleet.names)
        self.annotations = {**self.annotations, **namespaces.ANNOTATIONS}

    # Autoscalers.

    def _autoscale(self) -> None:
        """An autoscaler in every member would fight the division of replicas, so it waits until that is sorted out."""
        message = "autoscalers are not propagated yet: their step of the pipeline is not served"
        raise _Blocked(HeldReason.NOT_SERVED, message, EventReason.SCHEDULE_FEDERATED_OBJECT)

    # Scheduling.

    def _schedule(self) -> _Steps:
        event = EventReason.SCHEDULE_FEDERATED_OBJECT
        self._apply_custom_migration()
        ref = propagation_ref(labels_of(self._source), self._namespace)
        if ref is None:
            self._unschedule()
            return
        policy = self._given.policy
        if policy is None:
            kind = "PropagationPolicy" if ref.namespace else "ClusterPropagationPolicy"
            raise _Blocked(HeldReason.POLICY_MISSING, f"{kind} {ref.key} not found", event)
        wanted_profile = policy.spec.scheduling_profile
        profile = self._given.profile if wanted_profile else None
        if wanted_profile and profile is None:
            raise _Blocked(HeldReason.PROFILE_MISSING, f"SchedulingProfile {wanted_profile} not found", event)
        self._note_auto_migration(policy)
        template = self.spec["template"]
        content = content_of(profile, self._given.registry) if profile is not None else ""
        triggers = triggers_of(template, self.annotations, policy, self._type_config, self._given.fleet, content)
        # An object that is held for want of a cluster is as good as not placed: every change may be the one it needs.
        unplaced = not is_placed_by(self.spec, keys.GLOBAL_SCHEDULER) or (
            self._held_before is not None and self._held_before.reason == HeldReason.UNSCHEDULABLE
        )
        stored = self.annotations.get(keys.SCHEDULING_TRIGGERS)
        verdict = whether_to_schedule(stored, triggers, policy, placed=not unplaced)
        if not verdict.schedule or self.annotations.get(keys.NO_SCHEDULING):
            self.deferred = verdict.deferred_reasons
            self._go_on_coming_back(policy)
            return
        current = self._current()
        try:
            unit = unit_of(
                template,
                self.annotations,
                current,
                policy,
                self._type_config,
                now=self._given.now,
                katalyst=self._given.katalyst,
            )
            plugins = self._given.instrument(profile_of(profile, self._given.registry))
            if unit.divides and (why := kind_of(template).indivisible(template)):
                raise UnitError(why)
        except UnitError as error:
            raise _Blocked(HeldReason.CANNOT_SCHEDULE, str(error), event) from None
        except FrameworkError as error:
            raise _Blocked(HeldReason.PROFILE_INVALID, f"SchedulingProfile {wanted_profile}: {error}", event) from None
        self.decision = yield from decide(unit, self._given.fleet, plugins)
        failed = failover.failed_clusters(self._given.fleet, current)
        target = failover.kept(current, self.decision.placements, failed, unit.desired_replicas or 0)
        homeless = bool(target.keys() - self.decision.placements.keys())
        division = self._sharing(self.decision)
        target = division.arranged(target)
        if not division.by_number:
            self.decision = self.decision.arranged(target)
        self._apply(self._on_the_way(target, policy, current), policy, division)
        # What clusters were refused for want of an answer is asked again with the next pass, and so is what others may get
        # when they are ready.
        lacking = self.decision.filtered is not None and bool(self.decision.filtered.unanswered)
        lacking = lacking or homeless or (unit.divides and not unit.avoid_disruption and self._is_away(current))
        record = triggers.text_unanswered if lacking else triggers.text
        self.annotations = {**self.annotations, keys.SCHEDULING_TRIGGERS: record}
        if self.decision.unschedulable:
            self._hold(Held(HeldReason.UNSCHEDULABLE, self.decision.message), event)
        for annotation, why in sorted(unit.ignored.items()):
            self.notes.append(Note("Warning", event, f"annotation {annotation} is ignored: {why}"))

    def _is_away(self, clusters: Iterable[str]) -> bool:
        """Whether one of the clusters is known, and not ready."""
        members = [self._given.fleet.member(name) for name in clusters]
        return any(member is not None and not member.ready for member in members)

    def _apply_custom_migration(self) -> None:
        path = self._type_config.spec.path_definition.replicas_spec
        self.annotations, complaint = applied_to(self.annotations, self.spec["template"], path, self._given.now)
        if complaint:
            self.notes.append(Note("Warning", EventReason.PARSE_MIGRATION_CONFIGURATION, complaint))

    def _note_auto_migration(self, policy: PropagationPolicy) -> None:
        """How long pods may wait, for whoever counts them, and what came of counting them."""
        wanted = policy.spec.auto_migration
        threshold = _go_duration(wanted.when.pod_unschedulable_for) if wanted is not None else ""
        if not threshold:
            self.annotations = _without(self.annotations, keys.POD_UNSCHEDULABLE_THRESHOLD, keys.AUTO_MIGRATION_INFO)
            return
        self.annotations = {**self.annotations, keys.POD_UNSCHEDULABLE_THRESHOLD: threshold}
        seen = self._given.migration
        if seen is None or seen == migrate.info_of(self.annotations.get(keys.AUTO_MIGRATION_INFO)):
            return
        text = migrate.text_of(seen)
        self.annotations[keys.AUTO_MIGRATION_INFO] = text
        self.notes.append(Note("Normal", EventReason.AUTO_MIGRATION_INFO_UPDATED, f"auto migration: {text}"))

    def _current(self) -> dict[str, int | None]:
        typed = msgspec.convert({"metadata": self._base["metadata"], "spec": self.spec}, FederatedObject)
        return current_placement(typed, self._type_config)

    def _on_the_way(
        self, target: dict[str, int | None], policy: PropagationPolicy, current: Mapping[str, int | None]
    ) -> dict[str, int | None]:
        """Where to go now: at once, but step by step where replicas come back to clusters they left for having failed."""
        before = failover.failback_of(self.annotations)
        failed = failover.failed_clusters(self._given.fleet, {*current, *before.left})
        left = {name for name in failed if name in before.left or target.get(name, 0) != current.get(name, 0)}
        returning = set(before.left) - failed
        available = self._given.available
        numbers = {name: number for name, number in target.items() if number is not None}
        placements = target
        if returning and available is not None and len(numbers) == len(target) and None not in current.values():
            most = failover.step_size(policy.metadata.annotations, sum(numbers.values()))
            gone = {name for name in current if self._given.fleet.member(name) is None}
            serving = {**dict.fromkeys(failed | gone, 0), **available}
            placements = {**failover.step(current, numbers, returning, serving, most)}
        arrived = placements == target
        failback = failover.Failback(tuple(sorted(left if arrived else left | returning)), {} if arrived else numbers)
        self.annotations = failover.with_failback(self.annotations, failback)
        return placements

    def _go_on_coming_back(self, policy: PropagationPolicy) -> None:
        target = failover.failback_of(self.annotations).target
        if target and not self.annotations.get(keys.NO_SCHEDULING):
            self._apply(self._on_the_way({**target}, policy, self._current()), policy, self._sharing(None))

    def _sharing(self, decision: Decision | None) -> Division:
        return division_of(self.spec, self._type_config.spec.path_definition.replicas_spec, decision)

    def _apply(self, wanted: Mapping[str, int | None], policy: PropagationPolicy, division: Division) -> None:
        before = self.spec
        placements, patches, missing = division.divided(wanted)
        self.spec = with_placement(self.spec, keys.GLOBAL_SCHEDULER, placements)
        self.spec = with_overrides(self.spec, keys.GLOBAL_SCHEDULER, patches)
        if missing:
            self._hold(Held(HeldReason.UNSCHEDULABLE, missing), EventReason.SCHEDULE_FEDERATED_OBJECT)
        own = {keys.ENABLE_FOLLOWER_SCHEDULING: "false" if policy.spec.disable_follower_scheduling else "true"}
        if not equal(before, self.spec):
            own[keys.SCHEDULING] = self._feedback(placements)
            if self.decision is None or not self.decision.unschedulable:
                self.notes.append(
                    Note("Normal", EventReason.SCHEDULE_FEDERATED_OBJECT, f"scheduled: {placement_text(placements)}")
                )
        self.annotations = {**self.annotations, **own}

    def _feedback(self, placements: Mapping[str, int | None]) -> str:
        """For the source's owner: what was decided for which generation. A new object's own generation will be 1."""
        feedback: Json = {
            "sourceGeneration": self.spec["template"]["metadata"].get("generation") or 0,
            "fedGeneration": self._base["metadata"].get("generation") or 1,
        }
        if placements:
            feedback["placement"] = dict(sorted(placements.items()))
        return orjson.dumps(feedback).decode()

    def _unschedule(self) -> None:
        """No policy is named (any more): what scheduling placed is taken back, what others placed is not."""
        before = self.spec
        self.spec = with_overrides(with_placement(self.spec, keys.GLOBAL_SCHEDULER, ()), keys.GLOBAL_SCHEDULER, {})
        rest = _without(
            self.annotations,
            keys.SCHEDULING_TRIGGERS,
            keys.DECISION,
            keys.POD_UNSCHEDULABLE_THRESHOLD,
            keys.AUTO_MIGRATION_INFO,
            keys.FAILBACK,
        )
        self.annotations = {**rest, keys.ENABLE_FOLLOWER_SCHEDULING: "false"}
        if equal(before, self.spec):
            return
        self.annotations[keys.SCHEDULING] = self._feedback({})
        message = "no propagation policy is named any more: removed from where it was scheduled"
        self.notes.append(Note("Normal", EventReason.SCHEDULE_FEDERATED_OBJECT, message))

    # Overrides.

    def _override(self) -> None:
        policies = []
        for ref in override_refs(labels_of(self._source), self._namespace):
            policy = self._given.override_policies.get(ref)
            if policy is None:
                kind = "OverridePolicy" if ref.namespace else "ClusterOverridePolicy"
                message = f"{kind} {ref.key} not found"
                raise _Blocked(HeldReason.OVERRIDE_POLICY_MISSING, message, EventReason.MATCH_OVERRIDE_POLICY_FAILED)
            policies.append(policy)
        fleet, where = self._given.fleet, placed(self.spec) if policies else ()
        members = [member for name in where if (member := fleet.member(name)) is not None]
        try:
            patches = overrides(policies, self.spec["template"], members)
        except OverrideError as error:
            raise _Blocked(HeldReason.OVERRIDES_INVALID, str(error), EventReason.PARSE_OVERRIDE_POLICY_FAILED) from None
        before = self.spec
        self.spec = with_overrides(self.spec, keys.OVERRIDE_CONTROLLER, patches)
        if not equal(before, self.spec) and patches:
            names = ", ".join(policy.metadata.name for policy in policies)
            self.notes.append(Note("Normal", EventReason.OVERRIDE_POLICY_APPLIED, f"overrides of {names} applied"))


def _without(annotations: Mapping[str, str], *gone: str) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key not in gone}


def _go_duration(text: str | None) -> str:
    try:
        return duration.format(duration.parse(text or ""))
    except ValueError:
        return ""
