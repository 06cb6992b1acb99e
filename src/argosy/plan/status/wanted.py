"""Wanted: whether an object is as its owner wants it, and if not, what is missing.

One answer for everybody who asks: `argosy status`, its `--wait`, and the conditions of the object. An object is as wanted if
nothing is missing: its newest change is federated, decided, sent to each cluster it is placed in and observed there, and each
copy is what its kind calls finished (`plan.kinds`). What is not known counts as missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import msgspec

from argosy.api import keys
from argosy.api.conditions import NOT_HEARD_OF_MESSAGE, READY, Propagation
from argosy.api.federated import CollectedFieldsWithCluster
from argosy.api.policies import PropagationPolicy
from argosy.api.typeconfigs import PathDefinition
from argosy.api.types import CollectedStatus, FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.brake.held_removal import held_removal_of
from argosy.plan.claims.record import InForce, in_force, looked_at
from argosy.plan.copies.digest import digest, template_digest
from argosy.plan.copies.drift import as_left
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.copies.placement import Patches, may_hold_copies, overrides_by_cluster
from argosy.plan.copies.retain import retain_replicas
from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.kinds.cause import cause_text
from argosy.plan.kinds.generic import unfinished
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.lack import About, Lack
from argosy.plan.kinds.observation import Aggregation, Observation, observed_in
from argosy.plan.kinds.registry import kind_in, kind_of
from argosy.plan.kinds.rollout import UNOBSERVED, status_of
from argosy.plan.kinds.rules.retained import keeping_fields
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.replicas.completed import completed_of
from argosy.plan.status.collect import UNREACHABLE
from argosy.plan.status.since import changed_since, policy_vanished_since
from argosy.plan.status.undecided import undecided, unfederated

__all__ = ["PENDING", "Known", "copy_in", "desired_in", "lacks", "missing", "pauses", "propagation_in"]

#: Shown for a cluster that has not got what is wanted there yet. Not a state that is stored.
PENDING: Final = "Pending"
_READY_REPLICAS: Final = "readyReplicas"
#: Where a type config does not say otherwise.
_REPLICAS: Final = "spec.replicas"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about one source; None is what is not there."""

    #: In the version of its type config.
    source: Json
    type_config: FederatedTypeConfig | None
    federated: FederatedObject | None
    collected: CollectedStatus | None
    clusters: tuple[FederatedCluster, ...]
    fleet_paused: bool
    #: The policy whose selectors claim it now, where somebody asked; what is on record counts as well.
    selected: PolicyRef | None = None
    #: The policy in force. Without it, it is not known whether a change of clusters has yet to be acted on.
    policy: PropagationPolicy | None = None

    @property
    def in_force(self) -> InForce:
        """The policy that counts for it, whether or not it exists."""
        federated = self.federated.metadata if self.federated is not None else None
        return in_force(looked_at(self.source), federated, self.selected)

    def member(self, name: str) -> FederatedCluster | None:
        return next((each for each in self.clusters if each.name == name), None)

    def collected_in(self, cluster: str) -> CollectedFieldsWithCluster | None:
        entries = self.collected.clusters if self.collected is not None else ()
        return next((each for each in entries if each.cluster == cluster), None)


def missing(known: Known, errors: Mapping[str, str] = {}) -> list[str]:
    """What is missing until the object is as wanted, in short sentences that name the cluster; empty exactly if it is.

    `errors` are what clusters said last about failures.
    """
    return [lack.text for lack in lacks(known, errors)]


def lacks(known: Known, errors: Mapping[str, str] = {}) -> list[Lack]:
    """What is missing, with what it is about."""
    federated, config = known.federated, known.type_config
    if config is None or federated is None:
        return [Lack(unfederated(known.source, config, known.selected), About.DECISION)]
    wants = _Wants(known, federated, config)
    found = undecided(known.source, federated, config, len(known.clusters), known.in_force)
    if (removal := held_removal_of(federated.metadata.annotations)) is not None:
        found.append(Lack(removal.message, About.HOLD))
    for cluster in sorted(may_hold_copies(federated)):
        found += _missing_in(wants, cluster, errors.get(cluster, ""))
    found += _missing_altogether(wants)
    if not found:
        found = _behind(wants)
    if not found and (what := _changed_since(known, federated)):
        found = [Lack(f"{what} since it was placed: it is not scheduled anew yet", About.DECISION)]
    return [*(Lack(text, About.PAUSE) for text in pauses(known)), *found] if found else []


