"""Schedule: the step that places an object in clusters by its propagation policy, and divides its replicas.

If none of its inputs changed since the last time, nothing is decided. What cannot be decided (the policy is missing, no
cluster fits) holds the object: its placement stays, and it says why.
"""

from collections.abc import Generator, Mapping
from typing import Final

import msgspec
import orjson

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.federated import FederatedObject
from argosy.api.policies import PropagationPolicy
from argosy.fleet.snapshot import Fleet
from argosy.plan.copies.placement import is_placed_by, to_be_removed, with_overrides, with_placement
from argosy.plan.explain.summary import placement_text
from argosy.plan.failover import auto_migration, custom_migration, evacuation, failback, failover
from argosy.plan.fields import Json, equal
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import without_annotations
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.replicas.completed import Witness, Work, completed_of, with_completed
from argosy.plan.replicas.divide import Divider, divider_of
from argosy.plan.replicas.whole import why_whole
from argosy.plan.scheduling import arriving
from argosy.plan.scheduling.framework import Ask, FrameworkError, Reply
from argosy.plan.scheduling.profile import content_of
from argosy.plan.scheduling.schedule import Decision, decide, profile_of
from argosy.plan.scheduling.triggers import Triggers, as_decided, mode_then, policy_then, triggers_of
from argosy.plan.scheduling.triggers import decide as whether_to_schedule
from argosy.plan.scheduling.unit import UnitError, current_placement, unit_of

__all__ = ["schedule"]

_EVENT: Final = EventReason.SCHEDULE_FEDERATED_OBJECT
TAKEN_OVER: Final = (
    f": a label or another policy's selectors take it over, the annotation {keys.NO_SELECTION}=true lets go"
)
MISSED: Final = (
    f": it waits for the policy to come back; a label takes it over, the annotation {keys.NO_SELECTION}=true lets go"
)
NO_POLICY: Final = "no propagation policy is named any more: removed from the clusters it was scheduled to"


def schedule(inputs: PassInputs, state: State) -> Generator[Ask, Reply, State]:
    state = _with_custom_migration(inputs, _with_settled_work(inputs, state))
    ref, policy = inputs.in_force.ref, inputs.policy
    if ref is None:
        return _unscheduled(inputs, state)
    if policy is None:
        why = f"{ref.kind} {ref.key} not found{MISSED if inputs.in_force.lost else ''}"
        return state.stopping(HeldReason.POLICY_MISSING, why, _EVENT)
    if inputs.in_force.lost:
        why = f"{ref.kind} {ref.key} selects it no more{TAKEN_OVER}"
        return state.stopping(HeldReason.NOT_SELECTED, why, _EVENT)
    named = policy.spec.scheduling_profile
    profile = inputs.profile if named else None
    if named and profile is None:
        return state.stopping(HeldReason.PROFILE_MISSING, f"SchedulingProfile {named} not found", _EVENT)

    state = _with_drift_correction(_with_auto_migration(inputs, state, policy), policy)
    template = state.spec["template"]
    content = content_of(profile, inputs.registry) if profile is not None else ""
    triggers = triggers_of(template, state.annotations, policy, inputs.type_config, inputs.fleet, content)
    stored = state.annotations.get(keys.SCHEDULING_TRIGGERS)
    decided = as_decided(stored, inputs.unwritten)
    verdict = whether_to_schedule(decided, triggers, policy, placed=_is_placed(state))
    if verdict.deferred and decided:  # what is deferred now must not be taken up after a restart
        state = state.with_annotations({**state.annotations, keys.SCHEDULING_TRIGGERS: decided})
    if not verdict.schedule or state.annotations.get(keys.NO_SCHEDULING):
        return _with_failback(inputs, msgspec.structs.replace(state, deferred=verdict.deferred_reasons), policy)

    state = msgspec.structs.replace(state, changed=verdict.difference)
    current = _current(inputs, state)
    whole = ""
    if inputs.replicas_path:
        other = policy_then(stored) != triggers.record.policy
        whole = why_whole(template, mode_then(stored), triggers.record.mode, current, other_policy=other)
    try:
        unit = unit_of(
            template,
            state.annotations,
            current,
            policy,
            inputs.type_config,
            now=inputs.now,
            katalyst=inputs.katalyst,
            whole=bool(whole),
        )
        unit = evacuation.careful(unit, inputs.fleet, state.annotations, verdict, inputs.bound)
        plugins = inputs.instrument(profile_of(profile, inputs.registry))
    except UnitError as error:
        return state.stopping(HeldReason.CANNOT_SCHEDULE, str(error), _EVENT)
    except FrameworkError as error:
        return state.stopping(HeldReason.PROFILE_INVALID, f"SchedulingProfile {named}: {error}", _EVENT)
    decision = yield from decide(unit, inputs.fleet, plugins)
    if inputs.arrival is not None and not decision.unschedulable and not _has_placement(state):
        others = arriving.awaited(decision.unit, decision.fleet, plugins.filters, inputs.arrival.clusters)
        if others:
            message = arriving.message(unit, others, inputs.arrival)
            return state.waiting(HeldReason.WAITING_FOR_KIND, message, inputs.arrival.until)
    return _scheduled(inputs, state, policy, current, decision, triggers)


