"""A router on loopback in front of two API servers, as load balancers are that look into requests: each goes where it says.

It ends TLS itself, with a certificate of the servers' authority, so that clients need a token.
"""

import re
import ssl
import tempfile
from pathlib import Path

import aiohttp
from aiohttp import web

from argosy.server.embedded import EmbeddedServer

__all__ = ["Router"]

_HOP = ("host", "content-length", "transfer-encoding", "connection")


class Router:
    def __init__(self, server: EmbeddedServer) -> None:
        self._authority = server.authority
        self.target = server
        #: From the first request on that matches "METHOD /path", everything goes there.
        self._turn: tuple[re.Pattern[str], EmbeddedServer] | None = None
        self.url = ""

    async def __aenter__(self) -> "Router":
        pair = self._authority.server_pair(("127.0.0.1",))
        served, trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        with tempfile.TemporaryDirectory() as folder:
            both = Path(folder) / "pair.pem"
            both.write_bytes(pair.certificate + b"\n" + pair.key)
            served.load_cert_chain(both)
        trusted.load_verify_locations(cadata=self._authority.certificate.decode())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted, limit=0), auto_decompress=False
        )
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=served)
        await site.start()
        assert site._server is not None
        self.url = f"https://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._runner.cleanup()

    def turn_at(self, request: str, target: EmbeddedServer) -> None:
        self._turn = re.compile(request), target

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if self._turn is not None and self._turn[0].fullmatch(f"{request.method} {request.path}"):
            self.target, self._turn = self._turn[1], None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        url = f"{self.target.url}{request.raw_path}"
        body = await request.read()
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