def _changed_since(known: Known, federated: FederatedObject) -> str:
    if known.in_force.ref is None:
        return "its policy was taken away" if policy_vanished_since(federated) else ""
    return changed_since(federated, known.policy, known.clusters)


def pauses(known: Known) -> list[str]:
    """What is paused of the object's way to members. That alone is nothing missing."""
    if known.federated is None:
        return []
    found = []
    if known.fleet_paused:
        found.append("the fleet is paused: `argosy resume fleet`")
    if known.federated.metadata.annotations.get(keys.PAUSED) == "true":
        found.append("this object is paused: `argosy resume`")
    held = may_hold_copies(known.federated)
    names = [each.name for each in known.clusters if each.metadata.annotations.get(keys.PAUSED) == "true"]
    return found + [f"{name} is paused: `argosy resume cluster {name}`" for name in sorted(held.intersection(names))]


class _Wants:
    """What is wanted and known by cluster, found once per object and not once per cluster."""

    def __init__(self, known: Known, federated: FederatedObject, config: FederatedTypeConfig):
        self.known = known
        self.federated = federated
        self.config = config
        self.placed = federated.placed
        self.members = {each.name: each for each in known.clusters}
        self.collected = {each.cluster: each for each in (known.collected.clusters if known.collected else ())}
        self.records = {entry.cluster: entry for entry in federated.status.clusters}
        self._template = template_digest(federated.spec.template)
        overrides = msgspec.to_builtins(federated.spec.overrides)
        self._patches = overrides_by_cluster(overrides, config.spec.controllers)

        self._held = held_copies(federated.metadata.annotations)

    def held(self, cluster: str) -> str:
        """Why a cluster it is placed in keeps its copy as it is."""
        return self._held.why(cluster) if cluster in self.placed else ""

    def patches(self, cluster: str) -> Patches:
        return self._patches.get(cluster, [])

    def digest(self, cluster: str) -> str:
        return digest(self._template, self.patches(cluster), self.federated.metadata.annotations)

    def copy(self, cluster: str) -> Json | None:
        entry = self.collected.get(cluster)
        if entry is None:
            return None
        return entry.collected_fields if isinstance(entry.collected_fields, dict) else {}

    def desired(self, cluster: str) -> Json:
        template = self.federated.spec.template
        try:
            desired = apply_patches(template, self.patches(cluster))
        except OverrideError:  # it is not sent, and its state says so
            desired = template
        path = self.config.spec.path_definition.replicas_spec
        desired = retain_replicas(desired, self.copy(cluster) or {}, self.federated.metadata.annotations, path)
        desired = keeping_fields(self.config.spec.retained_fields)(desired, self.copy(cluster) or {})
        return as_left(desired, self.records.get(cluster))

    def propagation(self, cluster: str) -> str:
        if self.held(cluster):
            return Propagation.APPLY_OVERRIDES_FAILED
        record = self.records.get(cluster)
        if record is None or (record.status == Propagation.PENDING_CREATE and record.digest):
            return PENDING
        if record.status != Propagation.OK:
            return record.status
        if cluster not in self.placed:
            return Propagation.WAITING_FOR_REMOVAL
        # KubeAdmiral records no digest.
        return PENDING if record.digest and record.digest != self.digest(cluster) else Propagation.OK


# One cluster.


def propagation_in(known: Known, cluster: str) -> str:
    """The state of the object in a cluster: what was recorded last, and OK only if that is what is wanted there now."""
    assert known.federated is not None
    assert known.type_config is not None
    return _Wants(known, known.federated, known.type_config).propagation(cluster)


def desired_in(known: Known, cluster: str) -> Json:
    """The object as it is wanted in a cluster; where members keep their own number of replicas, with that number, and with what
    others changed in the copy, where that is left."""
    assert known.federated is not None
    assert known.type_config is not None
    return _Wants(known, known.federated, known.type_config).desired(cluster)


