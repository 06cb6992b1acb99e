"""The controllers of one member, and how a committed change reaches them.

One observer of the server's changes keeps the cluster's records current and then notifies the controllers, which queue keys.
Each controller runs its own loop, which ends with the server.
"""

from collections.abc import Sequence

from argosy.kube.errors import NotFound
from argosy.kube.queue import Result, WorkQueue, run_workers
from argosy.server.trusted import StoreEvent
from argosy.sim.cluster import NODES, PODS, Cluster
from argosy.sim.pods import Pod

__all__ = ["Controller", "ControllerManager"]


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


class ControllerManager:
    def __init__(self, cluster: Cluster, controllers: Sequence[Controller]):
        self.controllers = controllers
        self._cluster = cluster

    def start(self) -> None:
        """Process everything that is stored, then follow the changes until the server stops."""
        access = self._cluster.access
        # Nodes first: pods claim resources on them.
        access.follow(self._observe, NODES.rstrip("/"), PODS.rstrip("/"))
        for controller in self.controllers:
            access.run(controller.name, controller.run())
        self._cluster.record_events()

    def _observe(self, event: StoreEvent) -> None:
        key = event.entry.key
        if key.startswith(PODS):
            pod, freed = self._cluster.observe_pod(event)
            if freed:
                self._tell_room()
            for controller in self.controllers:
                controller.observe_pod(pod, event)
            return
        if key.startswith(NODES):
            self._cluster.observe_node(event)
            self._tell_room()
        for controller in self.controllers:
            controller.observe(event)

    def _tell_room(self) -> None:
        for controller in self.controllers:
            controller.observe_room()
