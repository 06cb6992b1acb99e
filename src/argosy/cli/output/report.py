"""The report on one object: where it is placed, how it does in each cluster, and what is being waited for.

Gathered with a handful of reads, then put together by `report`, which is pure. What is being waited for is decided in
`plan.status.wanted`. How it looks on a screen is `status`' part.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from argosy.api import keys, names, resources
from argosy.api.admission import caveats
from argosy.api.conditions import OPERATION_FAILED, READY, Propagation
from argosy.api.policies import PropagationPolicy
from argosy.api.types import CollectedStatus, FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.cli.client.attendance import read_unattended
from argosy.cli.client.claims import claim_of
from argosy.cli.output.drifted import left
from argosy.kube.client import Client
from argosy.kube.errors import BadAnswer, Forbidden, NotFound
from argosy.kube.objects import Metadata, Partial
from argosy.kube.resource import Resource
from argosy.plan import fields
from argosy.plan.changes import is_secret
from argosy.plan.claims.record import as_claimed, in_force, looked_at
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.placement import may_hold_copies
from argosy.plan.pipeline.held import HeldReason, held_of
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.status.shortfalls import shortfalls
from argosy.plan.status.wanted import (
    PENDING,
    Known,
    copy_in,
    desired_in,
    missing,
    pauses,
    propagation_in,
)

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
]

T = TypeVar("T")
EVENTS = Resource("", "v1", "events", "Event")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_REPLICAS = "spec.replicas"


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


class Facts(Known, frozen=True, kw_only=True):
    #: Warnings on the source and its federated object, the newest first.
    warnings: tuple[EventView, ...]
    #: Why nobody works on it; "" if somebody does, as far as one may know.
    unattended: str = ""


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
    #: Patches by cluster beyond the replica numbers, `op path = value`; of a Secret without the value.
    overrides: dict[str, list[str]]
    #: What is missing; empty exactly if all is as wanted.
    waiting: list[str]
    #: What the object says and what is not done, although nothing is waited for.
    without_effect: list[str]
    #: What is paused, whether or not that keeps anything back.
    paused: list[str]
    #: Fields of copies that others changed and that stay as they are.
    drifted: list[str]
    conditions: list[dict[str, str]]
    #: Why nobody works on it: the shard that owns it is missing, or no controllers run.
    unattended: str = ""


async def gather(client: Client, resource: Resource, name: str, namespace: str | None) -> Facts:
    """Raises NotFound when the object itself is not there."""
    configs = await client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)
    config = next((each for each in configs.items if is_of(each, resource)), None)
    source = await client.get(config.resource if config is not None else resource, name, namespace)
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
    record, selected = federated.metadata if federated is not None else None, None
    if config is not None:
        claim = await claim_of(client, config.resource, source, record)
        selected = claim.ref if claim is not None and not claim.by_label else None
    policy = await _policy(client, in_force(looked_at(source), record, selected).ref)
    system = await or_none(client.get(_NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial))
    selector = f"involvedObject.kind={resource.kind},involvedObject.name={name},type=Warning"
    events = await client.list(EVENTS, namespace or "default", field_selector=selector, into=EventView)
    alone = [each.text for each in await read_unattended(client) if each.shard.owns(namespace or "")]
    return Facts(
        source=source,
        type_config=config,
        federated=federated,
        collected=collected,
        clusters=tuple(clusters.items),
        fleet_paused=system is not None and _paused(system.metadata),
        selected=selected,
        policy=policy,
        warnings=tuple(sorted(events.items, key=lambda event: event.when, reverse=True)),
        unattended="; ".join(alone) if config is not None else "",
    )


async def _policy(client: Client, named: PolicyRef | None) -> PropagationPolicy | None:
    """None also for somebody who may not read it, and for one that cannot be understood."""
    if named is None:
        return None
    resource = resources.PROPAGATION_POLICIES if named.namespace else resources.CLUSTER_PROPAGATION_POLICIES
    try:
        return await client.get(resource, named.name, named.namespace or None, into=PropagationPolicy)
    except (NotFound, Forbidden, BadAnswer):
        return None


def report(facts: Facts) -> Report:
    source, federated = facts.source, facts.federated
    metadata = source["metadata"]
    clusters = _clusters(facts)
    replicas = fields.get(source, _REPLICAS, None)
    status = source.get("status") or {}
    mode, policy = _mode(federated), facts.in_force.ref
    waiting = missing(facts, {cluster.name: cluster.error for cluster in clusters})
    # Somebody who is missing is waited for where something is left to do.
    first = [facts.unattended] if waiting and facts.unattended else []
    return Report(
        kind=source.get("kind", ""),
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        policy="" if _automatic(federated) or policy is None else policy.name,
        mode=mode,
        replicas=_total(mode, replicas, clusters) if isinstance(replicas, int) else None,
        ready=int(status.get("readyReplicas") or 0) if isinstance(replicas, int) else None,
        clusters=clusters,
        overrides=_overrides(federated) if federated is not None else {},
        waiting=[*first, *waiting],
        without_effect=_without_effect(facts),
        paused=pauses(facts),
        drifted=left(facts),
        conditions=_conditions(source, federated),
        unattended=facts.unattended,
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


def _without_effect(facts: Facts) -> list[str]:
    config = facts.type_config
    if config is None:
        return []
    source, federated = as_claimed(facts.source, facts.in_force), facts.federated
    placed = federated is not None and any(
        federated.placement_of(step) for step in (keys.GLOBAL_SCHEDULER, keys.NSAUTOPROP_CONTROLLER)
    )
    divided = federated is not None and bool(federated.overrides_of(keys.GLOBAL_SCHEDULER))
    found = shortfalls(source, config, facts.policy, placed=placed, divided=divided)
    return [*caveats.told(config.resource, source), *found]


def _clusters(facts: Facts) -> tuple[ClusterReport, ...]:
    federated = facts.federated
    if federated is None or facts.type_config is None:
        return ()
    return tuple(_cluster(name, facts, federated) for name in sorted(may_hold_copies(federated)))


def _cluster(name: str, facts: Facts, federated: FederatedObject) -> ClusterReport:
    propagation = propagation_in(facts, name)
    replicas = fields.number(desired_in(facts, name), _REPLICAS) if name in federated.placed else None
    ready = None
    if replicas is not None:
        ready = fields.number(copy_in(facts, name) or {}, "status.readyReplicas") or 0
    entry = facts.collected_in(name)
    error = entry.error if entry is not None else ""
    if propagation != Propagation.OK:
        error = _last_error(name, propagation, facts) or error
    return ClusterReport(name, replicas, ready, propagation, error)


def _last_error(cluster: str, propagation: str, facts: Facts) -> str:
    """What was said of this failure in this cluster last; events start with the clusters they are about."""
    if propagation == Propagation.CLUSTER_NOT_READY:
        member = next((each for each in facts.clusters if each.name == cluster), None)
        condition = member.condition(READY) if member is not None else None
        return condition.message if condition is not None else ""
    annotations = facts.federated.metadata.annotations if facts.federated is not None else {}
    held, copies = held_of(annotations), held_copies(annotations)
    if propagation == Propagation.APPLY_OVERRIDES_FAILED:
        missing_policy = held is not None and held.reason == HeldReason.OVERRIDE_POLICY_MISSING
        if not missing_policy and (why := copies.why(cluster)):
            return why
    if held is not None and propagation in (Propagation.APPLY_OVERRIDES_FAILED, PENDING):
        return held.message
    entries = facts.federated.status.clusters if facts.federated is not None else ()
    if message := next((each.message for each in entries if each.cluster == cluster), ""):
        return message
    reason = OPERATION_FAILED.get(propagation, propagation)
    for event in facts.warnings:
        about, _, text = (event.message or "").partition(": ")
        if text and event.reason == reason and cluster in about.split(", "):
            return text
    return ""


def _overrides(federated: FederatedObject) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    secret = is_secret(federated.spec.template)
    for entry in federated.spec.overrides:
        for item in entry.clusters:
            for patch in item.patches:
                if entry.controller == keys.GLOBAL_SCHEDULER and patch.path == "/spec/replicas":
                    continue
                value = "" if patch.value is msgspec.UNSET or secret else _told(patch.value)
                found.setdefault(item.cluster, []).append(f"{patch.op or 'replace'} {patch.path}{value}")
    return found


def _told(value: Any) -> str:
    return f" = {msgspec.json.encode(value).decode()}"


def _conditions(source: dict[str, Any], federated: FederatedObject | None) -> list[dict[str, str]]:
    found = [
        {key: str(condition.get(key) or "") for key in ("type", "status", "reason", "message")}
        for condition in (source.get("status") or {}).get("conditions") or ()
        if isinstance(condition, dict)
    ]
    own = federated.status.conditions if federated is not None else ()
    found += [
        {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message} for each in own
    ]
    return found


def _mode(federated: FederatedObject | None) -> str:
    if federated is None or not federated.placed:
        return ""
    return keys.DIVIDE if federated.overrides_of(keys.GLOBAL_SCHEDULER) else keys.DUPLICATE


def _total(mode: str, replicas: int, clusters: Sequence[ClusterReport]) -> int:
    """Over all clusters; where each has a copy of its own, the source's number is that of one of them."""
    return sum(cluster.replicas or 0 for cluster in clusters) if mode == keys.DUPLICATE else replicas


def _automatic(federated: FederatedObject | None) -> bool:
    """Namespaces go to every member, whichever policy they name."""
    return federated is not None and any(
        placement.controller == keys.NSAUTOPROP_CONTROLLER for placement in federated.spec.placements
    )


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
