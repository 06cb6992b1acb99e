"""The report on one object: where it is placed, how it does in each cluster, and what is being waited for.

Gathered with a handful of reads, then put together by `report`, which is pure. How it looks on a screen is `status`' part.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from argosy.api import keys, names, resources
from argosy.api.conditions import READY, Propagation
from argosy.api.types import CollectedStatus, FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.kube.objects import Metadata, Partial
from argosy.kube.resource import Resource
from argosy.plan import fields
from argosy.plan.copies.placement import may_hold_copies
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.held import held_of

__all__ = [
    "EVENTS",
    "ClusterReport",
    "EventView",
    "Facts",
    "Report",
    "gather",
    "is_of",
    "or_none",
    "replicas_wanted",
    "report",
    "unfederated",
]

T = TypeVar("T")
EVENTS = Resource("", "v1", "events", "Event")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_REPLICAS = "spec.replicas"
_OURS = frozenset(
    {keys.GLOBAL_SCHEDULER, keys.OVERRIDE_CONTROLLER, keys.NSAUTOPROP_CONTROLLER, keys.FOLLOWER_CONTROLLER}
)


class EventView(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    type: str | None = ""
    reason: str | None = ""
    message: str | None = ""
    last_timestamp: str | None = ""
    event_time: str | None = ""

    @property
    def when(self) -> str:
        return self.last_timestamp or self.event_time or self.metadata.creation_timestamp or ""


class Facts(msgspec.Struct, frozen=True):
    """Everything that is known about one source object; None is what is not there."""

    source: dict[str, Any]
    type_config: FederatedTypeConfig | None
    federated: FederatedObject | None
    collected: CollectedStatus | None
    clusters: tuple[FederatedCluster, ...]
    fleet_paused: bool
    #: Warnings on the source and its federated object, the newest first.
    warnings: tuple[EventView, ...]


class ClusterReport(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    #: Wanted there; None for kinds without replicas.
    replicas: int | None
    ready: int | None
    propagation: str
    error: str = ""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    name: str
    namespace: str
    policy: str
    mode: str
    replicas: int | None
    ready: int | None
    clusters: tuple[ClusterReport, ...]
    #: Patches by cluster beyond the replica numbers, `op path = value`.
    overrides: dict[str, list[str]]
    waiting: list[str]
    conditions: list[dict[str, str]]


async def gather(client: Client, resource: Resource, name: str, namespace: str | None) -> Facts:
    """Raises NotFound when the object itself is not there."""
    source = await client.get(resource, name, namespace)
    configs = await client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)
    config = next((each for each in configs.items if is_of(each, resource)), None)
    federated = collected = None
    if config is not None:
        federated_name = names.federated_name(name, config.name)
        status = resources.COLLECTED_STATUSES if namespace else resources.CLUSTER_COLLECTED_STATUSES
        federated, collected = await asyncio.gather(
            or_none(
                client.get(
                    resources.federated_objects(bool(namespace)), federated_name, namespace, into=FederatedObject
                )
            ),
            or_none(client.get(status, federated_name, namespace, into=CollectedStatus)),
        )
    clusters = await client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster)
    system = await or_none(client.get(_NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial))
    selector = f"involvedObject.kind={resource.kind},involvedObject.name={name},type=Warning"
    events = await client.list(EVENTS, namespace or "default", field_selector=selector, into=EventView)
    return Facts(
        source=source,
        type_config=config,
        federated=federated,
        collected=collected,
        clusters=tuple(clusters.items),
        fleet_paused=system is not None and _paused(system.metadata),
        warnings=tuple(sorted(events.items, key=lambda event: event.when, reverse=True)),
    )


def report(facts: Facts) -> Report:
    source, federated = facts.source, facts.federated
    metadata = source["metadata"]
    wanted = replicas_wanted(federated) if federated is not None else {}
    members = {cluster.name: cluster for cluster in facts.clusters}
    clusters = tuple(
        _cluster(name, facts, wanted) for name in (sorted(may_hold_copies(federated)) if federated is not None else ())
    )
    replicas = fields.get(source, _REPLICAS, None)
    status = source.get("status") or {}
    mode = _mode(federated, wanted)
    return Report(
        kind=source.get("kind", ""),
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        policy="" if _automatic(federated) else _policy(metadata),
        mode=mode,
        replicas=_total(mode, replicas, wanted) if isinstance(replicas, int) else None,
        ready=int(status.get("readyReplicas") or 0) if isinstance(replicas, int) else None,
        clusters=clusters,
        overrides=_overrides(federated) if federated is not None else {},
        waiting=_waiting(facts, clusters, members),
        conditions=_conditions(source, federated),
    )


def replicas_wanted(federated: FederatedObject) -> dict[str, int | None]:
    """Replicas by cluster: the template's number, unless an override says another; None for kinds without."""
    base = fields.get(federated.spec.template, _REPLICAS, None)
    number = base if isinstance(base, int) else None
    wanted: dict[str, int | None] = dict.fromkeys(federated.placed, number)
    for entry in federated.spec.overrides:
        for item in entry.clusters:
            for patch in item.patches:
                if item.cluster in wanted and patch.path == "/spec/replicas" and isinstance(patch.value, int):
                    wanted[item.cluster] = patch.value
    return wanted


