"""Triggers: whether an object must be scheduled again.

The inputs of the last scheduling are kept with the object as a short record: hashes of what belongs to the object, and the
fleet's fingerprint. Changes of the object itself always trigger scheduling. Changes of policy and clusters trigger it if the
policy's `rescheduleWhen` says so, else they are deferred: the old record stays, nothing is written, and the same difference
is found again next time. Of the clusters' labels only those count that scheduling read. An object that is placed nowhere is
always tried again.

A decision that changes nothing but the fleet on record is not stored either, if it is repeatable (`pipeline.repeatable`): its
caller remembers it (`Unwritten`), and compares with that as long as the process lives. After a restart such an object is
decided once more, with the same result. Once a change is deferred that would no longer be so, since the stored record differs
in more than what is deferred: then the record is brought up to date first.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.policies import PropagationPolicy, PropagationPolicySpec
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.fingerprint import Fingerprint, FleetChange
from argosy.fleet.member import digest
from argosy.fleet.snapshot import Fleet
from argosy.plan.failover.auto_migration import relevant
from argosy.plan.fields import Json
from argosy.plan.replicas.whole import mode_record
from argosy.plan.scheduling import triggers_kubeadmiral as kubeadmiral
from argosy.plan.scheduling.unit import desired_replicas, request_of_template

__all__ = [
    "POLICY_CONTENT_CHANGED",
    "UNANSWERED",
    "Difference",
    "Record",
    "Triggers",
    "Unwritten",
    "Verdict",
    "as_decided",
    "decide",
    "mode_then",
    "outer_difference",
    "policy_then",
    "read_record",
    "record_as_decided",
    "triggers_of",
    "unwritten",
    "verdict",
]

FIRST = "not scheduled before"
UNPLACED = "not placed anywhere"
#: Largest size of the label names in a record.
_LONGEST_LABELS = 120
POLICY_CONTENT_CHANGED = "policyContentChanged"
#: As a trigger: not all plugins had answered, or for another reason the decision is to be made again.
UNANSWERED = "unanswered"
UNREADABLE = "the record of the last scheduling is unreadable"


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored. Kept short: it is part of every federated object."""

    annotations: str
    replicas: int
    request: str
    clusters: Fingerprint
    #: The cluster labels that were read, and that the fingerprint covers; None for all of them.
    reads: tuple[str, ...] | None = None
    policy: str = ""
    content: str = ""
    migration: str = ""
    #: Content of the profile that the policy names, and of its plugins.
    profile: str = ""
    #: Of kinds that are divided only if somebody asks for it: the mode (`replicas.whole`).
    mode: str = ""
    #: Some plugin did not answer for all clusters: it is asked again in the next pass.
    unanswered: bool = False


class Unwritten(msgspec.Struct, frozen=True):
    """A decision on another fleet than the stored record has, which changed nothing."""

    #: The digest of the stored record.
    record: int
    clusters: Fingerprint
    unanswered: bool = False


class Triggers(msgspec.Struct, frozen=True):
    """The present inputs of scheduling; `text` is the record to store after scheduling."""

    record: Record
    fleet: Fleet
    #: The same in KubeAdmiral's form, made only when such a record is found.
    inputs: kubeadmiral.Inputs

    @property
    def text(self) -> str:
        return msgspec.json.encode(self.record).decode()

    @property
    def text_unanswered(self) -> str:
        """The record to store if the decision lacked answers."""
        return msgspec.json.encode(msgspec.structs.replace(self.record, unanswered=True)).decode()


class Difference(msgspec.Struct, frozen=True):
    """What changed since the record was made: the object's own triggers by name, the policy's content, the clusters."""

    stable: tuple[str, ...] = ()
    content: bool = False
    fleet: FleetChange = FleetChange()
    #: Whether the profile's content is other, which counts as content.
    profile: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """Whether to schedule, and why. `deferred` names the settings that defer a known change."""

    schedule: bool
    reason: str = ""
    deferred: tuple[str, ...] = ()
    #: What changed; None if that is not known.
    difference: Difference | None = None

    @property
    def deferred_reasons(self) -> str:
        return "; ".join(self.deferred)


