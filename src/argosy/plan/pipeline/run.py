"""Run: one pass over a source object, which makes the whole federated object from it and its policies.

A pass federates the source, places it where its leaders are (and divides a budget as they are), and then runs the steps its type
config lists, in order. It stops before a step of an external controller, and continues after it once that controller is done. The
same inputs give the same bytes, so a pass over an object that is up to date writes nothing. A step that cannot decide holds the
object: the last placement stays, and the object says why.

A step of our own is one file and one line in `STEPS`. The caller handles deleted sources.
"""

import datetime
from collections.abc import Callable, Generator, Mapping
from typing import Final

import msgspec

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.kube import timestamps
from argosy.plan.brake.departure import Departure, departure_of
from argosy.plan.copies.placement import entry_of, is_placed_by, placed, with_removals_noted
from argosy.plan.explain.record import Inputs, encode, record_of
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import annotations_of, with_annotation, without_annotations
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.autoscale import autoscale
from argosy.plan.pipeline.budget import divide_budget
from argosy.plan.pipeline.federate import federate
from argosy.plan.pipeline.follow import follow
from argosy.plan.pipeline.held import Held, HeldReason, with_held
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.namespaces import propagate_namespace
from argosy.plan.pipeline.override import override
from argosy.plan.pipeline.repeatable import is_repeatable
from argosy.plan.pipeline.schedule import schedule
from argosy.plan.pipeline.state import Note, State
from argosy.plan.scheduling.evaluation import without_remote_plugins
from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.schedule import Decision
from argosy.plan.scheduling.triggers import Unwritten, mode_then, unwritten
from argosy.plan.status.shortfalls import NOWHERE, places_nothing, shortfalls

__all__ = ["STEPS", "Outcome", "Step", "run", "run_locally"]

#: A step that may ask remote plugins is a generator.
Step = Callable[[PassInputs, State], State | Generator[Ask, Reply, State]]


def _followed(inputs: PassInputs, state: State) -> State:
    """Every pass begins with following; a type config may list it as well, as KubeAdmiral's do."""
    return state


#: Our own steps, by the name a type config lists them under.
STEPS: Final[Mapping[str, Step]] = {
    keys.NSAUTOPROP_CONTROLLER: propagate_namespace,
    keys.FEDERATED_HPA_CONTROLLER: autoscale,
    keys.GLOBAL_SCHEDULER: schedule,
    keys.OVERRIDE_CONTROLLER: override,
    keys.FOLLOWER_CONTROLLER: _followed,
}


class Outcome(msgspec.Struct, frozen=True):
    """`object` is to be created or updated; None means that nothing is written."""

    object: Json | None = None
    create: bool = False
    held: Held | None = None
    notes: tuple[Note, ...] = ()
    #: What scheduling decided, if it ran.
    decision: Decision | None = None
    #: The settings that prevent scheduling although something changed.
    deferred: str = ""
    #: When the pass is to be run again at the latest.
    until: datetime.datetime | None = None
    #: What the object loses if this is stored.
    departure: Departure | None = None
    #: A decision that is not to be stored, because it changes nothing.
    unwritten: Unwritten | None = None


def run_locally(inputs: PassInputs) -> Outcome:
    """One pass without remote plugins: a profile that names some holds the object."""
    return without_remote_plugins(run(inputs))


def run(inputs: PassInputs) -> Generator[Ask, Reply, Outcome]:
    """One pass. Yields the questions to remote plugins.

    Raises NameTaken if the federated object belongs to another source.
    """
    state = federate(inputs)
    if state is None:
        return Outcome()
    state = msgspec.structs.replace(state, pending=_pending(inputs, state))
    followed = divide_budget(inputs, follow(inputs, state))
    if set(placed(followed.spec)) - set(placed(state.spec)):  # the other steps have yet to say what it is there
        followed = msgspec.structs.replace(followed, pending=inputs.type_config.spec.controllers)
    state = yield from _stepped(inputs, followed)
    return _outcome(inputs, _told(inputs, _somewhere(inputs, state)))


def _pending(inputs: PassInputs, state: State) -> pending.Steps:
    """All steps if the object is new or changed, else those still pending. An unreadable list starts again."""
    controllers = inputs.type_config.spec.controllers
    if state.before is None or not equal(state.base, state.before):
        return controllers
    try:
        left = pending.parse(state.annotations.get(keys.PENDING_CONTROLLERS))
    except pending.Unreadable:
        return controllers
    listed = {name for step in controllers for name in step}
    # A step of ours that the type config no longer lists would stay pending forever.
    return pending.without(left, STEPS.keys() - listed)


def _stepped(inputs: PassInputs, state: State) -> Generator[Ask, Reply, State]:
    controllers = inputs.type_config.spec.controllers
    waiting = True
    for number, group in enumerate(controllers):
        for controller in group:
            step = STEPS.get(controller)
            if step is None or not pending.may_act(state.pending, controller):
                continue
            waiting = False
            taken = step(inputs, state)
            after = taken if isinstance(taken, State) else (yield from taken)
            if after.stopped:
                return after
            changed = not equal(state.spec, after.spec)
            left = pending.after(state.pending, controller, controllers[number + 1 :], changed)
            state = msgspec.structs.replace(after, pending=left)
    return msgspec.structs.replace(state, held=state.held_before) if waiting else state


