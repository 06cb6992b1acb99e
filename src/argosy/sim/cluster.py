"""Cluster: what the simulated controllers of one member share: records of its pods and nodes, and ways to write.

`ControllerManager` keeps the records current (`observe_node`, `observe_pod`); the controllers read them, so there is no second
copy.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from argosy.kube.client import Client
from argosy.kube.events import EventRecorder
from argosy.kube.resource import Resource
from argosy.server.trusted import Object, StoreEvent, TrustedAccess
from argosy.sim.nodes import NodeBook
from argosy.sim.podaffinity import PodAffinity, Running
from argosy.sim.pods import TERMINAL, Pod, PodBook
from argosy.sim.timings import Timings

__all__ = ["NODES", "PODS", "PODS_RESOURCE", "Cluster", "Object"]

PODS = "core/pods/"
PODS_RESOURCE = Resource("", "v1", "pods", "Pod")
NODES = "core/nodes/"


class Cluster:
    #: Concurrent reconciles in all members of a process together: users' requests come first.
    TURNS = 24

    def __init__(
        self, access: TrustedAccess, timings: Timings, turns: asyncio.Semaphore | None = None, *, name: str = ""
    ):
        self.name = name
        self.turns = turns or asyncio.Semaphore(self.TURNS)
        self.access = access
        self.timings = timings
        self.pods = PodBook()
        self.nodes = NodeBook()
        self._recorders: dict[str, EventRecorder] = {}

    def client(self, component: str) -> Client:
        return self.access.client(component)

    def recorder(self, component: str) -> EventRecorder:
        """Events of one component; written from `record_events` on, until the server stops."""
        return self._recorders.setdefault(component, EventRecorder(self.client(component), component))

    def record_events(self) -> None:
        for component, recorder in self._recorders.items():
            self.access.run(f"events of {component}", recorder.run())

    async def flush_events(self) -> None:
        """Wait until the events so far are written."""
        for recorder in self._recorders.values():
            await recorder.flush()

    def observe_node(self, event: StoreEvent) -> None:
        if event.deleted:
            self.nodes.remove(event.entry.name)
        else:
            self.nodes.update(event.entry.decode())

    def observe_pod(self, event: StoreEvent) -> tuple[Pod, bool]:
        """The pod, and whether resources were freed on a node."""
        known = self.pods.get(event.entry.key)
        claimed, shape = (known.claimed, known.shape) if known is not None else ("", None)
        pod = self.pods.apply(event, asyncio.get_running_loop().time())
        if pod is not known:
            claimed, shape = "", None
        running = not event.deleted and pod.phase not in TERMINAL
        wanted = (pod.node or pod.claimed) if running else ""
        if wanted == claimed and pod.shape is shape:
            return pod, False
        if claimed and shape is not None:
            self.nodes.release(claimed, shape)
        if wanted:
            self.nodes.claim(wanted, pod.shape)
        pod.claim(wanted)
        return pod, bool(claimed)

    def claim(self, pod: Pod, node: str) -> None:
        """Count the pod on a node from the decision on, before the binding is durable."""
        pod.claim(node)
        self.nodes.claim(node, pod.shape)

    def unclaim(self, pod: Pod) -> None:
        """The binding did not happen."""
        if pod.claimed and not pod.node:
            self.nodes.release(pod.claimed, pod.shape)
            pod.claim("")

    def affinity(self, pod: Pod) -> PodAffinity | None:
        """What the pods that run mean for this one; None if nothing."""
        others: Iterable[Pod] = self.pods if pod.shape.terms else self.pods.repelling.values()
        if not pod.shape.terms and not self.pods.repelling:
            return None
        running = (
            self._running(other)
            for other in others
            if other.claimed and other.key != pod.key and other.phase not in TERMINAL
        )
        nodes = {node.name: node.labels for node in self.nodes.nodes.values()}
        return PodAffinity(self._running(pod), running, nodes, self._namespace_labels)

    def _running(self, pod: Pod) -> Running:
        entry = self.access.get(pod.key)
        labels = entry.labels if entry is not None else {}
        return Running(pod.namespace, labels, pod.claimed, pod.shape.terms)

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        entry = self.access.get(f"core/namespaces/{name}")
        return entry.labels if entry is not None else {}

    def label_of(self, pod: Pod, label: str) -> str:
        entry = self.access.get(pod.key)
        return entry.labels.get(label, "") if entry is not None else ""

    async def change_pod(self, pod: Pod, change: Callable[[Object], bool]) -> bool:
        """Store what `change` makes of the newest state of a pod; False if it is gone or unchanged."""
        return await self.access.change(PODS_RESOURCE, pod.key, pod.uid, change)
