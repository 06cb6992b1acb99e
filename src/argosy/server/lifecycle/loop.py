"""The loop every part of `lifecycle` runs: keys from the change feed into a queue, a few workers that reconcile them.

Writes go through the server's own verbs, in process, as the system's user: validation, versions and events as for anybody.
"""

from collections.abc import Awaitable, Callable

from argosy.kube.client import Client
from argosy.kube.errors import Conflict, NotFound
from argosy.kube.pace import Pace
from argosy.kube.queue import Result, WorkQueue, run_workers
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.local import LocalTransport
from argosy.server.watchcache.store import StoreEvent

__all__ = ["SYSTEM", "Loop", "system_client"]

SYSTEM = User("system:apiserver", ("system:masters", "system:authenticated"))
_WORKERS = 8


def system_client(server: Server) -> Client:
    return Client(LocalTransport(server, SYSTEM), field_manager="argosy-server")


class Loop:
    """Subclasses say which changes concern them (`observe`) and what to do about a key (`reconcile`)."""

    name = "loop"

    def __init__(self, server: Server):
        self.server = server
        self.store = server.store
        self.client = system_client(server)
        self.queue: WorkQueue[str] = WorkQueue()
        self._pace: Pace[str] = Pace(self.name, server.metrics.spinning.labels(self.name).inc)

    def observe(self, event: StoreEvent) -> None:
        raise NotImplementedError

    async def reconcile(self, key: str) -> Result | None:
        raise NotImplementedError

    def start(self) -> None:
        """Look at everything that is stored, then follow the changes until the server stops."""
        self.store.subscribe(self.observe)
        for table in self.store.tables().values():
            for entry in list(table.entries.values()):
                self.observe(StoreEvent(entry, None, deleted=False))
        work = run_workers(self.queue, self._quietly(self.reconcile), _WORKERS, pace=self._pace)
        self.server.run(self.name, work, self._pace.problem)

    def _quietly(
        self, reconcile: Callable[[str], Awaitable[Result | None]]
    ) -> Callable[[str], Awaitable[Result | None]]:
        """An object that vanished or changed meanwhile is no failure: its own event comes by."""

        async def run(key: str) -> Result | None:
            try:
                return await reconcile(key)
            except NotFound:
                return None
            except Conflict:
                return Result(requeue_after=0.02)

        return run
