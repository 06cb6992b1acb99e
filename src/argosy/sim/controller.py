"""Controller: the base of the controllers of a simulated cluster. It observes changes, queues keys, and reconciles them."""

from argosy.kube.errors import NotFound
from argosy.kube.queue import Result, WorkQueue, run_workers
from argosy.server.trusted import StoreEvent
from argosy.sim.cluster import Cluster
from argosy.sim.pods import Pod

__all__ = ["Controller"]


class Controller:
    """Subclasses say which changes concern them and what to do about a key."""

    name = "controller"
    workers = 16

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.queue: WorkQueue[str] = WorkQueue()

    def observe(self, event: StoreEvent) -> None:
        """A change of anything but a pod."""

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        """A change of a pod; `pod` is up to date, or what it was when it is gone."""

    def observe_room(self) -> None:
        """Resources were freed on a node, or a node changed."""

    async def reconcile(self, key: str) -> Result | None:
        raise NotImplementedError

    async def run(self) -> None:
        await run_workers(self.queue, self._quietly, self.workers, conflict_delay=self.cluster.timings.settle)

    async def _quietly(self, key: str) -> Result | None:
        try:
            async with self.cluster.turns:
                return await self.reconcile(key)
        except NotFound:
            # It was deleted meanwhile; its own event will come.
            return None
