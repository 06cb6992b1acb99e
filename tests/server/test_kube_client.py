"""The client against the embedded server, over HTTPS and in process: the same answers either way."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import yaml

from argosy.kube.client import Client, Patch
from argosy.kube.config import Connection, load
from argosy.kube.errors import AlreadyExists, Conflict, Forbidden, Gone, Invalid, NotFound, TransportError, Unauthorized
from argosy.kube.http import HttpTransport
from argosy.kube.objects import Metadata, Partial
from argosy.kube.resource import Resource
from argosy.kube.shards import Shard
from argosy.kube.transport import Request, Response
from argosy.server.embedded import EmbeddedServer

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


def connection(server: EmbeddedServer, token: str = "admin-token", port: int = 0) -> Connection:
    return Connection(f"https://127.0.0.1:{port or server.port}", ca_data=server.authority.certificate, token=token)


@pytest.fixture(params=["http", "local"])
async def kube(request: pytest.FixtureRequest, memory_server: EmbeddedServer) -> AsyncIterator[Client]:
    over_http = request.param == "http"
    made = Client(HttpTransport(connection(memory_server))) if over_http else memory_server.client()
    yield made
    await made.close()


def config_map(name: str, **data: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "labels": {"app": name[0]}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Data(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] = {}


async def test_an_object_is_created_read_updated_and_deleted(kube: Client) -> None:
    made = await kube.create(MAPS, config_map("a", x="1"))
    assert await kube.get(MAPS, "a", "default") == made
    made["data"]["x"] = "2"
    changed = await kube.update(MAPS, made, into=Data)
    assert changed.data == {"x": "2"}
    with pytest.raises(Conflict):
        await kube.update(MAPS, made)
    with pytest.raises(AlreadyExists):
        await kube.create(MAPS, config_map("a"))
    gone = await kube.delete(MAPS, "a", "default", uid=changed.metadata.uid)
    assert gone["status"] == "Success"
    with pytest.raises(NotFound) as caught:
        await kube.get(MAPS, "a", "default")
    assert caught.value.status["details"]["name"] == "a"


async def test_deletes_hold_to_their_preconditions(kube: Client) -> None:
    await kube.create(MAPS, config_map("a"))
    with pytest.raises(Conflict):
        await kube.delete(MAPS, "a", "default", uid="another")
    with pytest.raises(Conflict):
        await kube.delete(MAPS, "a", "default", resource_version="1")
    assert await kube.get(MAPS, "a", "default", into=Partial)


async def test_patches_of_every_kind_are_sent_as_such(kube: Client) -> None:
    await kube.create(MAPS, config_map("a", x="1"))
    merged = await kube.patch(MAPS, "a", {"data": {"y": "2"}}, "default")
    assert merged["data"] == {"x": "1", "y": "2"}
    json = [{"op": "replace", "path": "/data/x", "value": "3"}]
    assert (await kube.patch(MAPS, "a", json, "default", kind=Patch.JSON))["data"] == {"x": "3", "y": "2"}
    strategic = b'{"data":{"x":null}}'
    assert (await kube.patch(MAPS, "a", strategic, "default", kind=Patch.STRATEGIC, into=Data)).data == {"y": "2"}


async def test_a_dry_run_changes_nothing(kube: Client) -> None:
    assert (await kube.create(MAPS, config_map("a"), dry_run=True))["metadata"]["name"] == "a"
    with pytest.raises(NotFound):
        await kube.get(MAPS, "a", "default")


async def test_subresources_are_addressed(kube: Client) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": spec,
    }
    await kube.create(DEPLOYMENTS, body)
    changed = await kube.patch(DEPLOYMENTS, "d", {"status": {"replicas": 3}}, "default", subresource="status")
    assert changed["status"]["replicas"] == 3
    scale = await kube.get(DEPLOYMENTS, "d", "default", subresource="scale")
    assert scale["kind"] == "Scale"


async def test_lists_follow_pages_and_name_their_items(kube: Client) -> None:
    for number in range(7):
        await kube.create(MAPS, config_map(f"{'ab'[number % 2]}{number}"))
    found = await kube.list(MAPS, "default", limit=2, label_selector="app")
    assert [item["metadata"]["name"] for item in found.items] == ["a0", "a2", "a4", "a6", "b1", "b3", "b5"]
    assert {(item["apiVersion"], item["kind"]) for item in found.items} == {("v1", "ConfigMap")}
    assert int(found.resource_version) > 0
    only = await kube.list(MAPS, label_selector="app=b", into=Partial)
    assert [item.metadata.name for item in only.items] == ["b1", "b3", "b5"]
    one = await kube.list(MAPS, "default", field_selector="metadata.name=a4", into=bytes)
    assert len(one.items) == 1
    assert b'"a4"' in one.items[0]


async def test_a_collection_is_deleted_by_selector(kube: Client) -> None:
    for name in ("a", "b"):
        await kube.create(MAPS, config_map(name))
    await kube.delete_collection(MAPS, "default", label_selector="app=a")
    assert [item["metadata"]["name"] for item in (await kube.list(MAPS, "default", label_selector="app")).items] == [
        "b"
    ]


async def test_a_watch_brings_changes_and_bookmarks(kube: Client) -> None:
    start = (await kube.list(MAPS)).resource_version
    await kube.create(MAPS, config_map("a"))
    await kube.delete(MAPS, "a", "default")
    types = []
    async with kube.watch(MAPS, "default", resource_version=start, label_selector="app", timeout_seconds=1) as events:
        types = [event.type async for event in events]
    assert types[:2] == ["ADDED", "DELETED"]
    assert set(types[2:]) == {"BOOKMARK"}


async def test_invalid_objects_say_which_field(kube: Client) -> None:
    with pytest.raises(Invalid) as caught:
        await kube.create(MAPS, config_map("Not_A_Name"))
    assert caught.value.causes[0]["field"] == "metadata.name"


async def test_discovery_names_kinds_scopes_and_verbs(kube: Client) -> None:
    found = await kube.discover()
    assert found.failures == {}
    assert {MAPS, NAMESPACES, DEPLOYMENTS} <= set(found.resources)
    assert {"get", "list", "watch", "create"} <= found.verbs[MAPS]
    assert await kube.api_resources() == list(found.resources)


async def test_servers_without_aggregated_discovery_are_asked_group_by_group(kube: Client) -> None:
    aggregated = await kube.discover()
    inner = kube.transport.send
    asked: list[str] = []

    async def older(request: Request) -> Response:
        asked.append(request.path)
        if request.path == "/apis/batch/v1":
            raise TransportError("its server is away")
        return await inner(Request(request.method, request.path, headers={"Accept": "application/json"}))

    kube.transport.send = older  # type: ignore[method-assign]
    legacy = await kube.discover()
    assert "/apis/apps/v1" in asked
    assert legacy.failures == {"batch/v1": "its server is away"}
    batch = {found for found in aggregated.resources if found.api_version == "batch/v1"}
    assert batch
    assert set(legacy.resources) == set(aggregated.resources) - batch
    assert all(legacy.verbs[found] == aggregated.verbs[found] for found in legacy.resources)


async def test_version_and_health(kube: Client) -> None:
    assert (await kube.version())["gitVersion"].startswith("v1.")
    assert await kube.healthz() == "ok"


@pytest.mark.parametrize("name", ["..", "a/b", "a%2fb"])
async def test_a_name_cannot_lead_elsewhere(kube: Client, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        await kube.get(MAPS, name, "default")


async def test_bad_and_missing_rights_are_told_apart(memory_server: EmbeddedServer) -> None:
    guest = Client(HttpTransport(connection(memory_server, "guest-token")))
    with pytest.raises(Forbidden):
        await guest.list(MAPS)
    await guest.close()
    nobody = Client(HttpTransport(connection(memory_server, "wrong")))
    with pytest.raises(Unauthorized):
        await nobody.list(MAPS)
    await nobody.close()


async def test_client_certificates_and_kubeconfigs_of_the_server_work(
    memory_server: EmbeddedServer, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(memory_server.kubeconfig("here")))
    kube = Client(HttpTransport(load(str(path))))
    assert (await kube.list(NAMESPACES)).items
    await kube.close()


async def test_a_server_with_another_authority_is_not_trusted(memory_server: EmbeddedServer) -> None:
    other = EmbeddedServer()
    kube = Client(
        HttpTransport(Connection(memory_server.url, ca_data=other.authority.certificate, token="admin-token"))
    )
    with pytest.raises(TransportError, match="certificate verify failed"):
        await kube.list(MAPS)
    await kube.close()


@pytest.mark.parametrize("shard", [None, *(Shard(index, 8) for index in range(8))])
async def test_a_page_token_that_is_too_old_starts_the_list_over(kube: Client, shard: Shard | None) -> None:
    """The second page answers 410 once; the list is then read in one piece, also where the first had nothing of the shard."""
    for number in range(3):
        await kube.create(MAPS, config_map(f"a{number}"))
    inner = kube.transport.list
    failed = False

    async def expired_once(request):  # type: ignore[no-untyped-def]
        nonlocal failed
        if not failed and any(name == "continue" for name, _ in request.query):
            failed = True
            raise Gone(410, "Expired", "too old", {})
        return await inner(request)

    kube.transport.list = expired_once  # type: ignore[method-assign]
    found = await kube.list(MAPS, "default", limit=1, label_selector="app", shard=shard, into=Partial)
    if shard is None:
        assert [item.metadata.name for item in found.items] == ["a0", "a1", "a2"]
    assert failed