def copy_in(known: Known, cluster: str) -> Json | None:
    """What was collected of the copy in a cluster."""
    entry = known.collected_in(cluster)
    if entry is None:
        return None
    return entry.collected_fields if isinstance(entry.collected_fields, dict) else {}


def _missing_in(wants: _Wants, name: str, error: str) -> list[Lack]:
    def lack(text: str, about: About) -> Lack:
        return Lack(text, about, name)

    member = wants.members.get(name)
    if member is None:
        return [lack(f"{name} is not a member", About.CLUSTER)]
    if not member.ready:
        condition = member.condition(READY)
        why = condition.message if condition else "nothing was heard of it yet"
        return [lack(f"{name} is not ready: {why}", About.CLUSTER)]
    found = []
    if member.terminating:
        found.append(lack(f"{name} is leaving the federation", About.PROPAGATION))
    if since := member.silent_since:
        found.append(lack(f"{name}: {NOT_HEARD_OF_MESSAGE.format(since=since)}", About.SILENCE))
    if name not in wants.placed:
        return [*found, lack(f"{name}: its copy is being removed", About.PROPAGATION)]
    if why := wants.held(name):
        told = [f"{Propagation.APPLY_OVERRIDES_FAILED}: {why}", *_kept_in(wants, name)]
        return [*found, *(lack(f"{name}: {each}", About.HOLD) for each in told)]
    state = wants.propagation(name)
    if state != Propagation.OK:
        return [*found, lack(f"{name}: {state}" + (f": {error}" if error else ""), About.PROPAGATION)]
    return [*found, *(lack(f"{name}: {text}", about) for text, about in _unfinished_in(wants, name))]


def _kept_in(wants: _Wants, name: str) -> Iterator[str]:
    """What a held copy does to the sum of replicas."""
    path = wants.config.spec.path_definition.replicas_spec or _REPLICAS
    wanted = fields.number(wants.desired(name), path)
    if wanted is None:
        return
    record, copy = wants.records.get(name), wants.copy(name)
    kept = fields.number(copy or {}, path)
    if copy is None and (record is None or not record.version):
        if wanted:
            yield f"nothing is created there: its {wanted} replicas run nowhere"
    elif kept is None:
        yield f"its copy keeps its replicas, whatever their number; {wanted} are wanted"
    elif kept != wanted:
        yield f"its copy keeps {kept} replicas, and {wanted} are wanted"


def _unfinished_in(wants: _Wants, name: str) -> Iterable[tuple[str, About]]:
    if not wants.config.spec.status_collection.enabled:
        return
    entry, copy = wants.collected.get(name), wants.copy(name)
    if entry is None or copy is None:
        yield "the state of its copy is not known yet", About.CLUSTER
        return
    if entry.error == UNREACHABLE:
        member = wants.members.get(name)
        silent = member is not None and member.ready and member.silent_since is not None
        yield "its copy cannot be read: what is known is old", About.SILENCE if silent else About.CLUSTER
        return
    record, generation = wants.records.get(name), fields.number(copy, "metadata.generation")
    if generation is None:  # it is not collected
        generation = observed_in(status_of(copy))
    if record is not None and generation is not None and generation < record.last_observed_generation:
        yield "the state of its copy since the last change is not known yet", About.OBSERVATION
        return
    found = _unfinished(wants.desired(name), copy, wants.config) if _collects_status(wants.config) else []
    for text in found:
        yield text, About.OBSERVATION if text == UNOBSERVED else About.COMPLETION
    cause = entry.cause
    if found and cause is not None and not (cause.message and any(cause.message in text for text in found)):
        yield cause_text(cause), About.COMPLETION


def _unfinished(desired: Json, copy: Json, config: FederatedTypeConfig) -> list[str]:
    """What the kind says a copy lacks. Members are not trusted to report what can be understood."""
    kind = kind_in(desired, config)
    look = kind.unfinished or partial(unfinished, _paths(config, kind))
    try:
        return look(desired, copy)
    except MISSHAPEN:
        return ["its status cannot be understood"]


def _paths(config: FederatedTypeConfig, kind: Kind) -> PathDefinition:
    """A type config need not repeat what is known of its kind."""
    stated = config.spec.path_definition
    return kind.paths if stated == PathDefinition() else stated


# All clusters together.


