"""The HTTP door against clients of all kinds: quick, slow, strange and hostile ones."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from argosy.server.embedded import EmbeddedServer
from argosy.server.http.limits import Limits
from tests.harness.eventually import PATIENCE
from tests.server.conftest import HttpClient, until

MAPS = "/api/v1/namespaces/default/configmaps"
HEAD = "host: x\r\nauthorization: Bearer admin-token\r\n"


@asynccontextmanager
async def raw(server: EmbeddedServer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection whose kernel keeps little for a client that does not read; how much it would is the machine's."""
    trust = ssl.create_default_context(cadata=server.authority.certificate.decode())
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    connected.connect(("127.0.0.1", server.port))
    reader, writer = await asyncio.open_connection(sock=connected, ssl=trust, server_hostname="localhost")
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """One answer off a raw connection."""
    async with asyncio.timeout(10):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return int(first.split()[1]), headers, body


async def test_pipelined_requests_are_answered_in_order(memory_server: EmbeddedServer) -> None:
    async with raw(memory_server) as (reader, writer):
        names = [f"m{number}" for number in range(40)]
        for name in names:
            body = orjson.dumps({"metadata": {"name": name}})
            head = (
                f"POST {MAPS} HTTP/1.1\r\n{HEAD}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
        for name in names:
            code, _, body = await answer(reader)
            assert (code, orjson.loads(body)["metadata"]["name"]) == (201, name)


async def test_chunked_bodies_and_expect_continue(memory_server: EmbeddedServer) -> None:
    async with raw(memory_server) as (reader, writer):
        head = f"POST {MAPS} HTTP/1.1\r\n{HEAD}transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
        writer.write(head.encode())
        assert (await answer(reader))[0] == 100
        for part in (b'{"metadata":', b'{"name":"a"}}'):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        writer.write(b"0\r\n\r\n")
        assert (await answer(reader))[0] == 201


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(memory_server: EmbeddedServer) -> None:
    async with raw(memory_server) as (reader, writer):
        writer.write(f"POST {MAPS} HTTP/1.1\r\n{HEAD}content-length: 4000000\r\n\r\n".encode())
        code, headers, body = await answer(reader)
        assert (code, headers["connection"]) == (413, "close")
        assert orjson.loads(body)["reason"] == "RequestEntityTooLarge"
        assert await reader.read() == b""


async def test_a_chunked_body_that_grows_too_large_is_refused(memory_server: EmbeddedServer) -> None:
    async with raw(memory_server) as (reader, writer):
        writer.write(f"POST {MAPS} HTTP/1.1\r\n{HEAD}transfer-encoding: chunked\r\n\r\n".encode())
        part = b"x" * 500_000
        for _ in range(8):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        assert (await answer(reader))[0] == 413


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"garbage\r\n\r\n", 400),
        (b"\x16\x03\x01\x00\x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", 431),
        (f"GET {MAPS} HTTP/1.1\r\n{HEAD}connection: upgrade\r\nupgrade: SPDY/3.1\r\n\r\n".encode(), 501),
    ],
)
async def test_what_is_not_a_request_gets_an_error_and_the_door(
    memory_server: EmbeddedServer, sent: bytes, code: int
) -> None:
    async with raw(memory_server) as (reader, writer):
        writer.write(sent)
        assert (await answer(reader))[0] == code
        assert await reader.read() == b""
    async with HttpClient(memory_server) as client:
        assert (await client.get("/readyz")).raw == b"ok"


async def test_a_client_that_never_finishes_its_request_is_dropped() -> None:
    server = EmbeddedServer(limits=Limits(receive_seconds=0.2))
    await server.start()
    async with raw(server) as (reader, writer):
        writer.write(b"POST /api HTTP/1.1\r\ncontent-")
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
    await server.stop()


async def test_credentials_are_asked_for(memory_server: EmbeddedServer) -> None:
    for token in ("", "wrong"):
        async with HttpClient(memory_server, token) as client:
            answered = await client.get(MAPS)
            assert (answered.code, answered.body["reason"]) == (401, "Unauthorized")
    async with HttpClient(memory_server, "guest-token") as guest:
        denied = await guest.get(MAPS)
        assert denied.code == 403
        assert denied.body["message"] == (
            'configmaps is forbidden: User "guest" cannot list resource "configmaps" in API group "" in the namespace "default"'
        )
        assert (await guest.get(MAPS, watch="true")).code == 403


