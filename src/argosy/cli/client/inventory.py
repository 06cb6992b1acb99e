"""Inventory: every copy in every member, read from the members themselves with the control plane's own credentials.

For commands that compare what is with what is noted. Nothing is written anywhere. Looked at is every kind that a member serves,
not only those that are federated now: what was federated when a copy was made need not be on record any more.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from argosy.api import keys, resources
from argosy.api.conditions import Refused
from argosy.api.types import FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.control.caches.catalog import Catalog
from argosy.control.members.connect import http_connector
from argosy.control.members.identity import Recognition
from argosy.control.members.secrets import SecretView
from argosy.fleet.binding import permitted_connection
from argosy.fleet.credentials import CredentialsError
from argosy.fleet.identity import recorded
from argosy.kube.client import Client
from argosy.kube.discovery import Discovery
from argosy.kube.endpoints import EndpointRules
from argosy.kube.errors import ApiError, BadAnswer, Forbidden, NotFound, TransportError, Unauthorized
from argosy.kube.informer import Change
from argosy.kube.objects import DecodeError, Metadata, Partial, decode
from argosy.kube.resource import Resource
from argosy.plan.copies.adoption import adopted_mark
from argosy.plan.copies.identity import Refusal, subject_of
from argosy.plan.copies.orphans import Copy
from argosy.plan.copies.placement import may_hold_copies
from argosy.plan.explain.snapshot import ObjectKey

__all__ = ["Inventory", "take_inventory"]

_SECRETS = Resource("", "v1", "secrets", "Secret")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SERVICES = Resource("", "v1", "services", "Service")
_ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
_MANAGED = f"{keys.MANAGED_LABEL}=true"
_UNMANAGED = f"!{keys.MANAGED_LABEL}"
#: For one page of one member.
_PATIENCE = 30.0
#: Kinds of one member that may take longer before it is given up.
_MOST_LATE = 3
#: Members asked at a time.
_AT_ONCE = 16
#: What one of them is needed for a copy to be written at all.
_WRITING = frozenset({"create", "update", "patch"})


class Inventory(msgspec.Struct, frozen=True):
    copies: list[Copy]
    #: By object, where it is to be, and every cluster that may have a copy.
    placed: dict[ObjectKey, tuple[str, ...]]
    known: dict[ObjectKey, set[str]]
    #: The clusters in which all federated kinds could be listed.
    looked_at: set[str]
    #: Why others could not be looked at.
    unknown: dict[str, str]
    #: By cluster and kind, or group where not even its kinds are known, why that could not be listed.
    unlisted: dict[str, dict[str, str]]
    #: When the backup was made that the control plane was restored from; "" where it was not.
    restored_from: str = ""
    paused: bool = False


class _Kind(NamedTuple):
    """What is listed in a member."""

    #: The type config's name, or what it would be called.
    type: str
    resource: Resource
    federated: bool


class _Labelled(NamedTuple):
    """An object with the federation's label."""

    copy: Copy
    resource: Resource
    #: The uids of its owners.
    owners: tuple[str, ...]
    #: It was written by a federation, and did not only take over labels.
    carried: bool


class _Member(msgspec.Struct):
    """What was found in one."""

    copies: list[Copy] = []
    #: Those of them that the member may have made itself.
    derived: set[Copy] = set()
    unlisted: dict[str, str] = {}
    #: Whether all federated kinds could be listed.
    complete: bool = True
    #: By group and kind, what other kinds are called here.
    others: dict[tuple[str, str], str] = {}


