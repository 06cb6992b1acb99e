"""Claims as a command sees them: the policies that select, read from the control plane, and which of them gets an object."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api import resources
from argosy.api.policies import PropagationPolicy
from argosy.kube.client import Client
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.objects import Metadata, Partial
from argosy.kube.resource import Resource
from argosy.plan.claims.claim import Claim, Selectors, ref_of
from argosy.plan.claims.exclusions import subject_of
from argosy.plan.claims.record import unless_missed

__all__ = ["claim_of", "read_namespaces"]

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


async def claim_of(
    client: Client, resource: Resource, source: Mapping[str, Any], federated: Metadata | None
) -> Claim | None:
    """The policy that gets a source, as far as whoever asks may read policies; `federated` is of its federated object."""
    metadata = source["metadata"]
    namespace = metadata.get("namespace") or ""
    twins = (
        _policies(client, resources.PROPAGATION_POLICIES, namespace) if namespace else _none(),
        _policies(client, resources.CLUSTER_PROPAGATION_POLICIES, None),
    )
    policies = [policy for found in await asyncio.gather(*twins) for policy in found]
    labels = await read_namespaces(client, policies, namespace)
    selectors, subject = Selectors(policies), subject_of(resource.group, resource.kind, metadata)
    if namespace not in labels and selectors.needs_namespace(subject):
        return None
    claim = selectors.claim(subject, labels)
    if claim is None or claim.by_label:
        return claim
    existing = {ref_of(each) for each in policies}
    return claim if unless_missed(claim.ref, federated, existing.__contains__) is not None else None


async def read_namespaces(
    client: Client, policies: Iterable[PropagationPolicy], name: str = ""
) -> dict[str, dict[str, str]]:
    """The labels of all namespaces, or of one, if any of the policies looks at them."""
    if not any(each.namespace_selector for policy in policies for each in policy.spec.resource_selectors):
        return {}
    selector = f"metadata.name={name}" if name else ""
    try:
        found = await client.list(_NAMESPACES, into=Partial, field_selector=selector)
    except (NotFound, Forbidden):
        return {}
    return {each.metadata.name: dict(each.metadata.labels) for each in found.items}


async def _policies(client: Client, resource: Resource, namespace: str | None) -> list[PropagationPolicy]:
    try:
        return (await client.list(resource, namespace, into=PropagationPolicy)).items
    except (NotFound, Forbidden):
        return []


async def _none() -> list[PropagationPolicy]:
    return []
