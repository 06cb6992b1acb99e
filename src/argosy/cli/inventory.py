"""Inventory: every copy in every member, read from the members themselves with the control plane's own credentials.

For commands that compare what is with what is noted. Nothing is written anywhere.
"""

import asyncio
from collections.abc import Callable

import msgspec

from argosy.api import keys, resources
from argosy.api.types import FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.control.catalog import Catalog
from argosy.control.connect import http_connector
from argosy.control.gate import Recognition
from argosy.control.membersecrets import SecretView
from argosy.fleet.binding import permitted_connection
from argosy.fleet.credentials import CredentialsError
from argosy.fleet.identity import recorded
from argosy.kube.client import Client
from argosy.kube.endpoints import EndpointRules
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.informer import Change
from argosy.kube.objects import DecodeError, Partial, decode
from argosy.kube.resource import Resource
from argosy.plan.identity import Refusal, subject_of
from argosy.plan.orphans import Copy
from argosy.plan.placement import may_hold_copies
from argosy.plan.suppose import ObjectKey

__all__ = ["Inventory", "take_inventory"]

_SECRETS = Resource("", "v1", "secrets", "Secret")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_MANAGED = f"{keys.MANAGED_LABEL}=true"
#: For one page of one member.
_PATIENCE = 30.0
#: Members asked at a time.
_AT_ONCE = 16


class Inventory(msgspec.Struct, frozen=True):
    copies: list[Copy]
    #: By object, where it is to be, and every cluster that may have a copy.
    placed: dict[ObjectKey, tuple[str, ...]]
    known: dict[ObjectKey, set[str]]
    looked_at: set[str]
    #: Why others could not be looked at.
    unknown: dict[str, str]
    #: When the backup was made that the control plane was restored from; "" where it was not.
    restored_from: str = ""
    paused: bool = False


async def take_inventory(client: Client, endpoints: EndpointRules, tell: Callable[[str], None]) -> Inventory:
    """Members are looked for where `endpoints` allow; `tell` hears how far it is. Raises ApiError of the control plane."""
    tell("reading the control plane")
    configs, clusters, system = await asyncio.gather(
        client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig),
        client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster),
        client.get(_NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial),
    )
    # The members first: whatever has a copy by now had its federated object before that.
    gate = asyncio.Semaphore(_AT_ONCE)
    copies: list[Copy] = []
    looked_at: set[str] = set()
    unknown: dict[str, str] = {}

    async def look(cluster: FederatedCluster) -> None:
        async with gate:
            try:
                found = await _copies(client, cluster, clusters.items, configs.items, endpoints)
            except (ApiError, TransportError, TimeoutError, CredentialsError, DecodeError) as error:
                unknown[cluster.name] = str(error) or "it did not answer in time"
                return
        copies.extend(found)
        looked_at.add(cluster.name)
        tell(f"looking into members: {len(looked_at) + len(unknown)} of {len(clusters.items)}, {len(copies)} copies")

    await asyncio.gather(*(look(each) for each in clusters.items))
    placed, known = await _federated(client, configs.items, tell)
    annotations = system.metadata.annotations
    return Inventory(
        copies,
        placed,
        known,
        looked_at,
        unknown,
        restored_from=annotations.get(keys.RESTORED, ""),
        paused=annotations.get(keys.PAUSED) == "true",
    )


async def _copies(
    client: Client,
    cluster: FederatedCluster,
    clusters: list[FederatedCluster],
    configs: list[FederatedTypeConfig],
    endpoints: EndpointRules,
) -> list[Copy]:
    if not cluster.joined:
        raise CredentialsError("it has not joined")
    secret = await client.get(_SECRETS, cluster.spec.secret_ref.name, keys.SYSTEM_NAMESPACE, into=SecretView)
    sharers = [each for each in clusters if each.spec.secret_ref == cluster.spec.secret_ref]
    connection = permitted_connection(cluster, secret.metadata, secret.decoded(), sharers)
    # Another cluster at the member's address is not asked: what is missing there is not missing.
    recognition = Recognition(recorded(cluster), connection.server, lambda other: None)
    member = http_connector(endpoints=endpoints)(cluster.name, connection, recognition.challenge)
    try:
        found: list[Copy] = []
        for config in configs:
            found += await _of_type(member, cluster.name, config)
        return found
    finally:
        await member.close()


async def _of_type(member: Client, cluster: str, config: FederatedTypeConfig) -> list[Copy]:
    found: list[Copy] = []
    pages = member.pages(config.resource, label_selector=_MANAGED)
    try:
        while True:
            async with asyncio.timeout(_PATIENCE):
                page = await anext(pages, None)
            if page is None:
                return found
            for raw in page.items:
                metadata = decode(raw, Partial).metadata
                key = ObjectKey(config.name, metadata.namespace, metadata.name)
                found.append(Copy(cluster, key, metadata.creation_timestamp))
    except NotFound:
        return []  # the member does not serve the kind, so it has none
    finally:
        await pages.aclose()


async def _federated(
    client: Client, configs: list[FederatedTypeConfig], tell: Callable[[str], None]
) -> tuple[dict[ObjectKey, tuple[str, ...]], dict[ObjectKey, set[str]]]:
    catalog = Catalog()
    for config in configs:
        catalog.observe(Change(config.name, None, config))
    placed: dict[ObjectKey, tuple[str, ...]] = {}
    known: dict[ObjectKey, set[str]] = {}
    for namespaced in (True, False):
        async for page in client.pages(resources.federated_objects(namespaced)):
            for raw in page.items:
                federated = decode(raw, FederatedObject)
                subject = subject_of(federated.metadata, federated.spec.template, catalog)
                if isinstance(subject, Refusal):
                    continue  # nothing was ever sent of it
                key = ObjectKey(subject.config.name, subject.namespace, subject.name)
                known[key] = may_hold_copies(federated)
                if federated.metadata.deletion_timestamp is None:
                    placed[key] = federated.placed
            tell(f"reading federated objects: {len(known)}")
    return placed, known
