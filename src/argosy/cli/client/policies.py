"""The policies of a control plane, with what is known of their use (`plan.claims.survey`)."""

import asyncio
from typing import Any, Final

import msgspec

from argosy.api import resources
from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.types import FederatedObject, FederatedTypeConfig
from argosy.cli.client.claims import read_namespaces
from argosy.kube.client import Client
from argosy.kube.errors import Forbidden
from argosy.kube.objects import decode
from argosy.kube.resource import Resource
from argosy.plan.claims.survey import PolicyReport, survey

__all__ = ["read_policies"]

_PLACING: Final = (resources.PROPAGATION_POLICIES, resources.CLUSTER_PROPAGATION_POLICIES)
_OVERRIDING: Final = (resources.OVERRIDE_POLICIES, resources.CLUSTER_OVERRIDE_POLICIES)


async def read_policies(client: Client, namespace: str | None) -> list[tuple[PolicyReport, dict[str, Any] | None]]:
    """Each policy with its report, of one namespace or all; None for one that objects name and that does not exist.

    In a namespace the cluster-scoped ones are compared as well, and not listed.
    """
    read = await asyncio.gather(*(_read(client, each, namespace) for each in (*_PLACING, *_OVERRIDING)))
    objects = {(each["kind"], _place(each), each["metadata"]["name"]): each for found in read for each in found}
    policies = [msgspec.convert(each, PropagationPolicy) for found in read[:2] for each in found]
    overrides = [msgspec.convert(each, OverridePolicy) for found in read[2:] for each in found]
    configs, federated, namespaces = await asyncio.gather(
        _type_configs(client),
        _federated(client, namespace),
        read_namespaces(client, policies),
    )
    reports = survey(policies, overrides, federated, configs, namespaces)
    shown = [each for each in reports if namespace is None or each.namespace == namespace]
    return [(each, objects.get((each.kind, each.namespace, each.name))) for each in shown]


async def _read(client: Client, resource: Resource, namespace: str | None) -> list[dict[str, Any]]:
    own = {"apiVersion": resource.api_version, "kind": resource.kind}  # which items of a list need not say
    try:
        found = await client.list(resource, namespace if resource.namespaced else None)
    except Forbidden:
        if resource.namespaced or namespace is None:
            raise
        return []  # whoever may read a namespace alone sees its policies
    return [own | each for each in found.items]


async def _type_configs(client: Client) -> list[FederatedTypeConfig] | None:
    try:
        return (await client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)).items
    except Forbidden:
        return None


async def _federated(client: Client, namespace: str | None) -> list[FederatedObject]:
    found: list[FederatedObject] = []
    for namespaced in (True, False) if namespace is None else (True,):
        async for page in client.pages(resources.federated_objects(namespaced), namespace):
            found += [decode(raw, FederatedObject) for raw in page.items]
    return found


def _place(obj: dict[str, Any]) -> str:
    return str(obj["metadata"].get("namespace") or "")
