"""The loop of every part of `lifecycle`: keys from changes into a queue, and a few workers that reconcile them.

Writes go through the server's own verbs, in process, as `system:apiserver`, with the usual validation, versions and events.
"""

from prometheus_client import Counter

from argosy.kube.errors import NotFound
from argosy.kube.pace import PATIENCE, Pace
from argosy.kube.queue import Result, WorkQueue, run_workers
from argosy.server.trusted import StoreEvent, TrustedAccess

__all__ = ["Loop"]

_WORKERS = 8
_CONFLICT_DELAY = 0.02


class Loop:
    """Subclasses define which changes concern them (`observe`) and how to reconcile a key (`reconcile`)."""

    name = "loop"
    #: Seconds after which a reconcile that does not end fails /livez.
    patience = PATIENCE

    def __init__(self, access: TrustedAccess, spinning: Counter):
        """`spinning` counts, by loop, runs that were delayed because their key came up again and again."""
        self.access = access
        self.client = access.client("apiserver")
        self.queue: WorkQueue[str] = WorkQueue()
        self._pace: Pace[str] = Pace(self.name, spinning.labels(self.name).inc, patience=self.patience)

    def observe(self, event: StoreEvent) -> None:
        raise NotImplementedError

    async def reconcile(self, key: str) -> Result | None:
        raise NotImplementedError

    def start(self) -> None:
        """Process everything that is stored, then follow the changes until the server stops."""
        self.access.follow(self.observe)
        work = run_workers(self.queue, self._quietly, _WORKERS, pace=self._pace, conflict_delay=_CONFLICT_DELAY)
        self.access.run(self.name, work, self._pace.problem)

    async def _quietly(self, key: str) -> Result | None:
        """An object that was deleted meanwhile is no failure: its own event will come."""
        try:
            return await self.reconcile(key)
        except NotFound:
            return None