def _somewhere(inputs: PassInputs, state: State) -> State:
    """An object that asks for propagation and that no step will ever place is held for that, if nothing else holds it."""
    asks = inputs.in_force.ref is not None
    if state.held is not None or not asks or not places_nothing(inputs.type_config) or placed(state.spec):
        return state
    why = NOWHERE.format(name=inputs.type_config.name)
    return state.holding(HeldReason.NO_PLACING_STEP, why, EventReason.SCHEDULE_FEDERATED_OBJECT)


def _told(inputs: PassInputs, state: State) -> State:
    """With events about what is not done as the source says, and about controllers that are waited for. Each is told when the
    source changed, or when that began."""
    found = shortfalls(
        inputs.source,
        inputs.type_config,
        inputs.policy,
        placed=any(is_placed_by(state.spec, step) for step in (keys.GLOBAL_SCHEDULER, keys.NSAUTOPROP_CONTROLLER)),
        divided=bool(entry_of(state.spec, "overrides", keys.GLOBAL_SCHEDULER)),
    )
    before = annotations_of(state.before) if state.before is not None else {}
    if found and (state.before is None or not equal(state.base, state.before) or _mode_changed(before, state)):
        for text in found:
            state = state.noting("Warning", EventReason.WITHOUT_EFFECT, text)
    others = [name for name in (state.pending[0] if state.pending else ()) if name not in STEPS]
    if others and state.held is None and before.get(keys.PENDING_CONTROLLERS) != pending.dump(state.pending):
        text = f"nothing is sent to members until these controllers have acted: {', '.join(others)}"
        state = state.noting("Normal", EventReason.WAITING_FOR_CONTROLLERS, text)
    return state


def _mode_changed(before: Mapping[str, str], state: State) -> bool:
    """Whether an object that stays whole is asked to divide since just now, as far as anybody knew."""
    return mode_then(before.get(keys.SCHEDULING_TRIGGERS)) != mode_then(state.annotations.get(keys.SCHEDULING_TRIGGERS))


def _outcome(inputs: PassInputs, state: State) -> Outcome:
    departure = departure_of(inputs, state)
    annotations = _annotations(inputs, state, departure)
    left, annotations = _unwritten(inputs, state, annotations)
    if state.before is not None and equal(_object(state, annotations), state.before):
        return Outcome(
            held=state.held, decision=state.decision, deferred=state.deferred, until=state.until, unwritten=left
        )
    if left is not None:
        annotations = with_annotation(
            annotations, keys.SCHEDULING_TRIGGERS, state.annotations[keys.SCHEDULING_TRIGGERS]
        )
    # The record of the decision is written with other changes, but never causes a write.
    record = _record(inputs, state)
    if record:
        annotations = with_annotation(annotations, keys.DECISION, record)
    written = _object(state, annotations)
    create = state.before is None
    return Outcome(written, create, state.held, state.notes, state.decision, state.deferred, state.until, departure)


def _unwritten(
    inputs: PassInputs, state: State, annotations: dict[str, str]
) -> tuple[Unwritten | None, dict[str, str]]:
    """The annotations without a record that need not be stored for its own sake, and what to remember of it then."""
    stored = annotations_of(state.before).get(keys.SCHEDULING_TRIGGERS) if state.before is not None else None
    now = annotations.get(keys.SCHEDULING_TRIGGERS)
    if state.decision is None or inputs.policy is None or stored is None or now is None or stored == now:
        return None, annotations
    left = unwritten(stored, now)
    # One that lacks answers is made again after a restart in any case.
    if left is not None and not left.unanswered and not is_repeatable(state.decision, inputs.policy):
        left = None
    return left, annotations if left is None else with_annotation(annotations, keys.SCHEDULING_TRIGGERS, stored)


def _object(state: State, annotations: dict[str, str]) -> Json:
    return {**state.base, "metadata": {**state.base["metadata"], "annotations": annotations}, "spec": state.spec}


def _annotations(inputs: PassInputs, state: State, departure: Departure | None) -> dict[str, str]:
    annotations = without_annotations(state.annotations, keys.HELD_REMOVAL)
    if not any(keys.OVERRIDE_CONTROLLER in step for step in inputs.type_config.spec.controllers):
        # Nobody overrides any more, so nobody would ever let these go on.
        annotations = without_annotations(annotations, keys.HELD_COPIES)
    before = state.before["spec"] if state.before is not None else {}
    if departure is not None or before.get("placements") is not state.spec.get("placements"):
        causes = departure.causes if departure is not None else {}
        since = timestamps.timestamp(inputs.now) if inputs.now is not None else ""
        annotations = with_removals_noted(annotations, causes, placed(state.spec), since)
    return {**with_held(annotations, state.held), keys.PENDING_CONTROLLERS: pending.dump(state.pending)}


def _record(inputs: PassInputs, state: State) -> str:
    """The decision and its inputs, as `argosy explain` reads them; empty if nothing was decided."""
    policy, profile = inputs.policy, inputs.profile
    if state.decision is None or policy is None:
        return ""
    rests_on = Inputs(
        policy=f"{policy.kind}/{policy.metadata.name}",
        policy_generation=policy.metadata.generation,
        profile=policy.spec.scheduling_profile,
        profile_generation=profile.metadata.generation if profile is not None else 0,
        source_generation=state.spec["template"]["metadata"].get("generation") or 0,
    )
    return encode(record_of(state.decision, rests_on))
