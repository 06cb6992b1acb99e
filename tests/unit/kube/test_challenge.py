"""What a server is asked on every new connection, before anything else is sent over it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from argosy.kube.backoff import Backoff
from argosy.kube.challenge import Challenge
from argosy.kube.config import Connection
from argosy.kube.errors import TransportError, Unauthorized
from argosy.kube.http import HttpTransport
from argosy.kube.transport import Request, Response

PATH = "/who"


class Server:
    """Answers /who as it is told and everything else with 200; `lines` are the request lines by connection."""

    def __init__(self, status: str = "200 OK", body: bytes = b"right", *, closes: bool = False) -> None:
        self.status = status
        self.body = body
        self.closes = closes
        self.lines: list[list[str]] = []
        self.headers = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines: list[str] = []
        self.lines.append(lines)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line = head.split(b"\r\n")[0].decode()
                lines.append(line)
                self.headers += head
                if line.startswith("POST"):
                    await reader.readexactly(2)
                asked = line.split(" ")[1].endswith(PATH)
                status, body = (self.status, self.body) if asked else ("200 OK", b"{}")
                close = b"Connection: close\r\n" if self.closes else b""
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode() + close + b"\r\n" + body)
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


def judge(answer: Response) -> bool:
    if answer.body == b"wrong":
        raise TransportError("another server")
    return answer.status == 200


@asynccontextmanager
async def transport(server: Server, prefix: str = "") -> AsyncIterator[HttpTransport]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}{prefix}"
    made = HttpTransport(
        Connection(url, token="secret"),
        timeout=5.0,
        backoff=Backoff(base=0.01, cap=0.02),
        challenge=Challenge(PATH, judge),
    )
    try:
        yield made
    finally:
        await made.close()
        listening.close()


async def test_each_connection_is_asked_once_and_first():
    server = Server()
    async with transport(server) as made:
        for _ in range(3):
            assert (await made.send(Request("POST", "/things", body=b"{}"))).status == 200
        await asyncio.gather(*(made.send(Request("GET", f"/things/{number}")) for number in range(3)))
    assert len(server.lines) > 1
    for lines in server.lines:
        assert lines[0] == "GET /who HTTP/1.1"
        assert lines.count("GET /who HTTP/1.1") == 1
    assert sum(len(lines) - 1 for lines in server.lines) == 6


async def test_the_question_is_asked_below_the_servers_path_with_its_credentials():
    server = Server()
    async with transport(server, "/k8s/clusters/c-1") as made:
        await made.send(Request("GET", "/healthz"))
    assert server.lines == [["GET /k8s/clusters/c-1/who HTTP/1.1", "GET /k8s/clusters/c-1/healthz HTTP/1.1"]]
    assert server.headers.count(b"Bearer secret") == 2


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_nothing_else_is_sent_to_the_wrong_one(method):
    server = Server(body=b"wrong")
    async with transport(server) as made:
        with pytest.raises(TransportError, match="another server"):
            await made.send(Request(method, "/things", body=b"{}" if method == "POST" else b""))
        with pytest.raises(TransportError, match="another server"):
            async with made.watch(Request("GET", "/things", query=(("watch", "1"),))):
                pass
    assert {line for lines in server.lines for line in lines} == {"GET /who HTTP/1.1"}


async def test_a_refusal_is_the_answer_to_the_request():
    server = Server("401 Unauthorized", b'{"kind": "Status", "code": 401, "reason": "Unauthorized"}')
    async with transport(server) as made:
        assert (await made.send(Request("POST", "/things", body=b"{}"))).status == 401
        with pytest.raises(Unauthorized):
            async with made.watch(Request("GET", "/things", query=(("watch", "1"),))):
                pass
    assert {line for lines in server.lines for line in lines} == {"GET /who HTTP/1.1"}


async def test_a_404_is_never_passed_on():
    """It would say that what was asked for is not there."""
    server = Server("404 Not Found", b"no such page")
    async with transport(server) as made:
        with pytest.raises(TransportError, match="did not say which server it is: it answered 404"):
            await made.send(Request("GET", "/things/1"))
    assert {line for lines in server.lines for line in lines} == {"GET /who HTTP/1.1"}


async def test_a_server_that_keeps_no_connection_is_told_of():
    server = Server(closes=True)
    async with transport(server) as made:
        with pytest.raises(TransportError, match="closes each connection after one answer"):
            await made.send(Request("POST", "/things", body=b"{}", timeout=0.5))
    assert {line for lines in server.lines for line in lines} == {"GET /who HTTP/1.1"}