def triggers_of(
    template: Json,
    annotations: Mapping[str, str],
    policy: PropagationPolicy | None,
    type_config: FederatedTypeConfig,
    fleet: Fleet,
    profile: str = "",
) -> Triggers:
    """The present triggers of an object: its template, its federated object's annotations, its policy, the fleet.

    `profile` is the content of the profile the policy names (see `profile.content_of`).
    """
    # A new cluster without discovery cannot be selected yet: it counts as joined once it can.
    joined = fleet.discovered_only()
    replicas = desired_replicas(template, type_config.spec.path_definition.replicas_spec) or 0
    request = request_of_template(template)
    stated = {key: value for key, value in annotations.items() if key in keys.SCHEDULING_ANNOTATIONS}
    migrates = policy is not None and policy.spec.auto_migration is not None
    migration = annotations.get(keys.AUTO_MIGRATION_INFO) if migrates else None
    migrated = relevant(migration, policy.spec.replicas_strategy) if policy is not None else ""
    reads = _labels_read(policy.spec) if policy is not None and not stated else None
    record = Record(
        annotations=_hash(sorted(stated.items())),
        replicas=replicas,
        request=_hash([request.milli_cpu, request.memory, request.ephemeral_storage, sorted(request.scalars.items())]),
        clusters=joined.hashes.reading(reads).fingerprint,
        reads=reads,
        policy=_name(policy) if policy is not None else "",
        content=_content(policy) if policy is not None else "",
        migration=_hash(migrated) if migrated else "",
        profile=profile,
        mode=mode_record(template, annotations, policy),
    )
    return Triggers(record, joined, kubeadmiral.Inputs(stated, replicas, request, migration, policy))


def decide(stored: str | None, now: Triggers, policy: PropagationPolicy | None, *, placed: bool) -> Verdict:
    """Whether to schedule, given the record stored with the object (None or empty: none)."""
    if not stored:
        return Verdict(True, FIRST)
    unplaced = not placed and policy is not None
    if stored == now.text:
        return Verdict(True, UNPLACED, difference=Difference()) if unplaced else Verdict(False)
    then = read_record(stored)
    if then is None:
        return Verdict(True, UNPLACED if unplaced else UNREADABLE)
    difference = _difference(then, now)
    if unplaced:
        return Verdict(True, UNPLACED, difference=difference)
    found = verdict(difference, policy.spec if policy is not None else None)
    return msgspec.structs.replace(found, difference=difference)


def unwritten(stored: str | None, now: str) -> Unwritten | None:
    """What to remember of a decision with the record `now`, if it is enough that the stored one is behind: it has another fleet
    only, so it leads to the same decision again."""
    then, later = read_record(stored), read_record(now)
    if not isinstance(then, Record) or not isinstance(later, Record):
        return None
    if then.clusters == later.clusters and not then.unanswered:
        return None
    if msgspec.structs.replace(then, clusters=later.clusters, unanswered=later.unanswered) != later:
        return None
    return Unwritten(digest(stored), later.clusters, later.unanswered)


def as_decided(stored: str | None, later: Unwritten | None) -> str | None:
    """The record of the last decision, stored or not."""
    record = record_as_decided(stored, later) if later is not None else None
    return msgspec.json.encode(record).decode() if isinstance(record, Record) else stored


def record_as_decided(stored: str | None, later: Unwritten | None) -> Record | kubeadmiral.Record | None:
    record = read_record(stored)
    if later is None or not isinstance(record, Record) or digest(stored) != later.record:
        return record
    return msgspec.structs.replace(record, clusters=later.clusters, unanswered=later.unanswered)


def mode_then(stored: str | None) -> str:
    """The mode of the last scheduling, as far as it was kept."""
    then = read_record(stored)
    return then.mode if isinstance(then, Record) else ""


def policy_then(stored: str | None) -> str:
    """The policy of the last scheduling, as `Record.policy` has it."""
    then = read_record(stored)
    return then.policy if isinstance(then, Record) else ""


def read_record(stored: str | None) -> Record | kubeadmiral.Record | None:
    """The inputs of the last scheduling; in KubeAdmiral's form for an object that was taken over from it.

    None if there is no record, or it is unreadable.
    """
    if not stored:
        return None
    form: type[Record | kubeadmiral.Record] = kubeadmiral.Record if kubeadmiral.is_record(stored) else Record
    try:
        return msgspec.json.decode(stored, type=form)
    except msgspec.MsgspecError:
        return None


