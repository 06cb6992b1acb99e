"""Wanted: whether an object is as its owner wants it, and if not, what is missing.

One answer for everybody who asks: `argosy status`, its `--wait`, and pages. An object is as wanted if nothing is missing: its
newest change is federated, decided, sent to each cluster it is placed in and observed there, and each copy is what its kind
calls finished (`plan.kinds`). What is not known counts as missing.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import msgspec

from argosy.api import keys
from argosy.api.conditions import NOT_HEARD_OF_MESSAGE, READY, Propagation
from argosy.api.federated import CollectedFieldsWithCluster
from argosy.api.types import CollectedStatus, FederatedCluster, FederatedObject, FederatedTypeConfig, PropagationEntry
from argosy.plan import fields
from argosy.plan.copies.digest import digest, template_digest
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.copies.placement import may_hold_copies, overrides_for
from argosy.plan.copies.retain import retain_replicas
from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.kinds.generic import unfinished
from argosy.plan.kinds.registry import kind_of
from argosy.plan.replicas.completed import completed_of
from argosy.plan.status.collect import UNREACHABLE
from argosy.plan.status.undecided import undecided, unfederated

__all__ = ["PENDING", "Known", "copy_in", "desired_in", "missing", "pauses", "propagation_in"]

#: Shown for a cluster that has not got what is wanted there yet. Not a state that is stored.
PENDING: Final = "Pending"
_READY: Final = "status.readyReplicas"
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

    def member(self, name: str) -> FederatedCluster | None:
        return next((each for each in self.clusters if each.name == name), None)

    def collected_in(self, cluster: str) -> CollectedFieldsWithCluster | None:
        entries = self.collected.clusters if self.collected is not None else ()
        return next((each for each in entries if each.cluster == cluster), None)


def missing(known: Known, errors: Mapping[str, str] = {}) -> list[str]:
    """What is missing until the object is as wanted, in short sentences that name the cluster; empty exactly if it is.

    `errors` are what clusters said last about failures.
    """
    federated, config = known.federated, known.type_config
    if config is None or federated is None:
        return [unfederated(known.source, config)]
    found = undecided(known.source, federated, config, len(known.clusters))
    for cluster in sorted(may_hold_copies(federated)):
        found += _missing_in(known, federated, config, cluster, errors.get(cluster, ""))
    found += _missing_altogether(known, federated, config)
    if not found:
        found = _behind(known, federated, config)
    return [*pauses(known), *found] if found else []


def pauses(known: Known) -> list[str]:
    """What is paused of the object's way to members. That alone is nothing missing."""
    if known.federated is None:
        return []
    found = []
    if known.fleet_paused:
        found.append("the fleet is paused: `argosy resume fleet`")
    if known.federated.metadata.annotations.get(keys.PAUSED) == "true":
        found.append("this object is paused: `argosy resume`")
    for name in sorted(may_hold_copies(known.federated)):
        member = known.member(name)
        if member is not None and member.metadata.annotations.get(keys.PAUSED) == "true":
            found.append(f"{name} is paused: `argosy resume cluster {name}`")
    return found


# One cluster.


def propagation_in(federated: FederatedObject, config: FederatedTypeConfig, cluster: str) -> str:
    """The state of the object in a cluster: what was recorded last, and OK only if that is what is wanted there now."""
    record = _record(federated, cluster)
    if _held_in(federated, cluster):
        return Propagation.APPLY_OVERRIDES_FAILED
    if record is None:
        return PENDING
    if record.status != Propagation.OK:
        return record.status
    if cluster not in federated.placed:
        return Propagation.WAITING_FOR_REMOVAL
    wanted = digest(
        template_digest(federated.spec.template), _patches(federated, config, cluster), federated.metadata.annotations
    )
    # KubeAdmiral records no digest.
    return PENDING if record.digest and record.digest != wanted else Propagation.OK


def _held_in(federated: FederatedObject, cluster: str) -> str:
    """Why a cluster it is placed in keeps its copy as it is."""
    return held_copies(federated.metadata.annotations).why(cluster) if cluster in federated.placed else ""


def desired_in(known: Known, cluster: str) -> Json:
    """The object as it is wanted in a cluster; where members keep their own number of replicas, with that number."""
    federated, config = known.federated, known.type_config
    assert federated is not None
    assert config is not None
    try:
        desired = apply_patches(federated.spec.template, _patches(federated, config, cluster))
    except OverrideError:  # it is not sent, and its state says so
        desired = federated.spec.template
    path = config.spec.path_definition.replicas_spec
    return retain_replicas(desired, copy_in(known, cluster) or {}, federated.metadata.annotations, path)


def copy_in(known: Known, cluster: str) -> Json | None:
    """What was collected of the copy in a cluster."""
    entry = known.collected_in(cluster)
    if entry is None:
        return None
    return entry.collected_fields if isinstance(entry.collected_fields, dict) else {}


def _record(federated: FederatedObject, cluster: str) -> PropagationEntry | None:
    return next((entry for entry in federated.status.clusters if entry.cluster == cluster), None)


def _patches(federated: FederatedObject, config: FederatedTypeConfig, cluster: str) -> list[Json]:
    spec = {"overrides": msgspec.to_builtins(federated.spec.overrides)}
    return overrides_for(spec, cluster, config.spec.controllers)


