"""The client and the informer against a real kube-apiserver: the verbs, and every way a watch is lost."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.kube.backoff import Backoff
from argosy.kube.client import Client, Patch
from argosy.kube.config import Connection
from argosy.kube.errors import AlreadyExists, ApiError, Conflict, Gone, Invalid, NotFound, TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Partial, version_number
from argosy.kube.resource import Resource
from argosy.testing import API_SERVER, CONTROL_PLANE, Cluster
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.relay import Relay

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
FAST = Backoff(base=0.02, cap=0.2)
SELECTED = "test=kube"


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"test": "kube"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
async def client(kubernetes: Kubernetes) -> AsyncIterator[Client]:
    made = (await kubernetes.shared(API_SERVER)).client()
    yield made
    await made.close()


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "kube-"}}
    name = (await client.create(NAMESPACES, body))["metadata"]["name"]
    yield name
    await client.delete(NAMESPACES, name)


@asynccontextmanager
async def informing(client: Client, namespace: str | None = "default") -> AsyncIterator[Informer[Partial]]:
    informer = Informer(client, MAPS, Partial, namespace=namespace, label_selector=SELECTED, backoff=FAST)
    task = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.synced.wait(), 10)
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Order:
    """What the handlers were told of each object: its versions must only grow, and an end is an end."""

    def __init__(self, informer: Informer[Partial]):
        self.broken: list[str] = []
        self._last: dict[str, int] = {}
        informer.add_handler(self._take)

    def _take(self, change: Change[Partial]) -> None:
        current = change.new or change.old
        assert current is not None
        version = version_number(current.metadata.resource_version) or 0
        if change.new is not None and version <= self._last.get(change.key, 0):
            self.broken.append(f"{change.key}: {version} after {self._last[change.key]}")
        self._last[change.key] = max(version, self._last.get(change.key, 0))


def held(informer: Informer[Partial]) -> dict[str, str]:
    return {key: one.metadata.resource_version for key in informer.keys() if (one := informer.get(key))}  # noqa: SIM118


async def listed(client: Client, namespace: str = "default") -> dict[str, str]:
    found = (await client.list(MAPS, namespace, label_selector=SELECTED)).items
    return {f"{namespace}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in found}


async def test_an_object_is_created_read_changed_and_deleted(client: Client, namespace: str) -> None:
    made = await client.create(MAPS, config_map("a", namespace, x="1"))
    assert await client.get(MAPS, "a", namespace) == made
    with pytest.raises(AlreadyExists):
        await client.create(MAPS, config_map("a", namespace))
    changed = await client.update(MAPS, {**made, "data": {"x": "2"}})
    assert changed["data"] == {"x": "2"}
    with pytest.raises(Conflict):
        await client.update(MAPS, {**made, "data": {"x": "3"}})
    with pytest.raises(Conflict):
        await client.delete(MAPS, "a", namespace, uid="another")
    await client.delete(MAPS, "a", namespace, uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(MAPS, "a", namespace)


async def test_every_patch_type_is_taken(client: Client, namespace: str) -> None:
    await client.create(MAPS, config_map("a", namespace, x="1", y="1"))
    merged = await client.patch(MAPS, "a", {"data": {"x": None, "z": "1"}}, namespace, kind=Patch.MERGE)
    assert merged["data"] == {"y": "1", "z": "1"}
    operations = [{"op": "replace", "path": "/data/y", "value": "2"}]
    assert (await client.patch(MAPS, "a", operations, namespace, kind=Patch.JSON))["data"] == {"y": "2", "z": "1"}
    containers = [{"name": name, "image": "registry.invalid/app:1"} for name in ("one", "two")]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    metadata = {"name": "a", "namespace": namespace}
    await client.create(
        DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    )
    change = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "registry.invalid/app:2"}]}}}}
    patched = await client.patch(DEPLOYMENTS, "a", change, namespace, kind=Patch.STRATEGIC)
    images = [one["image"].rpartition(":")[2] for one in patched["spec"]["template"]["spec"]["containers"]]
    assert images == ["1", "2"]
    with pytest.raises(Invalid) as refused:
        await client.patch(DEPLOYMENTS, "a", {"spec": {"replicas": -1}}, namespace, kind=Patch.MERGE)
    assert [cause["field"] for cause in refused.value.causes] == ["spec.replicas"]


async def test_a_collection_is_read_in_pages_and_deleted(client: Client, namespace: str) -> None:
    for number in range(7):
        await client.create(MAPS, config_map(f"a{number}", namespace))
    pages = [len(page.items) async for page in client.pages(MAPS, namespace, label_selector=SELECTED, limit=3)]
    assert pages == [3, 3, 1]
    await client.delete_collection(MAPS, namespace, label_selector=SELECTED)
    assert await listed(client, namespace) == {}


async def test_an_informer_follows(client: Client, namespace: str) -> None:
    async with informing(client, namespace) as informer:
        order = Order(informer)
        for name in ("a", "b", "c"):
            await client.create(MAPS, config_map(name, namespace))
        await client.patch(MAPS, "b", {"data": {"x": "1"}}, namespace)
        await client.delete(MAPS, "c", namespace)
        wanted = await listed(client, namespace)
        await eventually(lambda: held(informer) == wanted)
        assert len(wanted) == 2
        assert informer.lists == 1
        assert order.broken == []


async def test_what_was_compacted_while_the_line_was_dead_is_listed_anew(kubernetes: Kubernetes) -> None:
    (cluster,) = await kubernetes(1, CONTROL_PLANE)
    direct = cluster.client()
    for name in ("stays", "goes"):
        await direct.create(MAPS, config_map(name))
    async with Relay("127.0.0.1", cluster.ports.apiserver) as relay:
        connection = Connection(relay.url, ca_data=cluster.authority.certificate, token=cluster.token)
        relayed = Client(HttpTransport(connection, timeout=2.0))
        async with informing(relayed) as informer:
            order = Order(informer)
            old = informer.version
            # Its watch stays open and says nothing more, so that what it knows is old once it is back.
            relay.freeze()
            await change_and_forget(cluster, direct)
            with pytest.raises(Gone):
                await watch_from(direct, old)
            relay.cut()
            wanted = await listed(direct)
            await eventually(lambda: held(informer) == wanted, 30)
            assert set(wanted) == {"default/stays", "default/new"}
            assert informer.lists == 2
            assert order.broken == []
        await relayed.close()
    await direct.close()


async def change_and_forget(cluster: Cluster, client: Client) -> None:
    await client.delete(MAPS, "goes", "default")
    await client.create(MAPS, config_map("new"))
    await cluster.compact()
    # The watch cache of a running server still knows; a new one starts from what etcd has.
    cluster["kube-apiserver"].kill()
    cluster["kube-apiserver"].start()
    await cluster.ready()


async def watch_from(client: Client, version: str) -> None:
    async with client.watch(MAPS, "default", resource_version=version) as events:
        async for _ in events:
            return


async def test_a_server_killed_again_and_again_leaves_the_cache_equal_to_a_fresh_list(kubernetes: Kubernetes) -> None:
    (cluster,) = await kubernetes(1, CONTROL_PLANE)
    watcher, writer = cluster.client(timeout=2.0), cluster.client(timeout=2.0)
    ended = asyncio.Event()
    async with informing(watcher) as informer:
        order = Order(informer)
        writing = asyncio.create_task(write_at_random(writer, ended, random.Random(7)))
        for _ in range(3):
            before = informer.version
            await eventually(
                lambda before=before: (version_number(informer.version) or 0) > version_number(before) + 20, 30
            )
            cluster["kube-apiserver"].kill()
            cluster["kube-apiserver"].start()
            await cluster.ready()
        ended.set()
        assert await writing > 50
        wanted = await listed(writer)
        await eventually(lambda: held(informer) == wanted, 30)
        assert order.broken == []
    await watcher.close()
    await writer.close()


async def write_at_random(client: Client, ended: asyncio.Event, chance: random.Random) -> int:
    """Create, change and delete a few objects until told to end; how many writes were acknowledged."""
    done = 0
    while not ended.is_set():
        name = f"w{chance.randrange(12)}"
        try:
            match chance.randrange(3):
                case 0:
                    await client.create(MAPS, config_map(name))
                case 1:
                    await client.patch(MAPS, name, {"data": {"x": str(done)}}, "default")
                case _:
                    await client.delete(MAPS, name, "default")
            done += 1
        except (AlreadyExists, NotFound):
            continue
        except (TransportError, ApiError):
            await asyncio.sleep(0.05)
    return done