def _cluster(name: str, facts: Facts, wanted: dict[str, int | None]) -> ClusterReport:
    assert facts.federated is not None
    entry = next((each for each in facts.federated.status.clusters if each.cluster == name), None)
    propagation = entry.status if entry is not None else "Pending"
    if name not in wanted and propagation == Propagation.OK:
        propagation = Propagation.WAITING_FOR_REMOVAL
    seen = next((each for each in facts.collected.clusters if each.cluster == name), None) if facts.collected else None
    replicas = wanted.get(name)
    ready = None
    if replicas is not None:
        number = fields.get(seen.collected_fields, "status.readyReplicas", 0) if seen is not None else 0
        ready = number if isinstance(number, int) else 0
    error = seen.error if seen is not None else ""
    if propagation != Propagation.OK:
        error = _last_error(name, propagation, facts) or error
    return ClusterReport(name, replicas, ready, propagation, error)


def _last_error(cluster: str, propagation: str, facts: Facts) -> str:
    """What was said of this failure in this cluster last; events start with the clusters they are about."""
    if propagation == Propagation.CLUSTER_NOT_READY:
        member = next((each for each in facts.clusters if each.name == cluster), None)
        condition = member.condition(READY) if member is not None else None
        return condition.message if condition is not None else ""
    for event in facts.warnings:
        about, _, text = (event.message or "").partition(": ")
        if text and event.reason == propagation and cluster in about.split(", "):
            return text
    return ""


def _waiting(facts: Facts, clusters: Sequence[ClusterReport], members: dict[str, FederatedCluster]) -> list[str]:
    federated = facts.federated
    if facts.type_config is None or federated is None:
        return [unfederated(facts.source, facts.type_config)]
    found = []
    annotations = federated.metadata.annotations
    held = held_of(annotations)
    if facts.source["metadata"].get("deletionTimestamp") or federated.metadata.deletion_timestamp:
        found.append("being deleted: its copies in the members go first")
    if held is not None:
        what = "placement is held as it was" if federated.spec.placements else "held, placed nowhere"
        found.append(f"{what}: {held.reason}: {held.message}")
    found += _pending(annotations, held=held is not None)
    if deferred := annotations.get(keys.SCHEDULING_DEFERRED_REASONS):
        found.append(f"scheduling is deferred: {deferred}")
    if facts.fleet_paused:
        found.append("the fleet is paused: `argosy resume fleet`")
    if annotations.get(keys.PAUSED) == "true":
        found.append("this object is paused: `argosy resume`")
    for cluster in clusters:
        found += _waiting_in(cluster, members.get(cluster.name), federated)
    if not found and _behind(facts.source, federated):
        found.append("the newest change is on its way to the members")
    return found


def _behind(source: dict[str, Any], federated: FederatedObject) -> bool:
    observed = (source.get("status") or {}).get("observedGeneration")
    if isinstance(observed, int) and observed < int(source["metadata"].get("generation") or 0):
        return True
    return federated.status.synced_generation < federated.metadata.generation


def unfederated(source: dict[str, Any], config: FederatedTypeConfig | None) -> str:
    """Why nothing is made of an object that has no federated object."""
    annotations = source["metadata"].get("annotations") or {}
    if config is None:
        return "this kind is not federated: no FederatedTypeConfig names it"
    if annotations.get(keys.NO_FEDERATED_RESOURCE):
        return f"not federated: the annotation {keys.NO_FEDERATED_RESOURCE} says so"
    if source.get("kind") == "Namespace":
        return "not federated: the namespaces every cluster has of its own are not propagated"
    if not _policy(source["metadata"]):
        return f"not federated: no policy is named; label it, e.g. {keys.PROPAGATION_POLICY_LABEL}=NAME"
    return "waiting to be federated: are the controllers running?"


