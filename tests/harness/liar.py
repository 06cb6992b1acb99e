"""A member that lies: an HTTPS server in front of an embedded one, which answers truthfully except where it is told not to.

    async with Liar(server) as liar:
        liar.url  # what the control plane is given instead of the member's own
        with liar.lying(r"GET /api/v1/nodes", alters(lambda answer: answer | {"items": None})):
            liar.cut()  # every connection is reset, so that lists and watches come again
            await eventually(lambda: liar.told >= 2)

While it lies about a list, watches of the same are answered with 410, so that somebody lists. Requests are named `METHOD path`,
watches `WATCH path`. It speaks HTTP by hand, so that it can break every rule of it.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import aiohttp
import orjson

from argosy.kube.config import Connection
from argosy.kube.tls import client_context
from argosy.server.auth.certificates import server_context
from argosy.server.embedded import EmbeddedServer

__all__ = ["Asked", "Liar", "Tell", "alters", "chunk", "drips", "head", "pours", "raw", "says", "streams"]

#: Passed on to the member; the rest is about one connection, or who asks.
_FORWARDED = ("accept", "content-type")
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'


class Asked(NamedTuple):
    """One request, and the true answer to it for whoever wants to change it."""

    name: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    truth: Callable[[], Awaitable[tuple[int, bytes]]]


#: The bytes of a lie. The connection is closed when they end.
Tell = Callable[[Asked], AsyncIterator[bytes]]


class Liar:
    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self._about: re.Pattern[str] | None = None
        self._tell: Tell | None = None
        #: How often the present lie was told, and when, by the event loop's clock; and all requests that came.
        self.told = 0
        self.times: list[float] = []
        self.asked: list[str] = []
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Liar":
        authority = self._server.authority
        pair = authority.client_pair("admin", "admin", ["system:masters"])
        self._ssl = client_context(Connection(server="", ca_data=authority.certificate), pair.certificate, pair.key)
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        context = server_context(authority.server_pair(["127.0.0.1"]), authority.certificate)
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    @contextlib.contextmanager
    def lying(self, about: str, tell: Tell) -> Iterator[None]:
        self._about, self._tell, self.told, self.times = re.compile(about), tell, 0, []
        try:
            yield
        finally:
            self._about = None
            self.cut()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, aiohttp.ClientError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether another one may follow on the connection."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        url = urlsplit(target)
        query = parse_qs(url.query, keep_blank_values=True)
        watch = query.get("watch") == ["true"]
        name = f"{'WATCH' if watch else method} {url.path}"
        self.asked.append(name)

        def ask() -> Any:
            sent = {key: headers[key] for key in _FORWARDED if key in headers}
            return self._session.request(method, self._server.url + target, data=body, headers=sent, ssl=self._ssl)

        async def truth() -> tuple[int, bytes]:
            async with ask() as response:
                return response.status, await response.read()

        if watch and self._about is not None and self._about.fullmatch(f"GET {url.path}"):
            # Nobody lists what he can go on watching.
            writer.write(STREAM + chunk(_EXPIRED) + chunk(b""))
            await writer.drain()
            return True
        if self._about is not None and self._tell is not None and self._about.fullmatch(name):
            self.told += 1
            self.times.append(asyncio.get_running_loop().time())
            async for part in self._tell(Asked(name, query, headers, truth)):
                if writer.is_closing():
                    break
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)  # whoever takes it all at once would keep everybody else from running
            return False
        if not watch:
            status, answer = await truth()
            writer.write(head(status, len(answer)) + answer)
            await writer.drain()
            return True
        async with ask() as response:
            writer.write(STREAM.replace(b"200", str(response.status).encode(), 1))
            async for part in response.content.iter_any():
                writer.write(chunk(part))
                await writer.drain()
        writer.write(chunk(b""))
        await writer.drain()
        return True


def head(status: int, length: int, headers: Mapping[str, str] = {}) -> bytes:
    fields = {"Content-Type": "application/json", "Content-Length": str(length), **headers}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def says(body: Any, status: int = 200, headers: Mapping[str, str] = {}) -> Tell:
    """One answer, whatever was asked; a body that is not bytes is sent as JSON."""
    encoded = body if isinstance(body, bytes) else orjson.dumps(body)

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        yield head(status, len(encoded), headers) + encoded

    return tell


def raw(*parts: bytes) -> Tell:
    """These bytes in place of an answer."""

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return tell


def alters(change: Callable[[Any], Any]) -> Tell:
    """The true answer, changed."""

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        status, body = await asked.truth()
        changed = change(orjson.loads(body))
        encoded = changed if isinstance(changed, bytes) else orjson.dumps(changed)
        yield head(status, len(encoded)) + encoded

    return tell


def streams(*lines: bytes, ends: bool = False) -> Tell:
    """A watch that brings these lines, and then nothing more."""

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        yield STREAM
        for line in lines:
            yield chunk(line)
        if ends:
            yield chunk(b"")
        else:
            await asyncio.Event().wait()

    return tell


def pours(first: bytes, part: bytes) -> Tell:
    """An answer without an end, as fast as it is taken."""

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        yield first
        while True:
            yield part

    return tell


def drips(first: bytes, part: bytes, every: float = 0.05) -> Tell:
    """An answer without an end, a few bytes at a time."""

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        yield first
        while True:
            yield part
            await asyncio.sleep(every)

    return tell