def _missing_altogether(wants: _Wants) -> Iterator[Lack]:
    """Where members' statuses go nowhere, nobody can tell whether a kind that has one is as wanted."""
    federated, config = wants.federated, wants.config
    if not wants.placed:
        return
    if lacking := _unplaced(wants.known.source, federated, config):
        yield Lack(f"{lacking} are in no cluster", About.PLACEMENT)
    if not _unfinished(federated.spec.template, {}, config):
        return
    aggregated = config.spec.status_aggregation.enabled
    if not aggregated:
        text = f"its own status is not kept: the type config {config.name} has no status aggregation"
        yield Lack(text, About.REPORT)
    if _collects_status(config):
        return
    if not aggregated:
        text = f"how it does in the members is not known: the type config {config.name} collects no status"
        yield Lack(text, About.REPORT)
        return
    path = config.spec.path_definition.replicas_spec or _REPLICAS
    numbers = [fields.number(wants.desired(name), path) for name in wants.placed]
    together = federated.spec.template
    if None not in numbers:
        together = fields.put(together, path, sum(number or 0 for number in numbers))
    for each in _unfinished(together, wants.known.source, config):
        yield Lack(f"all clusters together: {each}", About.COMPLETION)


def _collects_status(config: FederatedTypeConfig) -> bool:
    collection = config.spec.status_collection
    return collection.enabled and "status" in collection.fields


def _unplaced(source: Json, federated: FederatedObject, config: FederatedTypeConfig) -> str:
    """What scheduling gave to no cluster of a divided object: replicas, or of kinds with work to be done once, that work."""
    template, kind = federated.spec.template, kind_of(federated.spec.template)
    path = config.spec.path_definition.replicas_spec or _REPLICAS
    patches = [patch for theirs in federated.overrides_of(keys.GLOBAL_SCHEDULER).values() for patch in theirs]
    shares = [patch for patch in patches if patch.path == kind.work]
    if shares:
        if kind.over(source):
            return ""
        path, what = kind.work.strip("/").replace("/", "."), kind.work.rpartition("/")[2]
        elsewhere = completed_of(federated.metadata.annotations).accounted
    else:
        pointer, what, elsewhere = "/" + path.replace(".", "/"), "replicas", 0
        shares = [patch for patch in patches if patch.path == pointer]
    numbers = [patch.value for patch in shares if isinstance(patch.value, int)]
    lacking = (fields.number(template, path) or 0) - sum(numbers) - elsewhere if numbers else 0
    return f"{lacking} {what}" if lacking > 0 else ""


def _behind(wants: _Wants) -> list[Lack]:
    """What is seen only if all else is done: reports that have not been written yet."""
    known, federated, config = wants.known, wants.federated, wants.config
    if federated.status.synced_generation < federated.metadata.generation:
        return [Lack("the newest change is on its way to the members", About.PROPAGATION)]
    if not config.spec.status_aggregation.enabled:
        return []
    status, generation = known.source.get("status") or {}, int(known.source["metadata"].get("generation") or 0)
    shows, observed = _to_be_shown(wants), observed_in(status)
    differs = False
    if shows is not None:
        differs = (fields.number(status, _READY_REPLICAS) or 0) != (fields.number(shows, _READY_REPLICAS) or 0)
        if observed is None and observed_in(shows) is not None:
            observed = 0
    if differs or (observed is not None and observed < generation):
        return [Lack("its own status does not show the newest state yet", About.REPORT)]
    if kind_of(known.source).work:
        left = _unfinished(federated.spec.template, known.source, config)
        return [Lack(f"all clusters together: {each}", About.COMPLETION) for each in left]
    return []


def _to_be_shown(wants: _Wants) -> Json | None:
    """The status that the source gets of what was collected; None if its kind shows none."""
    if not _collects_status(wants.config):
        return None
    copies = {name: copy for name in sorted(wants.placed) if (copy := wants.copy(name)) is not None}
    observations = [
        Observation(name, copy, last_written_generation=observed_in(status_of(copy)) or 0)
        for name, copy in copies.items()
    ]
    source = wants.known.source
    aggregation = Aggregation(source, observations, up_to_date=True, now="", federated=wants.federated)
    try:
        return kind_in(source, wants.config).aggregate(aggregation)
    except MISSHAPEN:  # whose status that is, is told elsewhere
        return None
