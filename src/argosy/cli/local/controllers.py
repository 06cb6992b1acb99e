"""The controllers inside `argosy up`: they hold the lease that `argosy controllers` looks for, so that nobody works beside them.

Whoever is pointed at this control plane waits; where somebody was here first, these do. The lease is longer than usual: the API
server that keeps it is in this process, so that nobody can take it while the process stands still.
"""

import asyncio

from argosy.api import keys
from argosy.api.shards import WHOLE, lease_name
from argosy.cli.local.leasefence import LeaseFence
from argosy.control.manager import Manager
from argosy.control.options import Options
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.sharding.election import ShardElection
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.lease import LeaderElector

__all__ = ["IDENTITY", "LocalControllers"]

#: The same every time: there is one `argosy up` a data folder, and one that was killed need not be waited for.
IDENTITY = "argosy-up"


class LocalControllers:
    """One manager after the other, each for as long as the lease is ours."""

    def __init__(
        self,
        client: Client,
        options: Options = Options(),
        timings: Timings = Timings(),
    ):
        self._options = options
        self.metrics = Metrics()
        #: Set once they have worked.
        self.ready = asyncio.Event()
        self._client = client
        self._division = ShardElection(client, WHOLE)
        self._timings = timings
        self._workers = PluginWorkers(timings)
        self._manager: Manager | None = None

    async def run(self) -> None:
        """Until cancelled."""
        async with self._workers.running():
            await self._division.run(self._elector, self._lead)

    @property
    def waiting(self) -> str:
        """What they wait for before they work, for people; "" while they do."""
        if self._manager is None:
            return f"waiting for {self._division.waiting}"
        return "" if self._manager.ready.is_set() else "not ready yet"

    @property
    def problems(self) -> str:
        return "; ".join(self._manager.problems()) if self._manager is not None else ""

    @property
    def stuck(self) -> str:
        """Processes of plugins that cannot be ended."""
        return "; ".join(self._workers.problems())

    @property
    def notes(self) -> str:
        """Plugins of others that do not answer."""
        return "; ".join(self._manager.notes()) if self._manager is not None else ""

    def _elector(self) -> LeaderElector:
        lease = lease_name(WHOLE)
        return LeaderElector(self._client, keys.SYSTEM_NAMESPACE, lease, IDENTITY, duration=60.0, renew=45.0, retry=5.0)

    async def _lead(self, elector: LeaderElector) -> None:
        fence = LeaseFence(elector)
        self._manager = manager = Manager(
            self._client,
            timings=self._timings,
            options=self._options,
            metrics=self.metrics,
            fence=fence,
            workers=self._workers,
        )
        telling = asyncio.ensure_future(self._tell_ready(manager))
        try:
            await manager.run()
        finally:
            telling.cancel()
            self._manager = None

    async def _tell_ready(self, manager: Manager) -> None:
        await manager.ready.wait()
        self.ready.set()
