"""What the brake holds, read from the federated objects, and the orders it goes by, written to the system namespace."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import orjson

from argosy.api import keys, resources
from argosy.kube import timestamps
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, Conflict
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from argosy.plan.brake.cause import Cause
from argosy.plan.brake.held_removal import held_removal_of
from argosy.plan.brake.orders import Order, Orders, orders_of, with_order

__all__ = ["HeldObject", "give", "held_objects", "order", "orders", "release", "whoami"]

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
_TRIES = 5


class HeldObject(NamedTuple):
    """One object and its copies that stay."""

    cause: str
    since: str
    kind: str
    namespace: str
    name: str
    clusters: tuple[str, ...]


class _Owner(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    annotations: dict[str, str] = {}
    owner_references: tuple[_Owner, ...] = ()


class _Entry(msgspec.Struct, frozen=True):
    cluster: str


class _Placement(msgspec.Struct, frozen=True):
    placement: tuple[_Entry, ...] = ()


class _Spec(msgspec.Struct, frozen=True):
    placements: tuple[_Placement, ...] = ()


class _Federated(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


async def held_objects(client: Client) -> list[HeldObject]:
    """Sorted by cause, oldest first. Members that may not leave are among them."""
    found = []
    for cluster in (await client.list(resources.FEDERATED_CLUSTERS, into=Partial)).items:
        since = cluster.metadata.annotations.get(keys.LEAVE_HELD)
        if since and cluster.metadata.deletion_timestamp:
            name = cluster.metadata.name
            found.append(HeldObject(Cause.LEAVING, since, "FederatedCluster", "", name, (name,)))
    for namespaced in (True, False):
        for each in (await client.list(resources.federated_objects(namespaced), into=_Federated)).items:
            held = held_removal_of(each.metadata.annotations)
            if held is None:
                continue
            owner = next(
                (one for one in each.metadata.owner_references if one.controller), _Owner("", each.metadata.name)
            )
            clusters = held.clusters or tuple(
                sorted({entry.cluster for one in each.spec.placements for entry in one.placement})
            )
            place = each.metadata.namespace
            found.append(HeldObject(held.cause, held.since, owner.kind, place, owner.name, clusters))
    return sorted(found)


async def orders(client: Client) -> Orders:
    return orders_of((await _system(client)).metadata.annotations)


async def give(client: Client, change: Callable[[Orders], Orders]) -> None:
    """Changes the orders; what others order at the same time is kept."""
    for attempt in range(_TRIES):
        namespace = await _system(client)
        text = orjson.dumps(msgspec.to_builtins(change(orders_of(namespace.metadata.annotations)))).decode()
        version = namespace.metadata.resource_version
        body = {"metadata": {"resourceVersion": version, "annotations": {keys.BRAKE_ORDERS: text}}}
        try:
            await client.patch(_NAMESPACES, keys.SYSTEM_NAMESPACE, body)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
            continue
        return


async def order(client: Client, kind: str, what: str, at: str = "") -> None:
    """One more order, with who gives it and when. `at` is the time of the newest that it is about: by the controllers' clock."""
    given = Order(what, at or timestamps.now(), await whoami(client))
    await give(client, lambda before: with_order(before, kind, given))


async def release(client: Client, kind: str, held: Iterable[HeldObject]) -> None:
    """An order for each cause of these: what was shown may go, and nothing else."""
    newest: dict[str, str] = {}
    for each in held:
        newest[each.cause] = max(newest.get(each.cause, ""), each.since)
    for cause, since in newest.items():
        await order(client, kind, cause, since)


async def whoami(client: Client) -> str:
    """Who asks, as the API server knows them; empty where it does not say."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await client.create(_REVIEWS, body)
    except ApiError:
        return ""
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")


async def _system(client: Client) -> Partial:
    return await client.get(_NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial)