def _missing_in(
    known: Known, federated: FederatedObject, config: FederatedTypeConfig, name: str, error: str
) -> list[str]:
    member = known.member(name)
    if member is None:
        return [f"{name} is not a member"]
    if not member.ready:
        condition = member.condition(READY)
        return [f"{name} is not ready: {condition.message if condition else 'nothing was heard of it yet'}"]
    found = []
    if member.terminating:
        found.append(f"{name} is leaving the federation")
    if since := member.silent_since:
        found.append(f"{name}: {NOT_HEARD_OF_MESSAGE.format(since=since)}")
    if name not in federated.placed:
        return [*found, f"{name}: its copy is being removed"]
    if why := _held_in(federated, name):
        return [
            *found,
            f"{name}: {Propagation.APPLY_OVERRIDES_FAILED}: {why}",
            *_kept_in(known, federated, config, name),
        ]
    state = propagation_in(federated, config, name)
    if state != Propagation.OK:
        return [*found, f"{name}: {state}" + (f": {error}" if error else "")]
    return [*found, *(f"{name}: {each}" for each in _unfinished_in(known, federated, config, name))]


def _kept_in(known: Known, federated: FederatedObject, config: FederatedTypeConfig, name: str) -> list[str]:
    """What a held copy does to the sum of replicas."""
    path = config.spec.path_definition.replicas_spec or _REPLICAS
    wanted = fields.number(desired_in(known, name), path)
    if wanted is None:
        return []
    record, copy = _record(federated, name), copy_in(known, name)
    if copy is None and (record is None or not record.version):
        return [f"{name}: nothing is created there: its {wanted} replicas run nowhere"] if wanted else []
    kept = fields.number(copy or {}, path)
    if kept is None:
        return [f"{name}: its copy keeps its replicas, whatever their number; {wanted} are wanted"]
    return [f"{name}: its copy keeps {kept} replicas, and {wanted} are wanted"] if kept != wanted else []


def _unfinished_in(known: Known, federated: FederatedObject, config: FederatedTypeConfig, name: str) -> list[str]:
    if not config.spec.status_collection.enabled:
        return []
    entry, copy = known.collected_in(name), copy_in(known, name)
    if entry is None or copy is None:
        return ["the state of its copy is not known yet"]
    if entry.error == UNREACHABLE:
        return ["its copy cannot be read: what is known is old"]
    record, generation = _record(federated, name), fields.number(copy, "metadata.generation")
    if generation is None:  # it is not collected
        generation = fields.number(copy, "status.observedGeneration")
    if record is not None and generation is not None and generation < record.last_observed_generation:
        return ["the state of its copy since the last change is not known yet"]
    return _unfinished(desired_in(known, name), copy, config) if _collects_status(config) else []


def _unfinished(desired: Json, copy: Json, config: FederatedTypeConfig) -> list[str]:
    """What the kind says a copy lacks. Members are not trusted to report what can be understood."""
    look = kind_of(desired).unfinished or partial(unfinished, config.spec.path_definition)
    try:
        return look(desired, copy)
    except MISSHAPEN:
        return ["its status cannot be understood"]


# All clusters together.


def _missing_altogether(known: Known, federated: FederatedObject, config: FederatedTypeConfig) -> Iterator[str]:
    """Where members' statuses go nowhere, nobody can tell whether a kind that has one is as wanted."""
    placed = len(federated.placed)
    if not placed:
        return
    if lacking := _unplaced(known.source, federated, config):
        yield f"{lacking} are in no cluster"
    if not _unfinished(federated.spec.template, {}, config):
        return
    aggregated = config.spec.status_aggregation.enabled
    if not aggregated:
        yield f"its own status is not kept: the type config {config.name} has no status aggregation"
    if _collects_status(config):
        return
    if not aggregated:
        yield f"how it does in the members is not known: the type config {config.name} collects no status"
        return
    path = config.spec.path_definition.replicas_spec or _REPLICAS
    numbers = [fields.number(desired_in(known, name), path) for name in federated.placed]
    together = federated.spec.template
    if None not in numbers:
        together = fields.put(together, path, sum(number or 0 for number in numbers))
    for each in _unfinished(together, known.source, config):
        yield f"all clusters together: {each}"


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


def _behind(known: Known, federated: FederatedObject, config: FederatedTypeConfig) -> list[str]:
    """What is seen only if all else is done: reports that have not been written yet."""
    if federated.status.synced_generation < federated.metadata.generation:
        return ["the newest change is on its way to the members"]
    if not config.spec.status_aggregation.enabled:
        return []
    copies = [copy for name in federated.placed if (copy := copy_in(known, name)) is not None]
    status, generation = known.source.get("status") or {}, int(known.source["metadata"].get("generation") or 0)
    observed = status.get("observedGeneration")
    if observed is None and any(fields.number(copy, "status.observedGeneration") for copy in copies):
        observed = 0
    ready = sum(fields.number(copy, _READY) or 0 for copy in copies)
    shown = fields.number(known.source, _READY) or 0
    if (isinstance(observed, int) and observed < generation) or (_collects_status(config) and shown != ready):
        return ["its own status does not show the newest state yet"]
    if kind_of(known.source).work:
        return [f"all clusters together: {each}" for each in _unfinished(federated.spec.template, known.source, config)]
    return []
