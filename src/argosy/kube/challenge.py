"""Challenge: a question to the server on every new connection, before anything else is sent over it.

An address is no identity: the next connection may lead to another server, with a valid certificate, that accepts the same
credentials. So the question is sent over the very connection that is about to be used.

It is a GET with the credentials of the request that opens the connection. If the server refuses it (401, 403, 429, a server
error), that is the response to the request as well, which is not sent.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from argosy.kube.transport import Response

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest, ConnectionKey
    from aiohttp.tracing import Trace

__all__ = ["Challenge", "Challenger", "NotAnswered"]

#: Seconds; the question is small.
_PATIENCE = 10.0
_LONGEST = 1024 * 1024
_REFUSALS = frozenset({401, 403, 429})


class Challenge(NamedTuple):
    """The path of the question, and a function that judges the answer: whether it is one. If it raises, the connection ends."""

    path: str
    judge: Callable[[Response], bool]


class NotAnswered(Exception):
    """The server did not identify itself, and the connection was closed."""

    def __init__(self, answer: Response) -> None:
        super().__init__(f"it did not say which server it is: it answered {answer.status}")
        self.answer = answer

    @property
    def refused(self) -> bool:
        """Whether the server would refuse any other request, too."""
        return self.answer.status in _REFUSALS or self.answer.status >= 500


class Challenger(aiohttp.TCPConnector):
    """A pool in which every connection has answered the challenge."""

    def __init__(
        self, server: str, challenge: Challenge, *, resolver: AbstractResolver | None, keepalive_timeout: float
    ) -> None:
        super().__init__(limit=0, resolver=resolver, keepalive_timeout=keepalive_timeout)
        self._url = URL(server + challenge.path)
        self._judge = challenge.judge

    async def _create_connection(
        self, req: "ClientRequest", traces: list["Trace"], timeout: "aiohttp.ClientTimeout"
    ) -> "ResponseHandler":
        protocol = await super()._create_connection(req, traces, timeout)
        try:
            answer = await _ask(protocol, req, self._url)
            if not self._judge(answer):
                raise NotAnswered(answer)
            if not protocol.is_connected():
                raise aiohttp.ServerDisconnectedError("the server closes each connection after one answer")
        except BaseException:
            protocol.close()
            raise
        return protocol


async def _ask(protocol: "ResponseHandler", request: "ClientRequest", url: URL) -> Response:
    """One GET over an existing connection."""
    given = {name: request.headers[name] for name in ("Authorization", "User-Agent") if name in request.headers}
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", **given}
    async with (
        asyncio.timeout(_PATIENCE),
        aiohttp.ClientSession(
            connector=_Loan(protocol), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        ) as session,
        session.get(url, headers=headers, proxy=request.proxy, allow_redirects=False) as response,
    ):
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > _LONGEST:
                raise aiohttp.ClientPayloadError("the answer is too long")
        return Response(response.status, {name.lower(): value for name, value in response.headers.items()}, body)


class _Loan(aiohttp.BaseConnector):
    """A connector for one request over a given connection, which it returns open."""

    def __init__(self, protocol: "ResponseHandler") -> None:
        super().__init__()
        self._protocol = protocol

    async def _create_connection(
        self, req: "ClientRequest", traces: list["Trace"], timeout: "aiohttp.ClientTimeout"
    ) -> "ResponseHandler":
        return self._protocol

    def _release(self, key: "ConnectionKey", protocol: "ResponseHandler", *, should_close: bool = False) -> None:
        self._release_acquired(key, protocol)
        if should_close or protocol.should_close:
            protocol.close()
