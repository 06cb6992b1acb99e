"""Wire: a request's bytes sent as they are, and what comes back."""

import asyncio
import ssl
from typing import Any, NamedTuple

import httptools

from tests.fuzz.requests import Sent

__all__ = ["Answer", "Wire"]

#: A request that is whole is answered within this.
PATIENCE = 60.0
#: Bytes of an answer that are kept.
_KEPT = 100_000


class Answer(NamedTuple):
    #: 0 where the connection ended without one.
    status: int
    body: bytes
    seconds: float


class _Parsed:
    """What httptools finds; answers of no use to anybody (100 Continue) are passed over."""

    def __init__(self) -> None:
        self.body = b""
        self.complete = False
        self.keep_alive = False
        self.status = 0

    def on_body(self, body: bytes) -> None:
        if len(self.body) < _KEPT:
            self.body += body

    def on_message_complete(self) -> None:
        self.complete = True


class Wire:
    """One client's connections, one after the other, with an administrator's certificate."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port = port
        self._context = context
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: Sent) -> Answer:
        """Raises TimeoutError where no answer comes."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        reader, writer = await self._connected()
        patience = PATIENCE if request.leaves is None else request.leaves
        parsed = _Parsed()
        try:
            async with asyncio.timeout(patience):
                writer.write(request.raw or _bytes_of(request))
                await writer.drain()
                await _receive(reader, parsed, request.method == "HEAD")
        except TimeoutError:
            await self.close()
            if request.leaves is None:
                raise
        except (OSError, httptools.HttpParserError, asyncio.IncompleteReadError):
            await self.close()
        if not parsed.complete or not parsed.keep_alive or request.raw:
            await self.close()
        return Answer(parsed.status, parsed.body, loop.time() - started)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._open is None:
            self._open = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=self._context, server_hostname="localhost", limit=2**20
            )
        return self._open

    async def close(self) -> None:
        if self._open is not None:
            self._open[1].transport.abort()
            self._open = None


async def _receive(reader: asyncio.StreamReader, parsed: _Parsed, headless: bool) -> None:
    while not parsed.status:
        parser: Any = httptools.HttpResponseParser(parsed)
        parser.feed_data(await reader.readuntil(b"\r\n\r\n"))
        parsed.status, parsed.keep_alive = parser.get_status_code(), parser.should_keep_alive()
        if parsed.status == 100:
            parsed.status, parsed.complete = 0, False
    if headless:
        parsed.complete = True
    while not parsed.complete:
        data = await reader.read(2**18)
        if not data:
            return
        parser.feed_data(data)


def _bytes_of(request: Sent) -> bytes:
    fields = [f"{request.method} {request.target} HTTP/1.1"]
    if not any(name == "Host" for name, _ in request.headers):
        fields.append("Host: localhost")
    fields += [f"{name}: {value}" for name, value in request.headers]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        fields.append(f"Content-Length: {len(request.body)}")
    return "\r\n".join([*fields, "", ""]).encode("utf-8", "replace") + request.body