def _is_placed(state: State) -> bool:
    """An object held for lack of a cluster counts as not placed: any change may be the one it needs."""
    lacks_a_cluster = state.held_before is not None and state.held_before.reason == HeldReason.UNSCHEDULABLE
    return _has_placement(state) and not lacks_a_cluster


def _has_placement(state: State) -> bool:
    return is_placed_by(state.spec, keys.GLOBAL_SCHEDULER)


def _current(inputs: PassInputs, state: State) -> dict[str, int | None]:
    typed = msgspec.convert({"metadata": state.base["metadata"], "spec": state.spec}, FederatedObject)
    return current_placement(typed, inputs.type_config)


def _scheduled(
    inputs: PassInputs,
    state: State,
    policy: PropagationPolicy,
    current: Mapping[str, int | None],
    decision: Decision,
    triggers: Triggers,
) -> State:
    unit = decision.unit
    failed = failover.failed_clusters(inputs.fleet, current)
    left = failover.evacuated(current, decision.placements, failed, unit.desired_replicas or 0)
    stays = {name: number for name, number in left.placements.items() if name not in decision.placements}
    divider = divider_of(state.spec, inputs.replicas_path, decision, _work(inputs, state))
    if divider.kind.work and divider.divide(left.placements).missing:
        left = failover.staying(current, left, failed)
    target = divider.adjusted(left.placements)
    if not divider.by_number:
        decision = decision.with_placements(target)
    state = msgspec.structs.replace(state, decision=decision)
    state = _placed(inputs, state, policy, divider, target, current)
    # Clusters without an answer from a plugin are asked about again in the next pass. So are clusters that may get replicas
    # once they are ready, or once others can take the replicas of a failed cluster.
    unanswered = decision.filtered is not None and bool(decision.filtered.unanswered)
    waits = unit.divides and not unit.avoid_disruption and _has_unready(inputs.fleet, current)
    # ... or once a copy is gone: what it has not done is then given to others.
    leaving = bool(completed_of(state.annotations).leaving)
    again = unanswered or left.incomplete or waits or leaving
    record = triggers.text_unanswered if again else triggers.text
    state = state.with_annotations({**state.annotations, keys.SCHEDULING_TRIGGERS: record})
    if why := evacuation.told(stays):
        state = state.holding(HeldReason.UNSCHEDULABLE, why, _EVENT)
    elif decision.unschedulable or decision.waiting:
        state = state.holding(HeldReason.UNSCHEDULABLE, decision.message, _EVENT)
    for annotation, why in sorted(unit.ignored.items()):
        state = state.noting("Warning", _EVENT, f"annotation {annotation} is ignored: {why}")
    return state


def _has_unready(fleet: Fleet, clusters: Mapping[str, int | None]) -> bool:
    members = [fleet.member(name) for name in clusters]
    return any(member is not None and not member.ready for member in members)


def _with_failback(inputs: PassInputs, state: State, policy: PropagationPolicy) -> State:
    """The next step of a failback; nothing is decided anew."""
    target = failback.failback_of(state.annotations).target
    if not target or state.annotations.get(keys.NO_SCHEDULING):
        return state
    divider = divider_of(state.spec, inputs.replicas_path, None, _work(inputs, state))
    return _placed(inputs, state, policy, divider, {**target}, _current(inputs, state))


