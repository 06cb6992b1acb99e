"""Reading a Snapshot (`plan.explain.snapshot`) from the control plane, with the rights of whoever asks.

All that is federated, and all policies, profiles, type configs and clusters, each as it is at the time its list is read.
Sources are read by type, only of types that are in use.
"""

import asyncio
import datetime
from collections.abc import Callable, Iterable
from typing import TypeVar

from argosy.api import keys, resources
from argosy.api.names import federated_name
from argosy.api.types import (
    CollectedStatus,
    FederatedCluster,
    FederatedTypeConfig,
    OverridePolicy,
    PropagationPolicy,
    SchedulerPluginWebhookConfiguration,
    SchedulingProfile,
)
from argosy.cli.client.claims import read_namespaces
from argosy.control.scheduling.priorities import PRIORITY_CLASSES, PriorityClassView
from argosy.kube.client import Client
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.objects import Metadata, Partial, decode
from argosy.kube.resource import Resource
from argosy.plan.claims.claim import Selectors
from argosy.plan.claims.exclusions import Subject
from argosy.plan.explain.snapshot import ObjectKey, Snapshot
from argosy.plan.kinds.registry import KINDS
from argosy.plan.pipeline.policy import PolicyRef

__all__ = ["read_snapshot"]

P = TypeVar("P", PropagationPolicy, OverridePolicy)


async def read_snapshot(
    client: Client,
    tell: Callable[[str], None],
    *,
    katalyst: bool = False,
    supposed: Iterable[PropagationPolicy] = (),
) -> Snapshot:
    """`tell` hears how far it is; `katalyst` is what the controllers were told. What `supposed` policies select is read as well.
    Raises ApiError where something may not be read."""
    tell("reading clusters and policies")
    configs, clusters, profiles, webhooks = await asyncio.gather(
        client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig),
        client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster),
        client.list(resources.SCHEDULING_PROFILES, into=SchedulingProfile),
        client.list(resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, into=SchedulerPluginWebhookConfiguration),
    )
    policies, overrides = await asyncio.gather(
        _policies(client, (resources.PROPAGATION_POLICIES, resources.CLUSTER_PROPAGATION_POLICIES), PropagationPolicy),
        _policies(client, (resources.OVERRIDE_POLICIES, resources.CLUSTER_OVERRIDE_POLICIES), OverridePolicy),
    )
    type_configs = {each.name: each for each in configs.items}
    federated = await _federated(client, type_configs, tell)
    priorities = await _priorities(client)
    wanted = _Wanted((*policies.values(), *supposed), await read_namespaces(client, (*policies.values(), *supposed)))
    return Snapshot(
        type_configs=type_configs,
        clusters={each.name: each for each in clusters.items},
        sources=await _sources(client, type_configs, federated, wanted, tell),
        namespaces=wanted.namespaces,
        federated=federated,
        policies=policies,
        override_policies=overrides,
        profiles={each.metadata.name: each for each in profiles.items},
        webhooks={each.metadata.name: each for each in webhooks.items},
        priorities=priorities,
        done=await _done(client, type_configs, federated),
        katalyst=katalyst,
        now=datetime.datetime.now(datetime.UTC),
    )


async def _done(
    client: Client, configs: dict[str, FederatedTypeConfig], federated: dict[ObjectKey, bytes]
) -> dict[ObjectKey, dict[str, int]]:
    """What was collected of the copies of kinds with work to be done once."""
    found: dict[ObjectKey, dict[str, int]] = {}
    for config in (configs[name] for name in sorted({key.type for key in federated})):
        kind = KINDS.get((config.resource.group, config.kind))
        if kind is None or not kind.work:
            continue
        keys_of = [key for key in federated if key.type == config.name]
        by_place = {(key.namespace, federated_name(key.name, config.name)): key for key in keys_of}
        selector = f"{config.api_version}={config.kind}"
        listed = await client.list(resources.COLLECTED_STATUSES, into=CollectedStatus, label_selector=selector)
        for each in listed.items:
            key = by_place.get((each.metadata.namespace, each.metadata.name))
            copies = {entry.cluster: entry.collected_fields for entry in each.clusters}
            if key is not None:
                found[key] = {name: kind.done(copy) for name, copy in copies.items() if isinstance(copy, dict)}
    return found


async def _priorities(client: Client) -> dict[str, int]:
    """None where they are not to be read: then all are equal, as they are to the controllers."""
    try:
        classes = (await client.list(PRIORITY_CLASSES, into=PriorityClassView)).items
    except (NotFound, Forbidden):
        return {}
    values = {each.metadata.name: each.value for each in classes}
    return values | {"": next((each.value for each in classes if each.global_default), 0)}


async def _policies(client: Client, twins: tuple[Resource, Resource], into: type[P]) -> dict[PolicyRef, P]:
    listed = [each for resource in twins for each in (await client.list(resource, into=into)).items]
    return {PolicyRef(each.metadata.name, each.metadata.namespace): each for each in listed}


async def _federated(
    client: Client, configs: dict[str, FederatedTypeConfig], tell: Callable[[str], None]
) -> dict[ObjectKey, bytes]:
    by_kind = {(config.api_version, config.kind): config.name for config in configs.values()}
    found: dict[ObjectKey, bytes] = {}
    for namespaced in (True, False):
        async for page in client.pages(resources.federated_objects(namespaced)):
            for raw in page.items:
                metadata = decode(raw, Partial).metadata
                owner = next((each for each in metadata.owner_references if each.controller), None)
                type_name = by_kind.get((owner.api_version, owner.kind)) if owner is not None else None
                if owner is not None and type_name is not None:
                    found[ObjectKey(type_name, metadata.namespace, owner.name)] = raw
            tell(f"reading federated objects: {len(found)}")
    return found


class _Wanted:
    """Which sources are of interest although nothing is made of them yet."""

    def __init__(self, policies: Iterable[PropagationPolicy], namespaces: dict[str, dict[str, str]]):
        """What any of the policies selects by itself: of two with one name, one is there and one is supposed."""
        self.namespaces = namespaces
        self._selectors = [Selectors([each]) for each in policies if each.spec.resource_selectors]

    def has_kind(self, config: FederatedTypeConfig) -> bool:
        return any(each.selects_kind(config.resource.group, config.kind) for each in self._selectors)

    def has(self, config: FederatedTypeConfig, metadata: Metadata) -> bool:
        if metadata.deletion_timestamp:
            return False
        if not keys.POLICY_LABELS.isdisjoint(metadata.labels):
            return True
        subject = Subject(config.resource.group, config.kind, metadata)
        return any(each.contenders(subject, self.namespaces) for each in self._selectors)


async def _sources(
    client: Client,
    configs: dict[str, FederatedTypeConfig],
    federated: dict[ObjectKey, bytes],
    wanted: _Wanted,
    tell: Callable[[str], None],
) -> dict[ObjectKey, bytes]:
    found: dict[ObjectKey, bytes] = {}
    in_use = {key.type for key in federated}
    for config in (configs[name] for name in sorted(configs)):
        name = config.name
        if name not in in_use and not wanted.has_kind(config):
            continue
        try:
            async for page in client.pages(config.resource):
                for raw in page.items:
                    metadata = decode(raw, Partial).metadata
                    key = ObjectKey(name, metadata.namespace, metadata.name)
                    if key in federated or wanted.has(config, metadata):
                        found[key] = raw
                tell(f"reading {config.resource.plural}: {len(found)} objects so far")
        except NotFound:
            continue  # its kind is not served any more
    return found
