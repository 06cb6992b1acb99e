"""Readers that do not read, and connections nobody uses: bounded over all of them together, and nothing stays held."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import orjson
import pytest

from argosy.kube.client import Client
from argosy.kube.errors import Gone
from argosy.kube.transport import Request, Response
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer
from argosy.server.http.limits import Limits
from argosy.server.storage.base import Compacted
from argosy.server.watchcache.watcher import Watcher
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.federation import CONFIGMAPS
from tests.server.conftest import TOKENS, HttpClient
from tests.server.test_http import HEAD, MAPS, answer, raw

MB = 1024 * 1024
BIG = "x" * 200_000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@asynccontextmanager
async def serving(limits: Limits) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tokens=TOKENS, limits=limits)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def write(client: Client, count: int) -> None:
    for number in range(count):
        body = {"metadata": {"name": "big", "namespace": "default"}, "data": {"k": BIG, "n": str(number)}}
        if number:
            await client.update(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **body})
        else:
            await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **body})


async def watch_without_reading(
    stack: AsyncExitStack, server: EmbeddedServer, table: bool = False
) -> asyncio.StreamReader:
    reader, writer = await stack.enter_async_context(raw(server))
    accept = f"accept: {TABLE}\r\n" if table else ""
    writer.write(f"GET {MAPS}?watch=true HTTP/1.1\r\n{HEAD}{accept}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return reader


async def test_what_waits_for_all_readers_together_is_bounded() -> None:
    async with serving(Limits(watch_bytes=4 * MB)) as server, AsyncExitStack() as stack:
        for number in range(20):
            await watch_without_reading(stack, server, table=number % 2 == 0)
        buffers = server.server.store.buffers
        most = 0
        await write(server.client(), 1)
        for number in range(80):
            await server.client().patch(CONFIGMAPS, "big", {"data": {"n": f"new-{number}"}}, "default")
            await asyncio.sleep(0)
            most = max(most, buffers.held)
        assert most < 8 * MB, "over the limit for no longer than a turn of the loop"
        assert server.server.metrics.registry.get_sample_value("apiserver_watches_cut_off_total")
        await eventually(lambda: buffers.held <= 4 * MB)


async def test_a_reader_that_reads_is_not_cut_off_for_those_who_do_not() -> None:
    async with (
        serving(Limits(watch_bytes=4 * MB)) as server,
        HttpClient(server) as client,
        AsyncExitStack() as stack,
        client.stream(MAPS) as stream,
    ):
        for _ in range(10):
            await watch_without_reading(stack, server)
        seen: list[str] = []

        async def read() -> None:
            rest = b""
            async for data in stream.content.iter_any():
                *lines, rest = (rest + data).split(b"\n")
                seen.extend(orjson.loads(line)["object"]["data"].get("n", "") for line in lines)

        reading = asyncio.create_task(read())
        for number in range(60):
            body = {"metadata": {"name": "big", "namespace": "default"}, "data": {"k": BIG, "n": str(number)}}
            await (client.patch(f"{MAPS}/big", body) if number else client.post(MAPS, body))
        await eventually(lambda: seen[-1:] == ["59"])
        assert server.server.metrics.registry.get_sample_value("apiserver_watches_cut_off_total")
        assert [number for number in seen if number] == [str(number) for number in range(60)]
        assert not reading.done()
        reading.cancel()
        await asyncio.wait({reading})


async def test_nothing_stays_held_for_readers_that_left() -> None:
    async with serving(Limits()) as server:
        buffers = server.server.store.buffers
        async with AsyncExitStack() as stack:
            for number in range(6):
                await watch_without_reading(stack, server, table=number % 2 == 0)
            await write(server.client(), 1)
            while buffers.held < 4 * MB:  # The kernel's buffers take some of it first.
                await write_more(server.client(), 10)
        await eventually(lambda: not server.server.watchers)
        assert (buffers.held, buffers.holders) == (0, set())


async def test_a_reader_in_this_process_resumes_when_it_was_cut_off() -> None:
    async with serving(Limits(watch_bytes=1 * MB)) as server:
        client = server.client()
        await write(client, 1)
        version = (await client.get(CONFIGMAPS, "big", "default"))["metadata"]["resourceVersion"]
        async with client.watch(CONFIGMAPS, "default", resource_version=version) as events:
            await write_more(client, 10)
            seen = [event async for event in events]
        assert len(seen) < 10, "it was not read, and it was ended"
        async with client.watch(CONFIGMAPS, "default", resource_version=version) as events:
            async for event in events:
                if orjson.loads(event.object)["data"]["n"] == "9":
                    break


async def write_more(client: Client, count: int) -> None:
    for number in range(count):
        await client.patch(CONFIGMAPS, "big", {"data": {"n": str(number), "k": BIG}}, "default")


async def test_one_large_event_is_not_copied_for_every_reader() -> None:
    """Three megabytes for each of many would be the budget of all; they share it."""
    async with serving(Limits(watch_bytes=32 * MB)) as server, AsyncExitStack() as stack:
        for _ in range(30):
            await watch_without_reading(stack, server)
        body = {"metadata": {"name": "big"}, "data": {"k": "x" * (900 * 1024)}}
        async with HttpClient(server) as client:
            assert (await client.post(MAPS, body)).code == 201
            assert (await client.patch(f"{MAPS}/big", {"data": {"n": "1"}})).code == 200
        buffers = server.server.store.buffers
        await asyncio.sleep(0.2)
        assert len(server.server.watchers) == 30
        assert buffers.held < 16 * MB


async def test_an_idle_connection_makes_room_for_a_new_one() -> None:
    async with serving(Limits(connections=4)) as server, AsyncExitStack() as stack:
        connections = []
        for _ in range(4):
            reader, writer = await stack.enter_async_context(raw(server))
            writer.write(f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode())
            assert (await answer(reader))[0] == 200
            connections.append((reader, writer))
        # The first is used again: the second has been idle for longest then.
        reader, writer = connections[0]
        writer.write(f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert (await answer(reader))[0] == 200
        new_reader, new_writer = await stack.enter_async_context(raw(server))
        new_writer.write(f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert (await answer(new_reader))[0] == 200
        assert await read_end(connections[1][0]) == b""
        writer.write(f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert (await answer(reader))[0] == 200


async def read_end(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""


async def test_where_none_is_idle_a_new_connection_is_told_to_come_back() -> None:
    async with serving(Limits(connections=2)) as server, AsyncExitStack() as stack:
        for _ in range(2):
            await watch_without_reading(stack, server)
        reader, _ = await stack.enter_async_context(raw(server))
        code, headers, body = await answer(reader)
        assert (code, headers["retry-after"], headers["connection"]) == (429, "1", "close")
        assert orjson.loads(body)["message"] == "too many connections are open, please try again later"
        assert await read_end(reader) == b""
        value = server.server.metrics.registry.get_sample_value
        assert value("apiserver_connections_refused_total", {"which": "new"}) == 1
        await eventually(lambda: value("apiserver_connections") == 2)


async def test_nothing_is_kept_of_a_client_that_left_before_its_answer() -> None:
    async with serving(Limits()) as server:
        asked, answered = asyncio.Event(), asyncio.Event()

        async def slow(request: Request, user: User) -> Response | None:
            if request.path != "/slow":
                return None
            asked.set()
            await answered.wait()
            return Response(200, {}, b"")

        server.server.responders.insert(0, slow)
        listener = server._listener
        assert listener is not None
        async with raw(server) as (_, writer):
            writer.write(f"GET /slow HTTP/1.1\r\n{HEAD}\r\n".encode())
            await asked.wait()
            connection = weakref.ref(next(iter(listener.connections)))
        await eventually(lambda: not listener.connections)
        answered.set()
        await eventually(lambda: connection() is None)


async def test_errors_leave_no_circles_behind() -> None:
    """A server looks for circles rarely, and an error in one holds its request."""
    async with serving(Limits()) as server, HttpClient(server) as client:
        named = {"metadata": {"name": "there"}}
        assert (await client.post(MAPS, named)).code == 201
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(3):
                assert (await client.post(MAPS, named)).code == 409
                assert (await client.post(MAPS, {**named, "data": ["x" * 500_000]})).code == 400
                assert (await client.get(MAPS, headers={"impersonate-group": "x"})).code == 400
            async with client.stream(MAPS):
                pass
            await eventually(lambda: not server.server.watchers)
            gc.collect()
            assert not [found for found in gc.garbage if isinstance(found, Exception | Watcher)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /api HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /api HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ],
    ids=["header", "path", "body", "version"],
)
async def test_strangers_leave_nothing_behind(request_: bytes) -> None:
    """Who may not even ask must not fill the memory with what was refused."""
    async with serving(Limits()) as server:
        listener = server._listener
        assert listener is not None
        gc.disable()
        try:
            async with raw(server) as (reader, writer):
                writer.write(request_[:4])
                await eventually(lambda: listener.connections)
                connection = weakref.ref(next(iter(listener.connections)))
                writer.write(request_[4:])
                assert b" 4" in await reader.read()
            await eventually(lambda: connection() is None)
        finally:
            gc.enable()


async def test_answers_that_nobody_reads_are_bounded() -> None:
    async with serving(Limits(watch_bytes=4 * MB)) as server, AsyncExitStack() as stack:
        client = server.client()
        for number in range(8):
            data = {"k": "x" * 900_000}
            body = {"metadata": {"name": f"big-{number}", "namespace": "default"}, "data": data}
            await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **body})
        buffers = server.server.store.buffers
        for _ in range(12):
            _, writer = await stack.enter_async_context(raw(server))
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(f"GET {MAPS} HTTP/1.1\r\n{HEAD}\r\n".encode())
        value = server.server.metrics.registry.get_sample_value
        await eventually(lambda: value("apiserver_watches_cut_off_total"))
        await eventually(lambda: buffers.held <= 4 * MB)
        async with HttpClient(server) as other:
            assert len((await other.get(MAPS)).body["items"]) >= 8


async def test_what_clients_have_sent_and_not_finished_is_bounded() -> None:
    async with serving(Limits(received_bytes=4 * MB)) as server, AsyncExitStack() as stack:
        for _ in range(6):
            _, writer = await stack.enter_async_context(raw(server))
            head = f"POST {MAPS} HTTP/1.1\r\n{HEAD}content-type: application/json\r\ncontent-length: {MB + 1}\r\n\r\n"
            writer.write(head.encode() + b"x" * MB)
        listener = server._listener
        assert listener is not None
        value = server.server.metrics.registry.get_sample_value
        await eventually(lambda: value("apiserver_connections_refused_total", {"which": "sending"}))
        await eventually(lambda: 0 < listener.received.held <= 4 * MB)
        async with HttpClient(server) as client:
            assert (await client.post(MAPS, {"metadata": {"name": "other"}})).code == 201
    assert listener.received.held == 0


async def test_a_body_in_crumbs_is_one_body() -> None:
    async with serving(Limits()) as server, raw(server) as (reader, writer):
        body = orjson.dumps({"metadata": {"name": "crumbs"}, "data": {"k": "x" * 5000}})
        head = f"POST {MAPS} HTTP/1.1\r\n{HEAD}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        crumbs = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        writer.write(head.encode() + crumbs + b"0\r\n\r\n")
        code, _, answered = await answer(reader)
        assert (code, orjson.loads(answered)["data"]) == (201, {"k": "x" * 5000})


async def test_who_leaves_a_selection_is_made_once_for_all_watches() -> None:
    async with serving(Limits()) as server, AsyncExitStack() as stack:
        client = server.client()
        body = {"metadata": {"name": "big", "namespace": "default", "labels": {"a": "b"}}, "data": {"k": "x" * 900_000}}
        await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **body})
        watches = []
        for number in range(20):
            reader, writer = await stack.enter_async_context(raw(server))
            accept = f"accept: {TABLE}\r\n" if number % 2 else ""
            target = f"{MAPS}?watch=true&labelSelector=a%3Db&resourceVersion={server.server.store.version}"
            writer.write(f"GET {target} HTTP/1.1\r\n{HEAD}{accept}\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            watches.append(reader)
        buffers = server.server.store.buffers
        before = buffers.held
        changed = await client.patch(CONFIGMAPS, "big", {"metadata": {"labels": {"a": "c"}}}, "default")
        assert buffers.held - before < 2 * MB, "the event, and nothing for each of twenty"
        for number, reader in enumerate(watches):
            event = orjson.loads(await one_event(reader))
            assert event["type"] == "DELETED"
            told = event["object"]["rows"][0]["object"]["metadata"] if number % 2 else event["object"]["metadata"]
            assert told["resourceVersion"] == changed["metadata"]["resourceVersion"]
            assert told["labels"] == {"a": "b"}


async def one_event(reader: asyncio.StreamReader) -> bytes:
    """The first line of a chunked stream."""
    line = b""
    async with asyncio.timeout(PATIENCE):
        while not line.endswith(b"\n"):
            size = int(await reader.readline(), 16)
            line += await reader.readexactly(size)
            await reader.readline()
    return line.split(b"\n")[0]


async def test_watches_with_many_requirements_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.server.verbs.watch.MAX_REQUIREMENTS", 100)
    async with serving(Limits()) as server, HttpClient(server) as client:
        many = ",".join(f"!k{number}" for number in range(60))
        async with client.stream(MAPS, labelSelector=many) as stream:
            assert stream.status == 200
            assert (await client.get(MAPS, labelSelector=many, watch="true")).code == 429
            async with client.stream(MAPS, labelSelector="!k1") as other:
                assert other.status == 200
        await eventually(lambda: not server.server.watchers)
        async with client.stream(MAPS, labelSelector=many) as stream:
            assert stream.status == 200


async def test_history_is_not_read_beyond_what_a_watch_may_resume_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.server.watchcache.store.WINDOW", 2)
    monkeypatch.setattr("argosy.server.watchcache.store.REPLAY_BYTES", 1 * MB)
    server = EmbeddedServer(tmp_path / "plane", tokens=TOKENS)
    await server.start()
    try:
        client = server.client()
        await write(client, 1)
        version = (await client.get(CONFIGMAPS, "big", "default"))["metadata"]["resourceVersion"]
        await write_more(client, 20)
        storage = server.server.store.storage
        with pytest.raises(Compacted):
            await storage.history("core/configmaps/", int(version), storage.version, size=1 * MB)
        with pytest.raises(Compacted):
            await storage.history("core/configmaps/", int(version), storage.version, most=18)
        assert len(await storage.history("core/configmaps/", int(version), storage.version, most=19)) == 19
        async with client.watch(CONFIGMAPS, "default", resource_version=version) as events:
            with pytest.raises(Gone):
                await anext(aiter(events))
    finally:
        await server.stop()