async def take_inventory(
    client: Client, endpoints: EndpointRules, tell: Callable[[str], None], *, rescued: bool = False
) -> Inventory:
    """Members are looked for where `endpoints` allow; `tell` hears how far it is. Raises ApiError of the control plane.

    With `rescued`, also objects of federated kinds that were rescued: these have no label, so all objects are looked at.
    """
    tell("reading the control plane")
    configs, clusters, system = await asyncio.gather(
        client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig),
        client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster),
        client.get(_NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial),
    )
    # The members first: whatever has a copy by now had its federated object before that.
    gate = asyncio.Semaphore(_AT_ONCE)
    copies: list[Copy] = []
    derived: set[Copy] = set()
    looked_at: set[str] = set()
    unknown: dict[str, str] = {}
    unlisted: dict[str, dict[str, str]] = {}
    others: dict[tuple[str, str], str] = {}

    async def look(cluster: FederatedCluster) -> None:
        async with gate:
            try:
                found = await _look_into(client, cluster, clusters.items, configs.items, endpoints, rescued=rescued)
            except (ApiError, TransportError, TimeoutError, CredentialsError, DecodeError) as error:
                unknown[cluster.name] = str(error) or "it did not answer in time"
                return
        copies.extend(found.copies)
        derived.update(found.derived)
        others.update(found.others)
        if found.unlisted:
            unlisted[cluster.name] = found.unlisted
        if found.complete:
            looked_at.add(cluster.name)
        done = len(looked_at | unknown.keys() | unlisted.keys())
        tell(f"looking into members: {done} of {len(clusters.items)}, {len(copies)} copies")

    await asyncio.gather(*(look(each) for each in clusters.items))
    placed, known = await _federated(client, configs.items, others, tell)
    annotations = system.metadata.annotations
    return Inventory(
        [copy for copy in copies if copy not in derived or copy.key in known],
        placed,
        known,
        looked_at,
        unknown,
        unlisted,
        restored_from=annotations.get(keys.RESTORED, ""),
        paused=annotations.get(keys.PAUSED) == "true",
    )


async def _look_into(
    client: Client,
    cluster: FederatedCluster,
    clusters: list[FederatedCluster],
    configs: list[FederatedTypeConfig],
    endpoints: EndpointRules,
    *,
    rescued: bool,
) -> _Member:
    if not cluster.joined:
        raise CredentialsError("it has not joined")
    secret = await client.get(_SECRETS, cluster.spec.secret_ref.name, keys.SYSTEM_NAMESPACE, into=SecretView)
    sharers = [each for each in clusters if each.spec.secret_ref == cluster.spec.secret_ref]
    connection = permitted_connection(cluster, secret.metadata, secret.decoded(), sharers)
    # Another cluster at the member's address is not asked: what is missing there is not missing.
    recognition = Recognition(recorded(cluster), connection.server, lambda other: None)
    member = http_connector(endpoints=endpoints)(cluster.name, connection, recognition.challenge)
    try:
        async with asyncio.timeout(_PATIENCE):
            served = await member.discover()
        return await _copies(member, cluster.name, list(_kinds(configs, served)), served, rescued=rescued)
    finally:
        await member.close()


def _kinds(configs: Iterable[FederatedTypeConfig], served: Discovery) -> Iterator[_Kind]:
    """The federated ones, and then every other that may hold copies, each in one of its versions."""
    others: dict[tuple[str, str], Resource] = {}
    for resource in served.resources:
        if "list" in served.verbs[resource] and _WRITING & served.verbs[resource]:
            others.setdefault((resource.group, resource.plural), resource)
    for config in configs:
        wanted = config.resource
        other = others.get((wanted.group, wanted.plural), wanted)
        # A member that does not serve this version any more has the copies in another; one that serves none has none.
        yield _Kind(config.name, wanted if wanted in served.verbs else other, federated=True)
    for config in configs:
        others.pop((config.resource.group, config.resource.plural), None)
    for resource in others.values():
        yield _Kind(str(resource), resource, federated=False)