def _pending(annotations: dict[str, str], *, held: bool) -> list[str]:
    """While it is held, our own steps wait for what holds it and nothing else."""
    if pending.finished(annotations.get(keys.PENDING_CONTROLLERS)):
        return []
    try:
        steps = pending.parse(annotations.get(keys.PENDING_CONTROLLERS))
    except pending.Unreadable as error:
        return [str(error)]
    waiting = [name for step in steps for name in step if not held or name not in _OURS]
    return [f"controllers that have yet to act: {', '.join(waiting)}"] if waiting else []


def _waiting_in(cluster: ClusterReport, member: FederatedCluster | None, federated: FederatedObject) -> list[str]:
    found = []
    if member is None:
        return [f"{cluster.name} is not a member"]
    if _paused(member.metadata):
        found.append(f"{cluster.name} is paused: `argosy resume cluster {cluster.name}`")
    if not member.ready:
        condition = member.condition(READY)
        found.append(
            f"{cluster.name} is not ready: {condition.message if condition else 'nothing was heard of it yet'}"
        )
    elif cluster.name not in federated.placed:
        found.append(f"{cluster.name}: its copy is being removed")
    elif cluster.propagation != Propagation.OK:
        found.append(f"{cluster.name}: {cluster.propagation}" + (f": {cluster.error}" if cluster.error else ""))
    elif cluster.replicas is not None and (cluster.ready or 0) < cluster.replicas:
        found.append(f"{cluster.name}: {cluster.ready or 0} of {cluster.replicas} replicas are ready")
    elif cluster.replicas is not None and (cluster.ready or 0) > cluster.replicas:
        found.append(f"{cluster.name}: {(cluster.ready or 0) - cluster.replicas} replicas too many are still running")
    return found


def _overrides(federated: FederatedObject) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in federated.spec.overrides:
        for item in entry.clusters:
            for patch in item.patches:
                if entry.controller == keys.GLOBAL_SCHEDULER and patch.path == "/spec/replicas":
                    continue
                value = "" if patch.value is msgspec.UNSET else f" = {msgspec.json.encode(patch.value).decode()}"
                found.setdefault(item.cluster, []).append(f"{patch.op or 'replace'} {patch.path}{value}")
    return found


def _conditions(source: dict[str, Any], federated: FederatedObject | None) -> list[dict[str, str]]:
    found = [
        {key: str(condition.get(key) or "") for key in ("type", "status", "reason", "message")}
        for condition in (source.get("status") or {}).get("conditions") or ()
        if isinstance(condition, dict)
    ]
    own = federated.status.conditions if federated is not None else ()
    found += [{"type": each.type, "status": each.status, "reason": each.reason, "message": ""} for each in own]
    return found


def _mode(federated: FederatedObject | None, wanted: dict[str, int | None]) -> str:
    if federated is None or not wanted:
        return ""
    return keys.DIVIDE if federated.overrides_of(keys.GLOBAL_SCHEDULER) else keys.DUPLICATE


def _total(mode: str, replicas: int, wanted: dict[str, int | None]) -> int:
    """Over all clusters; where each has a copy of its own, the source's number is that of one of them."""
    return sum(number or 0 for number in wanted.values()) if mode == keys.DUPLICATE else replicas


def _automatic(federated: FederatedObject | None) -> bool:
    """Namespaces go to every member, whichever policy they name."""
    return federated is not None and any(
        placement.controller == keys.NSAUTOPROP_CONTROLLER for placement in federated.spec.placements
    )


def _policy(metadata: dict[str, Any]) -> str:
    labels = metadata.get("labels") or {}
    return str(labels.get(keys.PROPAGATION_POLICY_LABEL) or labels.get(keys.CLUSTER_PROPAGATION_POLICY_LABEL) or "")


def is_of(config: FederatedTypeConfig, resource: Resource) -> bool:
    """Whether a type config is that of a resource, in whatever version."""
    return config.resource.group == resource.group and config.resource.kind == resource.kind


def _paused(metadata: Metadata) -> bool:
    return metadata.annotations.get(keys.PAUSED) == "true"


async def or_none(work: Any) -> Any:
    """What is asked for, or None where it is not there."""
    try:
        return await work
    except NotFound:
        return None
