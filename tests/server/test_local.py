"""The in-process transport keeps HTTP's semantics and hands out the store's own bytes."""

import asyncio

import orjson
import pytest

from argosy.kube.errors import ApiError, Forbidden, Gone, TransportError
from argosy.kube.transport import Request
from argosy.server.auth.identity import User
from argosy.server.embedded import ADMIN, EmbeddedServer
from argosy.server.local import LocalTransport

MAPS = "/api/v1/namespaces/default/configmaps"


def post(name: str) -> Request:
    body = orjson.dumps({"metadata": {"name": name}})
    return Request("POST", MAPS, headers={"content-type": "application/json"}, body=body)


async def test_lists_and_watches_share_the_stored_bytes(memory_server: EmbeddedServer) -> None:
    transport = LocalTransport(memory_server.server, ADMIN)
    assert (await transport.send(post("a"))).status == 201
    stored = memory_server.server.store.get("core/configmaps/default/a")
    assert stored is not None
    page = await transport.list(Request("GET", MAPS, (("fieldSelector", "metadata.name=a"),)))
    assert page.items[0] is stored.value
    query = (("watch", "true"), ("fieldSelector", "metadata.name=a"))
    async with transport.watch(Request("GET", MAPS, query)) as events:
        event = await anext(events)
        assert event.type == "ADDED"
        assert event.object is stored.value


async def test_a_watch_sees_writes_and_ends_with_the_server(memory_server: EmbeddedServer) -> None:
    transport = LocalTransport(memory_server.server, ADMIN)
    version = (await transport.list(Request("GET", MAPS))).resource_version
    query = (("watch", "true"), ("resourceVersion", version))
    async with transport.watch(Request("GET", MAPS, query)) as events:
        for name in "abc":
            await transport.send(post(name))
        async with asyncio.timeout(10):
            seen = [orjson.loads((await anext(events)).object)["metadata"]["name"] for _ in range(3)]
            assert seen == ["a", "b", "c"]
            await memory_server.stop()
            assert [event async for event in events] == []


async def test_errors_are_those_of_http(memory_server: EmbeddedServer) -> None:
    transport = LocalTransport(memory_server.server, ADMIN)
    await transport.send(post("a"))
    assert (await transport.send(post("a"))).status == 409
    with pytest.raises(ApiError) as unserved:
        await transport.list(Request("GET", "/apis/none/v1/things"))
    assert unserved.value.code == 404
    first = (await transport.list(Request("GET", MAPS))).resource_version
    await transport.send(post("b"))
    await memory_server.server.store.compact(memory_server.server.store.version)
    query = (("watch", "true"), ("resourceVersion", first))
    async with transport.watch(Request("GET", MAPS, query)) as events:
        with pytest.raises(Gone):
            await anext(events)


async def test_authorisation_applies(memory_server: EmbeddedServer) -> None:
    guest = LocalTransport(memory_server.server, User("guest"))
    assert (await guest.send(post("a"))).status == 403
    with pytest.raises(Forbidden):
        await guest.list(Request("GET", MAPS))
    with pytest.raises(Forbidden):
        async with guest.watch(Request("GET", MAPS, (("watch", "true"),))):
            pass


async def test_a_closed_transport_says_so(memory_server: EmbeddedServer) -> None:
    transport = LocalTransport(memory_server.server, ADMIN)
    await transport.close()
    with pytest.raises(TransportError):
        await transport.send(post("a"))