async def test_a_client_certificate_names_its_user(memory_server: EmbeddedServer, tmp_path: Any) -> None:
    pair = memory_server.authority.issue("someone", groups=["system:masters"])
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    trust = ssl.create_default_context(cadata=memory_server.authority.certificate.decode())
    trust.load_cert_chain(tmp_path / "pair.pem")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with (
        aiohttp.ClientSession(memory_server.url, connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review) as response,
    ):
        assert (await response.json())["status"]["userInfo"]["username"] == "someone"


async def test_impersonation(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        denied = await client.get(MAPS, {"impersonate-user": "guest"})
        assert (denied.code, 'User "guest" cannot list' in denied.body["message"]) == (403, True)
    async with HttpClient(memory_server, "guest-token") as guest:
        assert (await guest.get(MAPS, {"impersonate-user": "admin"})).code == 403


async def test_large_lists_are_compressed_on_demand(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        for number in range(20):
            await client.post(MAPS, {"metadata": {"name": f"m{number}"}, "data": {"k": "x" * 10_000}})
    async with raw(memory_server) as (reader, writer):
        writer.write(f"GET {MAPS} HTTP/1.1\r\n{HEAD}accept-encoding: gzip\r\n\r\n".encode())
        _, headers, body = await answer(reader)
        assert headers["content-encoding"] == "gzip"
        assert len(orjson.loads(gzip.decompress(body))["items"]) >= 20
        writer.write(f"GET {MAPS} HTTP/1.1\r\n{HEAD}\r\n".encode())
        _, headers, body = await answer(reader)
        assert "content-encoding" not in headers


async def test_head_has_no_body(memory_server: EmbeddedServer) -> None:
    async with raw(memory_server) as (reader, writer):
        writer.write(f"HEAD /version HTTP/1.1\r\n{HEAD}\r\nGET /livez HTTP/1.1\r\n{HEAD}\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert (await answer(reader))[2] == b"ok"


async def test_too_many_requests_at_once_are_put_off(memory_server: EmbeddedServer) -> None:
    memory_server.server.in_flight.writes = memory_server.server.limits.writes
    async with HttpClient(memory_server) as client:
        refused = await client.post(MAPS, {"metadata": {"name": "a"}})
        assert (refused.code, refused.headers["retry-after"]) == (429, "1")
        assert (await client.get(MAPS)).code == 200
        lease = {"metadata": {"name": "l"}, "spec": {}}
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
        assert (await client.put(leases, lease)).code == 201, "leaders stay leaders"


async def test_a_watcher_that_does_not_read_is_ended_and_costs_nobody(memory_server: EmbeddedServer) -> None:
    async with raw(memory_server) as (_, writer), HttpClient(memory_server) as client:
        writer.write(f"GET {MAPS}?watch=true HTTP/1.1\r\n{HEAD}\r\n".encode())
        await client.post(MAPS, {"metadata": {"name": "a"}})
        await until(lambda: client.get("/livez"), lambda _: bool(memory_server.server.watchers))
        for number in range(60):
            changed = await client.patch(f"{MAPS}/a", {"data": {"k": f"{number}" + "x" * 200_000}})
            assert changed.code == 200
        (watcher,) = memory_server.server.watchers
        assert len(watcher._live) > 0, "events wait in the watcher, not in the socket's buffer"


async def test_health_version_and_metrics(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        for path in ("/livez", "/readyz", "/healthz"):
            assert (await client.get(path)).raw == b"ok"
        verbose = (await client.get("/readyz", verbose="")).raw.decode()
        assert "[+]ping ok\n" in verbose
        assert "[+]storage ok\n" in verbose
        assert verbose.endswith("readyz check passed\n")
        assert (await client.get("/livez/ping")).raw == b"ok"
        assert (await client.get("/livez/nonesuch")).code == 404
        memory_server.server.health.add("broken", live=lambda: "it broke")
        failed = await client.get("/livez")
        assert (failed.code, b"[-]broken failed" in failed.raw) == (500, True)
        version = (await client.get("/version")).body
        assert (version["major"], version["gitVersion"].startswith("v1.")) == ("1", True)
        await client.get(MAPS)
        metrics = (await client.get("/metrics")).raw.decode()
        assert 'apiserver_request_total{code="200",group="",resource="configmaps",verb="list"} 1.0' in metrics
        assert (await client.get("/nonesuch")).code == 404


async def test_who_may_do_nothing_adds_nothing_to_the_metrics(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        for number in range(20):
            path = f"/apis/group{number}.example/v1/plural{number}"
            assert (await client.get(path, {"impersonate-user": "guest"})).code == 403
            assert (await client.get(path)).code == 404
        metrics = (await client.get("/metrics")).raw.decode()
        assert 'apiserver_request_total{code="403",group="",resource="",verb="list"} 20.0' in metrics
        assert "plural" not in metrics