async def _copies(member: Client, cluster: str, kinds: list[_Kind], served: Discovery, *, rescued: bool) -> _Member:
    found = _Member(unlisted=dict(served.failures))
    #: By their uids: some objects are served by two groups.
    seen: dict[str, _Labelled] = {}
    late = 0
    for kind in kinds:
        if not kind.federated:
            found.others[kind.resource.group, kind.resource.kind] = kind.type
        try:
            for selector in (_MANAGED, *([_UNMANAGED] if rescued and kind.federated else [])):
                async for metadata in _listed(member, kind.resource, selector):
                    labelled = _labelled(cluster, kind, metadata)
                    if selector == _MANAGED or labelled.copy.rescued:
                        seen.setdefault(metadata.uid or labelled.copy.key.text, labelled)
        except NotFound:
            continue  # the member does not serve the kind, so it has none
        except Unauthorized:
            raise
        except TimeoutError:
            late += 1
            if kind.federated or late > _MOST_LATE:
                raise
            found.unlisted[kind.type] = "it did not answer in time"
        except (ApiError, BadAnswer, DecodeError) as error:
            told = "the control plane may not list it there" if isinstance(error, Forbidden) else str(error)
            found.unlisted[kind.type] = told
            found.complete = found.complete and not kind.federated
    found.copies = [each.copy for each in seen.values()]
    found.derived = set(_derived(seen))
    return found


async def _listed(member: Client, resource: Resource, selector: str) -> AsyncIterator[Metadata]:
    """Of every object the selector selects, page by page."""
    async with aclosing(member.pages(resource, label_selector=selector)) as pages:
        while True:
            async with asyncio.timeout(_PATIENCE):
                page = await anext(pages, None)
            if page is None:
                return
            for raw in page.items:
                yield decode(raw, Partial).metadata


def _labelled(cluster: str, kind: _Kind, metadata: Metadata) -> _Labelled:
    copy = Copy(
        cluster,
        ObjectKey(kind.type, metadata.namespace, metadata.name),
        metadata.creation_timestamp,
        adopted=adopted_mark(metadata.annotations) == "true",
        rescued=keys.MANAGED_LABEL not in metadata.labels and metadata.annotations.get(keys.RESCUED) == "true",
    )
    owners = tuple(owner.uid for owner in metadata.owner_references)
    return _Labelled(copy, kind.resource, owners, keys.PROPAGATED_LABEL_KEYS in metadata.annotations)


def _derived(labelled: dict[str, _Labelled]) -> Iterator[Copy]:
    """What a member makes of copies, their labels included."""
    services = {each.copy.key[1:] for each in labelled.values() if each.resource == _SERVICES}
    for each in labelled.values():
        # Endpoints have no owner, but the name of their Service.
        made = each.resource == _ENDPOINTS and not each.carried and each.copy.key[1:] in services
        if made or any(uid in labelled for uid in each.owners):
            yield each.copy


async def _federated(
    client: Client,
    configs: list[FederatedTypeConfig],
    others: dict[tuple[str, str], str],
    tell: Callable[[str], None],
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
                    # Either nothing was ever sent of it, or its kind is federated no more and its copies are left as they are.
                    if subject.reason is Refused.NO_TYPE_CONFIG and (left := _unfederated(federated, others)):
                        known[left] = may_hold_copies(federated)
                    continue
                key = ObjectKey(subject.config.name, subject.namespace, subject.name)
                known[key] = may_hold_copies(federated)
                if federated.metadata.deletion_timestamp is None:
                    placed[key] = federated.placed
            tell(f"reading federated objects: {len(known)}")
    return placed, known


def _unfederated(federated: FederatedObject, others: dict[tuple[str, str], str]) -> ObjectKey | None:
    """The copies of an object whose type config is gone, where a member serves the kind."""
    template = federated.spec.template
    group = str(template.get("apiVersion")).rpartition("/")[0]
    type, metadata = others.get((group, str(template.get("kind")))), template.get("metadata")
    if type is None or not isinstance(metadata, dict):
        return None
    return ObjectKey(type, federated.metadata.namespace, str(metadata.get("name")))
