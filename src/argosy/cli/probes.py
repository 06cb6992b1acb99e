"""/livez, /readyz and /metrics of `argosy controllers`, on the loopback: they tell how it is, not what it knows."""

import os

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from argosy.cli.failures import Failure
from argosy.control.manager import Manager

__all__ = ["Probes"]


class Probes:
    def __init__(self) -> None:
        #: The one that leads, None while another process does.
        self.manager: Manager | None = None
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def open(self, port: int) -> None:
        app = web.Application()
        app.router.add_get("/livez", self._live)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", port).start()
        except OSError as error:
            await self.close()
            raise Failure(
                f"port {port} for probes cannot be used: {os.strerror(error.errno or 0)}",
                "choose another with --port; 0 takes a free one",
            ) from None
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _live(self, request: web.Request) -> web.Response:
        problems = self.manager.problems() if self.manager is not None else []
        return web.Response(status=500 if problems else 200, text="\n".join(problems) or "ok")

    async def _ready(self, request: web.Request) -> web.Response:
        # Who waits for the lease is ready to lead: a roll-out of several must not stop at the second.
        if self.manager is None:
            return web.Response(text="ok: waiting for the lease")
        ready = self.manager.ready.is_set()
        return web.Response(status=200 if ready else 503, text="ok" if ready else "the caches are being filled")

    async def _metrics(self, request: web.Request) -> web.Response:
        body = generate_latest(self.manager.metrics.registry) if self.manager is not None else b""
        return web.Response(body=body, headers={"content-type": CONTENT_TYPE_LATEST})
