"""What a controller in the server's process may do: read, hear of changes, and write past the rules for strangers."""

import asyncio

import pytest

from argosy.kube.errors import Conflict, Invalid
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from argosy.server.trusted import Object, StoreEvent, TrustedAccess
from tests.harness.eventually import eventually
from tests.server.conftest import HttpClient

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
PODS = Resource("", "v1", "pods", "Pod")


def config_map(name: str, namespace: str = "default", **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, **spec: object) -> Object:
    containers = [{"name": "main", "image": "nginx"}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@pytest.fixture
async def access(memory_server: EmbeddedServer) -> TrustedAccess:
    return memory_server.trusted


def stored(access: TrustedAccess, key: str) -> Object:
    entry = access.get(key)
    assert entry is not None
    return entry.decode()


async def test_what_is_stored_is_told_first_and_then_each_change(access: TrustedAccess) -> None:
    await access.create("tester", MAPS, config_map("a"))
    told: list[StoreEvent] = []
    access.follow(told.append, "core/configmaps")
    kinds = [event.entry.key.split("/")[1] for event in told]
    assert kinds[0] == "configmaps"
    assert {"namespaces", "clusterroles"} <= set(kinds)
    told.clear()
    await access.create("tester", MAPS, config_map("b"))
    changes = [(event.entry.name, event.previous, event.deleted) for event in told if "/default/" in event.entry.key]
    assert ("b", None, False) in changes


async def test_objects_are_listed_by_namespace(access: TrustedAccess) -> None:
    for namespace, name in (("default", "b"), ("default", "a"), ("kube-public", "c")):
        await access.create("tester", MAPS, config_map(name, namespace))
    await eventually(lambda: len(access.entries("core/configmaps")) > 3)  # those that every namespace has
    mine = [entry.name for entry in access.entries("core/configmaps", "default") if not entry.name.startswith("kube")]
    assert mine == ["a", "b"]


async def test_what_is_created_is_defaulted_admitted_and_validated(access: TrustedAccess) -> None:
    await access.create("tester", PODS, pod("good"))
    assert stored(access, "core/pods/default/good")["spec"]["restartPolicy"] == "Always"
    with pytest.raises(Invalid, match=r"spec\.restartPolicy"):
        await access.create("tester", PODS, pod("bad", restartPolicy="Sometimes"))


async def test_an_update_of_what_has_changed_meanwhile_is_refused(access: TrustedAccess) -> None:
    await access.create("tester", MAPS, config_map("m"))
    first, second = (stored(access, "core/configmaps/default/m") for _ in range(2))
    await access.update(MAPS, {**first, "data": {"by": "first"}})
    with pytest.raises(Conflict, match="has been modified"):
        await access.update(MAPS, {**second, "data": {"by": "second"}})
    assert stored(access, "core/configmaps/default/m")["data"] == {"by": "first"}


async def test_changes_at_the_same_time_lose_nothing(access: TrustedAccess) -> None:
    await access.create("tester", MAPS, config_map("m"))
    entry = access.get("core/configmaps/default/m")
    assert entry is not None

    def count(obj: Object) -> bool:
        obj["data"] = {"n": str(int((obj.get("data") or {}).get("n", "0")) + 1)}
        return True

    changes = [access.change(MAPS, entry.key, entry.uid, count) for _ in range(8)]
    assert await asyncio.gather(*changes) == [True] * 8
    assert stored(access, entry.key)["data"] == {"n": "8"}
    assert not await access.change(MAPS, entry.key, "another uid", count)
    assert not await access.change(MAPS, entry.key, entry.uid, lambda obj: False)
    assert stored(access, entry.key)["data"] == {"n": "8"}


async def test_a_pod_is_bound_once(access: TrustedAccess) -> None:
    await access.create("tester", PODS, pod("p"))
    entry = access.get("core/pods/default/p")
    assert entry is not None
    assert await access.bind(entry.key, entry.uid, "node-1")
    assert not await access.bind(entry.key, entry.uid, "node-2")
    bound = stored(access, entry.key)
    assert bound["spec"]["nodeName"] == "node-1"
    assert bound["status"]["conditions"][-1]["type"] == "PodScheduled"


async def test_a_loop_that_ends_fails_livez(memory_server: EmbeddedServer, access: TrustedAccess) -> None:
    async def short() -> None:
        return

    access.run("short", short())
    async with HttpClient(memory_server) as client:
        failed = await client.get("/livez")
    assert (failed.code, b"[-]short failed" in failed.raw) == (500, True)
