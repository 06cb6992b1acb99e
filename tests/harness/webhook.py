"""A webhook plugin for tests, in this process (`WebhookServer`) or in another one (`WebhookProcess`).

It filters, scores and selects as it was told, and misbehaves in the ways of MISBEHAVIOURS when told that. What it does is changed
and what it was asked is read over HTTP, so that both kinds are used alike.
"""

import asyncio
import contextlib
import json
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

#: Ways not to answer as agreed; `well` is none of them.
MISBEHAVIOURS = (
    "hang",
    "status",
    "garbage",
    "not-text",
    "not-an-object",
    "wrong-types",
    "unknown-names",
    "endless",
    "crumbs",
    "cut",
    "redirect",
    "refuse",
    "compressed",
)


class WebhookServer:
    """`url` once started. `behave` sets what it does from now on."""

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0):
        self._tls = tls
        self._port = port
        self.url = ""
        self.behaviour: dict[str, Any] = {"mode": "well"}
        self.calls: Counter[str] = Counter()
        self.connections: set[Any] = set()
        self.asked: list[dict[str, Any]] = []
        self._freed = asyncio.Event()

    async def start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/behave", self._behave)
        app.router.add_get("/calls", self._told)
        for phase in ("filter", "score", "select"):
            app.router.add_post(f"/{phase}", self._serve)
            app.router.add_post(f"/v2/{phase}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self._port = site._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        self._freed.set()
        await self._runner.cleanup()

    async def _behave(self, request: web.Request) -> web.Response:
        self.behaviour = await request.json()
        self._freed.set()
        self._freed = asyncio.Event()
        return web.json_response({})

    async def _told(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"calls": self.calls, "connections": len(self.connections), "last": self.asked[-1] if self.asked else None}
        )

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        phase = request.path.rpartition("/")[2]
        self.calls[phase] += 1
        self.calls[request.path] += 1
        self.connections.add(request.transport)
        body = await request.json()
        self.asked = [*self.asked[-9:], {**body, "headers": dict(request.headers), "path": request.path}]
        mode = self.behaviour["mode"]
        if mode != "well" and phase in self.behaviour.get("phases", (phase,)):
            return await self._misbehave(mode, request, phase)
        await asyncio.sleep(self.behaviour.get("delay", 0))
        padding = {"padding": "x" * self.behaviour.get("padding", 0)}
        return web.json_response({**self._answer(phase, body), **padding})

    def _answer(self, phase: str, body: dict[str, Any]) -> dict[str, Any]:
        if phase == "select":
            scored = sorted(
                body["clusterScores"], key=lambda each: (-each["score"], each["cluster"]["metadata"]["name"])
            )
            names = [each["cluster"]["metadata"]["name"] for each in scored]
            return {"selectedClusterNames": names[: self.behaviour.get("most", len(names))]}
        if "clusters" in body:
            each = [{"name": _name(cluster), **self._verdict(phase, _name(cluster))} for cluster in body["clusters"]]
            return {"clusters": each}
        return self._verdict(phase, _name(body["cluster"]))

    def _verdict(self, phase: str, cluster: str) -> dict[str, Any]:
        if cluster in self.behaviour.get("unsure", ()):
            return {"error": f"no {phase} of {cluster}"}
        if phase == "filter":
            rejected = self.behaviour.get("rejected", ())
            return {"selected": not any(part in cluster for part in rejected)}
        return {"score": self.behaviour.get("scores", {}).get(cluster, 0)}

    async def _misbehave(self, mode: str, request: web.Request, phase: str) -> web.StreamResponse:
        if mode == "hang":
            await self._freed.wait()
        if mode == "cut":
            assert request.transport is not None
            request.transport.abort()
        if mode == "endless":
            response = web.StreamResponse()
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                while True:
                    await response.write(b'{"selected": ' + b" " * 65536)
            return response
        if mode == "crumbs":
            transport = request.transport
            assert transport is not None
            transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while not transport.is_closing():
                transport.write(b"1\r\n \r\n" * 40_000)
                await asyncio.sleep(0.01)
        if mode == "redirect":
            return web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"})
        if mode == "compressed":
            return web.Response(body=b"\x1f\x8b" + b"\x00" * 64, headers={"Content-Encoding": "gzip"})
        bodies: dict[str, tuple[int, bytes]] = {
            "hang": (503, b"too late"),
            "cut": (200, b""),
            "crumbs": (200, b""),
            "status": (500, b"out of\norder \x07" + b"x" * 4096),
            "garbage": (200, b"<html>"),
            "not-text": (200, b'{"error": "\xff\xfe"}'),
            "not-an-object": (200, b"[" * 50_000),
            "wrong-types": (200, b'{"selected": "yes", "score": "high", "selectedClusterNames": 7, "clusters": {}}'),
            "unknown-names": (
                200,
                b'{"selectedClusterNames": ["nowhere"], "clusters": [{"name": "nowhere"}], "score": 99}',
            ),
            "refuse": (200, json.dumps({"error": f"no {phase} today"}).encode()),
        }
        status, body = bodies[mode]
        return web.Response(status=status, body=body, content_type="application/json")


class WebhookProcess:
    """The same in a process of its own, which can be killed and come back at the same address."""

    def __init__(self) -> None:
        self.url = ""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        port = self.url.rpartition(":")[2] or "0"
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.harness.webhook", port, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.url = (await self._process.stdout.readline()).decode().strip()

    async def kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def behave(self, mode: str = "well", **how: Any) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/behave", json={"mode": mode, **how}) as answer,
        ):
            assert answer.status == 200

    async def told(self) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/calls") as answer:
            told: dict[str, Any] = await answer.json()
            return told

    async def calls(self) -> dict[str, int]:
        calls: dict[str, int] = (await self.told())["calls"]
        return calls


@contextlib.asynccontextmanager
async def webhook_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[WebhookServer]:
    server = WebhookServer(tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def webhook_process() -> AsyncIterator[WebhookProcess]:
    process = WebhookProcess()
    await process.start()
    try:
        yield process
    finally:
        await process.kill()


def _name(cluster: dict[str, Any]) -> str:
    name: str = cluster["metadata"]["name"]
    return name


async def _main(port: int) -> None:
    server = WebhookServer(port=port)
    await server.start()
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