def _placed(
    inputs: PassInputs,
    state: State,
    policy: PropagationPolicy,
    divider: Divider,
    target: dict[str, int | None],
    current: Mapping[str, int | None],
) -> State:
    """Placed and divided as the target says, or a step towards it."""
    progress = failback.towards(
        target, current, state.annotations, policy=policy, fleet=inputs.fleet, available=inputs.available
    )
    placements, patches, missing = divider.divide(progress.placements)
    spec = with_placement(state.spec, keys.GLOBAL_SCHEDULER, placements)
    spec = with_overrides(spec, keys.GLOBAL_SCHEDULER, patches)
    follows = "false" if policy.spec.disable_follower_scheduling else "true"
    annotations = with_completed(progress.annotations, divider.completed_with(patches))
    annotations[keys.ENABLE_FOLLOWER_SCHEDULING] = follows
    changed = not equal(state.spec, spec)
    if changed:
        annotations[keys.SCHEDULING] = _feedback(state, placements)
    after = state.with_spec(spec).with_annotations(annotations)
    if missing:
        after = after.holding(HeldReason.UNSCHEDULABLE, missing, _EVENT)
    if changed and (state.decision is None or not state.decision.unschedulable):
        after = after.noting("Normal", _EVENT, f"scheduled: {placement_text(placements)}")
    return after


def _feedback(state: State, placements: Mapping[str, int | None]) -> str:
    """For the source's owner: which placement was decided for which generation. A new object's own generation will be 1."""
    feedback: Json = {
        "sourceGeneration": state.spec["template"]["metadata"].get("generation") or 0,
        "fedGeneration": state.base["metadata"].get("generation") or 1,
    }
    if placements:
        feedback["placement"] = dict(sorted(placements.items()))
    return orjson.dumps(feedback).decode()


def _unscheduled(inputs: PassInputs, state: State) -> State:
    """No policy is named (any more): scheduling's placement is removed, those of others stay."""
    divider = divider_of(state.spec, inputs.replicas_path, None, _work(inputs, state))
    state = state.with_annotations(with_completed(state.annotations, divider.completed_with({})))
    spec = with_overrides(with_placement(state.spec, keys.GLOBAL_SCHEDULER, ()), keys.GLOBAL_SCHEDULER, {})
    annotations = without_annotations(
        state.annotations,
        keys.SCHEDULING_TRIGGERS,
        keys.DECISION,
        keys.POD_UNSCHEDULABLE_THRESHOLD,
        keys.AUTO_MIGRATION_INFO,
        keys.FAILBACK,
        keys.DRIFT_CORRECTION,
    )
    annotations[keys.ENABLE_FOLLOWER_SCHEDULING] = "false"
    if equal(state.spec, spec):
        return state.with_spec(spec).with_annotations(annotations)
    annotations[keys.SCHEDULING] = _feedback(state, {})
    return state.with_spec(spec).with_annotations(annotations).noting("Normal", _EVENT, NO_POLICY)


def _with_drift_correction(state: State, policy: PropagationPolicy) -> State:
    annotations = without_annotations(state.annotations, keys.DRIFT_CORRECTION)
    if policy.spec.drift_correction == keys.REPORT:
        annotations[keys.DRIFT_CORRECTION] = keys.REPORT
    return state.with_annotations(annotations)


# Work that is done once.


def _work(inputs: PassInputs, state: State) -> Work:
    if not kind_of(inputs.source).work:
        return Work()
    noted = frozenset(to_be_removed(state.annotations))
    return Work(completed_of(state.annotations), _witness(inputs), noted, kind_of(inputs.source).over(inputs.source))


def _witness(inputs: PassInputs) -> Witness:
    return Witness(inputs.done, frozenset(member.name for member in inputs.fleet.members if member.ready))


def _with_settled_work(inputs: PassInputs, state: State) -> State:
    """What a copy has done counts for good once it is gone."""
    if keys.COMPLETED not in state.annotations:
        return state
    settled = completed_of(state.annotations).settled(to_be_removed(state.annotations), _witness(inputs))
    return state.with_annotations(with_completed(state.annotations, settled))


# Migration.


def _with_custom_migration(inputs: PassInputs, state: State) -> State:
    annotations, complaint = custom_migration.applied_to(
        state.annotations, state.spec["template"], inputs.replicas_path, inputs.now
    )
    state = state.with_annotations(annotations)
    return state.noting("Warning", EventReason.PARSE_MIGRATION_CONFIGURATION, complaint) if complaint else state


def _with_auto_migration(inputs: PassInputs, state: State, policy: PropagationPolicy) -> State:
    annotations, news = auto_migration.noted_in(state.annotations, policy, inputs.migration)
    state = state.with_annotations(annotations)
    return state.noting("Normal", EventReason.AUTO_MIGRATION_INFO_UPDATED, f"auto migration: {news}") if news else state
