"""What if: the real pipeline on two snapshots, today's and a supposed one, and the difference in the end.

Each affected object first passes today's snapshot until nothing changes, so that changes already on their way are not
counted. Then it passes the supposed snapshot: the difference is the forecast. Nothing is written. Objects are taken by
priority and then by name, and each decision counts for the next (`decided_fleet`). Where objects compete for the same room,
another order may give another result.
"""

from collections.abc import Generator, Iterable
from typing import Any, TypeVar

import msgspec

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import Partial, decode, join_key
from argosy.plan.brake.orders import plan_id
from argosy.plan.claims.record import in_force_now
from argosy.plan.copies.placement import placed
from argosy.plan.explain.decided_fleet import DecidedFleet, looks_at_others
from argosy.plan.explain.forecast import Forecast, ObjectChange, object_change, summed
from argosy.plan.explain.snapshot import ObjectKey, Snapshot
from argosy.plan.failover.failover import rank
from argosy.plan.fields import Json
from argosy.plan.kinds.stock.definition import DEFINITION
from argosy.plan.metadata import annotations_of, labels_of, without_annotations
from argosy.plan.pipeline.federate import NameTaken
from argosy.plan.pipeline.held import HeldReason, held_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import PolicyRef, override_refs
from argosy.plan.pipeline.run import Outcome, run
from argosy.plan.replicas.completed import completed_of
from argosy.plan.scheduling.arriving import awaited
from argosy.plan.scheduling.evaluation import without_remote_plugins
from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.priority import priority_class_of
from argosy.plan.scheduling.schedule import DEFAULT
from argosy.plan.scheduling.triggers import Unwritten

__all__ = ["WhatIf", "changes", "concerned", "forecast", "pass_over"]

K = TypeVar("K")
UNPROPAGATED = "no policy claims it, and it is not propagated"
NOT_YET = (
    "{object}: {clusters} get the definition of its kind and do not serve it yet;"
    " if they do by then, it may be placed there, too"
)


def forecast(before: Snapshot, after: Snapshot) -> Forecast:
    """The forecast without calls to remote plugins: objects whose profile names some are held."""
    question = WhatIf(before, after)
    for key in question.keys:
        without_remote_plugins(question.steps(key))
    return question.forecast()