def verdict(difference: Difference, policy: PropagationPolicySpec | None) -> Verdict:
    """The rules, for either form of record."""
    changed = difference.fleet
    if policy is None:
        anything = difference != Difference()
        return Verdict(anything, "changed without a policy" if anything else "")
    if difference.stable:
        return Verdict(True, f"changed: {', '.join(difference.stable)}")
    if difference == Difference():
        return Verdict(False)
    if policy.sticky:
        return Verdict(False, deferred=("disableRescheduling:true",))
    when = policy.reschedule_when
    deferred = []
    for setting, differs, allowed in (
        (POLICY_CONTENT_CHANGED, difference.content, when.policy_content_changed),
        ("clusterLabelsChanged", changed.labels, when.cluster_labels_changed),
        # A taint may evict: no setting defers it.
        ("clusterTaintsChanged", changed.taints, True),
        ("clusterAPIResourcesChanged", changed.apis, when.cluster_api_resources_changed),
        ("clusterJoined", changed.joined, when.cluster_joined),
    ):
        if differs and allowed:
            return Verdict(True, setting)
        if differs:
            deferred.append(f"{setting}:false")
    return Verdict(False, deferred=tuple(deferred))


def outer_difference(then: Record, policy: PropagationPolicy, fleet: Fleet) -> Difference:
    """What changed besides the object itself and its profile: its policy, the clusters."""
    return Difference(
        stable=("policy",) if then.policy != _name(policy) else (),
        content=then.content != _content(policy),
        fleet=fleet.hashes.reading(then.reads).since(then.clusters),
    )


def _name(policy: PropagationPolicy) -> str:
    return f"{policy.kind}/{policy.metadata.name}"


def _difference(then: Record | kubeadmiral.Record, now: Triggers) -> Difference:
    if isinstance(then, kubeadmiral.Record):
        return _difference_kubeadmiral(then, now)
    record = now.record
    stable = ("annotations", "replicas", "request", "policy", "migration", UNANSWERED)
    return Difference(
        stable=tuple(field for field in stable if getattr(then, field) != getattr(record, field)),
        content=(then.content, then.profile) != (record.content, record.profile),
        fleet=now.fleet.hashes.reading(then.reads).since(then.clusters),
        profile=then.profile != record.profile,
    )


def _difference_kubeadmiral(then: kubeadmiral.Record, now: Triggers) -> Difference:
    """An object taken over from KubeAdmiral is compared in KubeAdmiral's form, so that the takeover reschedules nothing."""
    record = kubeadmiral.record_for_takeover(now.inputs, now.fleet, then)
    return Difference(
        stable=then.stable_changes(record),
        content=then.policy_content_hash != record.policy_content_hash,
        fleet=then.fleet_change(record),
    )


def _labels_read(spec: PropagationPolicySpec) -> tuple[str, ...] | None:
    """The cluster labels that a policy reads; None if unknown, as for the plugins of a profile."""
    if spec.scheduling_profile:
        return None
    read = set(spec.cluster_selector)
    for term in (*spec.cluster_affinity, *(each.preference for each in spec.preferred_cluster_affinity)):
        read.update(requirement.key for requirement in term.match_expressions)
    read.update(constraint.topology_key for constraint in spec.topology_spread_constraints)
    for affinity in (spec.workload_affinity, spec.workload_anti_affinity):
        if affinity is not None:
            read.update(term.topology_key for term in affinity.required_during_scheduling_ignored_during_execution)
            preferred = affinity.preferred_during_scheduling_ignored_during_execution
            read.update(each.workload_affinity_term.topology_key for each in preferred)
    if spec.locality is not None:
        read.update(term.topology_key for term in spec.locality.near)
    if spec.failure_domain is not None:
        read.add(spec.failure_domain.topology_key)
    if spec.compute_power is not None:
        read.add(keys.COMPUTE_POWER)
    if spec.cost is not None:
        read.add(keys.PRICE_PER_CORE_HOUR)
    found = tuple(sorted(read - {""}))
    # The record is part of every object: if the list is too long, all labels count.
    return found if sum(len(key) + 3 for key in found) <= _LONGEST_LABELS else None


def _content(policy: PropagationPolicy) -> str:
    """Everything in the policy that affects a placement, except auto migration, which has its own trigger."""
    content = msgspec.structs.replace(policy.spec.placing, auto_migration=None, drift_correction="")
    refuses = policy.metadata.annotations.get(keys.REFUSE_OBJECT_OVERRIDES, "")
    return _hash([msgspec.to_builtins(content, order="deterministic"), refuses])


def _hash(value: Any) -> str:
    return f"{digest(value):016x}"
