"""Garbage collection among many owners: circles of them end, whoever they are, and nothing goes that nobody may decide about."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from argosy.kube.client import Client
from argosy.kube.resource import Resource
from argosy.server import metadata
from argosy.server.embedded import EmbeddedServer
from argosy.server.storage.sqlite import SqliteStorage
from tests.harness.eventually import eventually, holds

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
CONTENT: dict[str, dict[str, Any]] = {"PriorityClass": {"value": 5}}
NAMESPACE = "default"

Object = dict[str, Any]


def place(resource: Resource) -> str | None:
    return NAMESPACE if resource.namespaced else None


async def made(client: Client, resource: Resource, name: str, owners: Sequence[Object] = (), **metadata: Any) -> Object:
    references = [reference(owner) for owner in owners]
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, **CONTENT.get(resource.kind, {})}
    return await client.create(
        resource, {**obj, "metadata": {"name": name, "ownerReferences": references, **metadata}}, place(resource)
    )


def reference(owner: Object, *, blocks: bool = True) -> Object:
    fields = {field: owner[field] for field in ("apiVersion", "kind")}
    fields |= {field: owner["metadata"][field] for field in ("name", "uid")}
    return {**fields, "blockOwnerDeletion": blocks}


async def owned_by(client: Client, resource: Resource, obj: Object, *owners: Object, blocks: bool = True) -> None:
    patch = {"metadata": {"ownerReferences": [reference(owner, blocks=blocks) for owner in owners]}}
    await client.patch(resource, obj["metadata"]["name"], patch, place(resource))


async def circle(client: Client, *resources: Resource) -> list[Object]:
    """Each is owned by the one before it, and the first by the last."""
    objects: list[Object] = []
    for number, resource in enumerate(resources):
        objects.append(await made(client, resource, f"c{number}", objects[-1:]))
    await owned_by(client, resources[0], objects[0], objects[-1])
    return objects


async def names(client: Client, *resources: Resource) -> list[str]:
    """Of what the tests made."""
    found = [
        item["metadata"]["name"]
        for resource in dict.fromkeys(resources)
        for item in (await client.list(resource, place(resource))).items
    ]
    return sorted(name for name in found if name[0] == "c" and name[1:].isdigit())


async def until_left(client: Client, *resources: Resource, left: Sequence[str] = ()) -> None:
    async def settled() -> bool:
        return await names(client, *resources) == list(left)

    await eventually(settled, why=f"only {list(left)} is left")


@pytest.mark.parametrize(
    "resources",
    [
        (MAPS,),
        (MAPS, MAPS),
        (MAPS, MAPS, MAPS),
        (MAPS, SECRETS, MAPS, SECRETS, MAPS),
        (ROLES, CLASSES),
        (ROLES, MAPS, SECRETS),  # its first is owned by one that it cannot have
    ],
    ids=lambda resources: "-".join(resource.kind for resource in resources),
)
@pytest.mark.parametrize("policy", ["Foreground", "Background"])
async def test_a_circle_of_owners_ends(server: EmbeddedServer, resources: tuple[Resource, ...], policy: str) -> None:
    client = server.client()
    await circle(client, *resources)
    await client.delete(resources[0], "c0", place(resources[0]), propagation=policy)
    await until_left(client, *resources)


async def test_all_of_a_circle_are_deleted_at_once(server: EmbeddedServer) -> None:
    client = server.client()
    await circle(client, MAPS, MAPS, MAPS, MAPS)
    deletes = (client.delete(MAPS, f"c{number}", NAMESPACE, propagation="Foreground") for number in range(4))
    await asyncio.gather(*deletes)
    await until_left(client, MAPS)


async def test_two_circles_that_share_an_owner_end(server: EmbeddedServer) -> None:
    client = server.client()
    first, second, third, *_ = await circle(client, MAPS, MAPS, MAPS)
    other = await made(client, MAPS, "c8", [first])
    await owned_by(client, MAPS, first, third, other)
    await client.delete(MAPS, second["metadata"]["name"], NAMESPACE, propagation="Foreground")
    # The first has another owner that nobody deletes.
    await until_left(client, MAPS, left=["c0", "c8"])
    await client.delete(MAPS, "c8", NAMESPACE, propagation="Foreground")
    await until_left(client, MAPS)


async def test_a_circle_is_cut_open_by_an_orphaning_deletion(server: EmbeddedServer) -> None:
    client = server.client()
    await circle(client, MAPS, MAPS, MAPS)
    await client.delete(MAPS, "c0", NAMESPACE, propagation="Orphan")
    await until_left(client, MAPS, left=["c1", "c2"])
    assert not (await client.get(MAPS, "c1", NAMESPACE))["metadata"].get("ownerReferences")


async def test_a_circle_waits_for_what_is_held_in_it(server: EmbeddedServer) -> None:
    client = server.client()
    await circle(client, MAPS, MAPS, MAPS)
    await client.patch(MAPS, "c1", {"metadata": {"finalizers": ["example.com/hold"]}}, NAMESPACE)
    await client.delete(MAPS, "c0", NAMESPACE, propagation="Foreground")

    async def held() -> bool:
        return (await client.get(MAPS, "c1", NAMESPACE))["metadata"].get("finalizers") == ["example.com/hold"]

    async def waits() -> bool:
        return "deletionTimestamp" in (await client.get(MAPS, "c1", NAMESPACE))["metadata"]

    await eventually(waits)
    await eventually(held, why="it waits for nothing else")
    await client.patch(MAPS, "c1", {"metadata": {"finalizers": None}}, NAMESPACE)
    await until_left(client, MAPS)


async def test_a_store_in_which_a_circle_waits_comes_up_and_finishes(tmp_path: Path) -> None:
    """As versions before this one left it: each waits for the next, and nothing says that it need not."""
    storage = SqliteStorage(tmp_path / "store")
    await storage.open(lambda changes: None, lambda writes, seconds: None)
    for number in range(3):
        meta = {
            "name": f"c{number}",
            "namespace": NAMESPACE,
            "uid": f"uid-{number}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:00:01Z",
            "deletionGracePeriodSeconds": 0,
            "finalizers": ["foregroundDeletion"],
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": f"c{(number + 1) % 3}",
                    "uid": f"uid-{(number + 1) % 3}",
                    "blockOwnerDeletion": True,
                }
            ],
        }
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        await storage.create(
            f"core/configmaps/{NAMESPACE}/c{number}",
            lambda version, obj=obj: orjson.dumps(  # type: ignore[misc]
                {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
            ),
        )
    await storage.close()
    server = EmbeddedServer(tmp_path)
    await server.start()
    try:
        await until_left(server.client(), MAPS)
    finally:
        await server.stop()


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
async def test_a_chain_of_a_thousand_goes(memory_server: EmbeddedServer, policy: str) -> None:
    client = memory_server.client()
    owner: list[Object] = []
    for number in range(1000):
        owner = [await made(client, MAPS, f"c{number}", owner)]
    await client.delete(MAPS, "c0", NAMESPACE, propagation=policy)
    await until_left(client, MAPS)


async def test_an_owner_goes_on_when_its_dependent_no_longer_names_it(server: EmbeddedServer) -> None:
    client = server.client()
    owner, other = await made(client, MAPS, "c0"), await made(client, MAPS, "c1")
    await made(client, MAPS, "c2", [owner, other])
    await client.delete(MAPS, "c0", NAMESPACE, propagation="Foreground")
    await until_left(client, MAPS, left=["c1", "c2"])
    left = (await client.get(MAPS, "c2", NAMESPACE))["metadata"]["ownerReferences"]
    assert [one["name"] for one in left] == ["c1"]


async def test_an_owner_goes_on_when_its_dependent_blocks_it_no_more(server: EmbeddedServer) -> None:
    client = server.client()
    owner = await made(client, MAPS, "c0")
    dependent = await made(client, MAPS, "c1", [owner], finalizers=["example.com/hold"])
    await client.delete(MAPS, "c0", NAMESPACE, propagation="Foreground")

    async def deleted() -> bool:
        return "deletionTimestamp" in (await client.get(MAPS, "c1", NAMESPACE))["metadata"]

    await eventually(deleted)
    assert await names(client, MAPS) == ["c0", "c1"]
    await owned_by(client, MAPS, dependent, owner, blocks=False)
    await until_left(client, MAPS, left=["c1"])


async def test_an_owner_that_an_object_cannot_have_deletes_nothing(server: EmbeddedServer) -> None:
    """A cluster-scoped object that names a namespaced owner: whether that one is gone, nobody can say."""
    client = server.client()
    owner = await made(client, MAPS, "c0")
    await made(client, ROLES, "c1", [owner])
    await client.delete(MAPS, "c0", NAMESPACE)

    async def stays() -> bool:
        return await names(client, ROLES) == ["c1"]

    await holds(stays, 0.5)


def test_a_mistyped_reference_is_refused() -> None:
    for field, value in itertools.product(("blockOwnerDeletion", "controller"), ("yes", 1)):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c0", "uid": "u", field: value}
        wrong = metadata.check_types({"metadata": {"name": "c1", "ownerReferences": [owner]}})
        assert wrong is not None
        assert wrong.endswith(f"ObjectMeta.ownerReferences.{field} of type bool")