class WhatIf:
    """One question. Run `steps` of each of `keys`, in their order, then ask for the `forecast`."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self._before = before
        self._after = after
        self.keys = concerned(before, after)
        self._today, self._then = DecidedFleet(before), DecidedFleet(after)
        self._changes: list[ObjectChange] = []
        self._removed: list[tuple[str, str, str]] = []
        self._unsettled: list[str] = []
        self._deferred: dict[str, str] = {}
        self._notes: list[str] = []

    def steps(self, key: ObjectKey) -> Generator[Ask, Reply, None]:
        """Evaluate one object. Yields the questions to remote plugins."""
        source = self._after.source(key)
        if source is None or source["metadata"].get("deletionTimestamp"):
            return
        existing = self._before.federated_object(key)
        if existing is not None and existing["metadata"].get("deletionTimestamp"):
            self._unsettled.append(key.text)
            return
        try:
            settled, unwritten = existing, None
            if key in self._before.sources:
                today = yield from pass_over(self._before, key, existing, self._today.fleet_for(key))
                unwritten = today.unwritten
                if today.object is not None:
                    settled = today.object
                    if changes(self._before, key, existing, today):
                        self._unsettled.append(key.text)
            outcome = yield from pass_over(self._after, key, settled, self._then.fleet_for(key), unwritten)
            if outcome.object is not None and (removed := _once_removed(outcome.object)) is not None:
                # What a copy leaves undone is given to others when it is gone.
                last = yield from pass_over(self._after, key, removed, self._then.fleet_for(key))
                outcome = msgspec.structs.replace(last, object=last.object or removed)
        except NameTaken as error:
            self._notes.append(f"{key.text}: {error}")
            return
        result = outcome.object if outcome.object is not None else settled
        if result is None:
            self._notes.append(f"{key.text}: {UNPROPAGATED}")
            return
        self._then.decided(key, source, settled, result)
        self._after.note_placed(key, result["spec"])
        change = object_change(
            self._after.type_configs[key.type],
            source,
            settled,
            result,
            held_before=held_of(annotations_of(settled)) if settled is not None else None,
            held=outcome.held,
        )
        if others := _not_yet(self._after, key, settled, outcome):
            self._notes.append(NOT_YET.format(object=key.text, clusters=", ".join(others)))
        self._removed += [
            (key.type, join_key(key.namespace, key.name), each.cluster)
            for each in change.clusters
            if each.copy == "removed"
        ]
        if change.changes:
            self._changes.append(change)
        elif outcome.deferred:
            self._deferred[key.text] = outcome.deferred

    def forecast(self) -> Forecast:
        total, clusters = summed(self._changes)
        return Forecast(
            total=total,
            clusters=clusters,
            objects=tuple(self._changes),
            examined=len(self.keys),
            unsettled=tuple(self._unsettled),
            deferred=self._deferred,
            plan=plan_id(self._removed),
            notes=tuple(self._notes),
        )


def _once_removed(federated: Json) -> Json | None:
    """The federated object of a divided Job once the copies on their way out are gone; None if there are none."""
    annotations = annotations_of(federated)
    if not completed_of(annotations).leaving:
        return None
    left = without_annotations(annotations, keys.TO_BE_REMOVED)
    return {**federated, "metadata": {**federated["metadata"], "annotations": left}}


def _not_yet(snapshot: Snapshot, key: ObjectKey, before: Json | None, outcome: Outcome) -> list[str]:
    """Clusters that a new object is not placed in only because they are about to serve its kind."""
    source, definitions = snapshot.type_configs[key.type].spec.source_type, snapshot.type_of(*DEFINITION)
    decision = outcome.decision
    if decision is None or definitions is None or (before is not None and placed(before["spec"])):
        return []
    defined = snapshot.federated_object(ObjectKey(definitions.name, "", f"{source.plural_name}.{source.group}"))
    if defined is None:
        return []
    clusters = frozenset(placed(defined["spec"]))
    return awaited(decision.unit, decision.fleet, DEFAULT.filters, clusters)


def changes(snapshot: Snapshot, key: ObjectKey, existing: Json | None, outcome: Outcome) -> bool:
    """Whether a pass writes more than its own records, which may wait while the placement stays."""
    source = snapshot.source(key)
    if outcome.object is None or source is None:
        return False
    held_before = held_of(annotations_of(existing)) if existing is not None else None
    config = snapshot.type_configs[key.type]
    return (
        existing is None
        or object_change(config, source, existing, outcome.object, held_before=held_before, held=outcome.held).changes
    )


def pass_over(
    snapshot: Snapshot,
    key: ObjectKey,
    existing: Json | None,
    fleet: Fleet | None = None,
    unwritten: Unwritten | None = None,
) -> Generator[Ask, Reply, Outcome]:
    """One pass of the pipeline over an object of the snapshot, on top of this federated object."""
    source = snapshot.source(key)
    if source is None:
        return Outcome()
    labels, selected = labels_of(source), snapshot.selected_by(key)
    ref = in_force_now(source, existing, selected).ref
    policy = snapshot.policies.get(ref) if ref is not None else None
    profile = snapshot.profiles.get(policy.spec.scheduling_profile) if policy is not None else None
    found = {
        ref: snapshot.override_policies[ref]
        for ref in override_refs(labels, key.namespace)
        if ref in snapshot.override_policies
    }
    inputs = PassInputs(
        source=source,
        type_config=snapshot.type_configs[key.type],
        fleet=DecidedFleet(snapshot).fleet_for(key) if fleet is None else fleet,
        existing=existing,
        selected=selected,
        policy=policy,
        override_policies=found,
        profile=profile,
        registry=snapshot.registry,
        now=snapshot.now,
        done=snapshot.done.get(key, {}),
        unwritten=unwritten,
        katalyst=snapshot.katalyst,
    )
    return (yield from run(inputs))


def concerned(before: Snapshot, after: Snapshot) -> tuple[ObjectKey, ...]:
    """The objects that the two snapshots treat differently, in the order of evaluation."""

    def order(key: ObjectKey) -> tuple[bool, int, ObjectKey]:
        """Objects with rules about other workloads last; among the rest, higher priority first."""
        name = priority_class_of(after.sources[key]) if after.priorities else ""
        priority = after.priorities.get(name, after.priorities.get("", 0))
        return waiting and looks_at_others(_policy(after, key)), rank(priority), key

    waiting = any(looks_at_others(policy) for policy in after.policies.values())
    if before.fleet.members != after.fleet.members:
        return tuple(sorted(after.sources, key=order))
    types = _differing(before.type_configs, after.type_configs)
    profiles = _differing(before.profiles, after.profiles)
    policies = _differing(before.policies, after.policies)
    policies |= {ref for ref, each in after.policies.items() if each.spec.scheduling_profile in profiles}
    overrides = _differing(before.override_policies, after.override_policies)
    sources = _differing(before.sources, after.sources)

    def concerns(key: ObjectKey) -> bool:
        if key in sources or key.type in types:
            return True
        if not policies and not overrides:
            return False
        if policies and not policies.isdisjoint(_in_force(before, key) + _in_force(after, key)):
            return True
        labels = decode(after.sources[key], Partial).metadata.labels
        return bool(overrides) and not overrides.isdisjoint(override_refs(labels, key.namespace))

    found = [key for key in after.sources if concerns(key)]
    if found and waiting:
        chosen = set(found)
        found += [key for key in after.sources if key not in chosen and _waits_for_others(after, key)]
    return tuple(sorted(found, key=order))


def _waits_for_others(snapshot: Snapshot, key: ObjectKey) -> bool:
    """Whether it found no cluster, and may find one once another workload is elsewhere."""
    raw = snapshot.federated.get(key)
    held = held_of(decode(raw, Partial).metadata.annotations) if raw is not None else None
    return held is not None and held.reason == HeldReason.UNSCHEDULABLE and looks_at_others(_policy(snapshot, key))


def _policy(snapshot: Snapshot, key: ObjectKey) -> PropagationPolicy | None:
    ref = snapshot.in_force(key).ref
    return snapshot.policies.get(ref) if ref is not None else None


def _in_force(snapshot: Snapshot, key: ObjectKey) -> tuple[PolicyRef, ...]:
    ref = snapshot.in_force(key).ref if key in snapshot.sources else None
    return (ref,) if ref is not None else ()


def _differing(before: dict[K, Any], after: dict[K, Any]) -> set[K]:
    if before is after:
        return set()
    every: Iterable[K] = before.keys() | after.keys()
    return {key for key in every if before.get(key) is not after.get(key) and before.get(key) != after.get(key)}
