"""/livez, /readyz and /metrics of `argosy controllers`: they tell how it is, not what it knows."""

import os
import socket
from collections.abc import Iterable

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from argosy.cli.output.failures import Failure
from argosy.control.manager import Manager
from argosy.control.sharding.election import ShardElection

__all__ = ["Probes"]


class Probes:
    def __init__(self, election: ShardElection | None = None) -> None:
        """Without an election this process leads without a lease."""
        #: The one that leads, None while another process does.
        self.manager: Manager | None = None
        self.url = ""
        self._election = election
        #: Of the process, whoever leads.
        self._registry = CollectorRegistry()
        self.loop_held = Counter(
            "argosy_event_loop_held_seconds_total",
            "Time in which the event loop did not turn for so long that nobody was answered.",
            registry=self._registry,
        )
        self._registry.register(_Lease(election))
        self._runner: web.AppRunner | None = None

    async def open(self, address: str, port: int) -> None:
        app = web.Application()
        app.router.add_get("/livez", self._live)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, address, port).start()
        except OSError as error:
            await self.close()
            # A name that cannot be resolved has a number of its own kind, which strerror does not know.
            why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            raise Failure(
                f"{address} port {port} cannot be used for probes: {why}",
                "choose others with --probe-address and --port; port 0 takes a free one",
            ) from None
        host, number = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{number}" if ":" in host else f"http://{host}:{number}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _live(self, request: web.Request) -> web.Response:
        problems = self.manager.problems() if self.manager is not None else []
        return web.Response(status=500 if problems else 200, text=self._told(problems or ["ok"], request))

    async def _ready(self, request: web.Request) -> web.Response:
        # Who waits for the lease is ready to lead: a roll-out of several must not stop at the second.
        if self.manager is None:
            waiting = self._election.waiting if self._election is not None else "its start"
            return web.Response(text=f"ok: waiting for {waiting}")
        ready = self.manager.ready.is_set()
        text = self._told(["ok" if ready else "the caches are being filled"], request)
        return web.Response(status=200 if ready else 503, text=text)

    def _told(self, lines: list[str], request: web.Request) -> str:
        """`?verbose` adds what is wrong elsewhere: this process is as live and ready as without it."""
        notes = self.manager.notes() if self.manager is not None and "verbose" in request.query else []
        return "\n".join([*lines, *notes])

    async def _metrics(self, request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        if self.manager is not None:
            body += generate_latest(self.manager.metrics.registry)
        return web.Response(body=body, headers={"content-type": CONTENT_TYPE_LATEST})


class _Lease(Collector):
    """Of every process, also those that wait: whether nobody leads is seen in all of them together.

    One that needs no lease always leads.
    """

    def __init__(self, election: ShardElection | None):
        self._election = election

    def collect(self) -> Iterable[Metric]:
        held = GaugeMetricFamily("argosy_lease_held", "1 while this process holds the lease.", labels=["lease"])
        lease, leads, failed = "", True, 0
        if self._election is not None:
            lease, leads, failed = self._election.lease, self._election.held, self._election.failures
        held.add_metric([lease], int(leads))
        failures = CounterMetricFamily(
            "argosy_lease_failures",
            "Attempts to take or renew the lease that failed, not because another process holds it.",
            labels=["lease"],
        )
        failures.add_metric([lease], failed)
        return (held, failures)
