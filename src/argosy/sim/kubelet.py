"""The kubelets of all nodes: bound pods start once what they need is there, deleted pods stop, pods of Jobs end by themselves.

On a lost node nothing happens: its pods stay as they are until it is back, as in a real cluster. `images` tells what images
do.
"""

import asyncio
from typing import Any

import orjson

from argosy.kube import timestamps
from argosy.kube.queue import Result
from argosy.server.trusted import StoreEvent
from argosy.sim import podstatus
from argosy.sim.cluster import PODS_RESOURCE, Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.images import SLOWNESS, Fate, fate
from argosy.sim.nodes import Node
from argosy.sim.podneeds import CONFIG, Need
from argosy.sim.pods import TERMINAL, Pod, Shape

__all__ = ["Kubelet"]

_HOSTS = 254


class Kubelet(Controller):
    name = "kubelets"
    workers = 64

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._client = cluster.client("node")
        self._events = cluster.recorder("kubelet")
        #: Addresses assigned but not yet in a status.
        self._reserved: dict[str, dict[str, int]] = {}
        #: Pods that wait for a ConfigMap or Secret, by its key.
        self._awaiting: dict[str, dict[str, None]] = {}
        #: Nodes whose kubelet is stopped, whatever the cluster knows.
        self.silent: set[str] = set()

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        if event.deleted:
            self._reserved.get(pod.node, {}).pop(pod.key, None)
        elif pod.node:
            wait = self._wait(pod)
            if wait is not None:
                self.queue.add(pod.key, after=wait)

    def observe(self, event: StoreEvent) -> None:
        if not event.deleted and event.entry.key.startswith(CONFIG):
            for key in self._awaiting.pop(event.entry.key, ()):
                self.queue.add(key)

    def wake_node(self, name: str) -> None:
        """The node is back: its pods continue."""
        for pod in self.cluster.pods.on_node(name):
            self.queue.add(pod.key)

    async def reconcile(self, key: str) -> Result | None:
        pod = self.cluster.pods.get(key)
        node = self.cluster.nodes.nodes.get(pod.node) if pod is not None else None
        if pod is None or node is None or node.name in self.silent:
            return None
        wait = self._wait(pod)
        if wait is None:
            return None
        if wait > 0:
            return Result(requeue_after=wait)
        if pod.deleting:
            await self._client.delete(PODS_RESOURCE, pod.name, pod.namespace, uid=pod.uid, grace_period=0)
        elif pod.phase == "Running" and pod.ready == pod.held:
            await self.cluster.change_pod(pod, _readiness)
        elif pod.phase == "Running":
            await self.cluster.change_pod(pod, _end)
        else:
            await self._start(pod, node)
        return None

    def _wait(self, pod: Pod) -> float | None:
        """Seconds until the next thing happens to a pod on its node; None when nothing will."""
        timings, now = self.cluster.timings, asyncio.get_running_loop().time()
        if pod.deleting:
            delay = min(timings.stop, float(pod.grace)) if pod.phase not in TERMINAL else 0.0
            return max(0.0, pod.deleted_at + timings.real(delay) - now)
        if pod.phase in TERMINAL:
            return None
        if pod.phase == "Running" and not pod.waiting:
            if pod.ready == pod.held:
                return 0.0
            if pod.held or not _ends(pod.shape):
                return None
            return max(0.0, pod.bound_at + timings.real(timings.start + timings.job) - now)
        worst = _worst(pod.shape)
        if pod.waiting and worst in (Fate.UNPULLABLE, Fate.CRASHES):
            return None
        delay = timings.start * (SLOWNESS if worst is Fate.SLOW else 1.0)
        return max(0.0, pod.bound_at + timings.real(delay) - now)

    def _missing(self, pod: Pod) -> tuple[Need, ...]:
        """What the pod waits for; it is woken when that comes."""
        get = self.cluster.access.get
        missing = tuple(need for need in pod.shape.needs if get(need.key(pod.namespace)) is None)
        for need in missing:
            self._awaiting.setdefault(need.key(pod.namespace), {})[pod.key] = None
        return missing

    async def _wait_for(self, pod: Pod, node: Node, missing: tuple[Need, ...]) -> None:
        """Said once; a real kubelet tries again and again."""

        def change(obj: Object) -> bool:
            if obj["metadata"].get("deletionTimestamp"):
                return False
            before = orjson.dumps(obj.get("status"))
            podstatus.unconfigured(obj, node.address, missing, timestamps.now())
            return orjson.dumps(obj["status"]) != before

        if await self.cluster.change_pod(pod, change):
            for need in missing:
                text = f"Error: {need.text}"
                reason = "Failed"
                if need.volume:
                    reason, text = "FailedMount", f'MountVolume.SetUp failed for volume "{need.volume}" : {need.text}'
                self._events.event(pod.reference, "Warning", reason, text)

    async def _start(self, pod: Pod, node: Node) -> None:
        if pod.shape.needs and (missing := self._missing(pod)):
            await self._wait_for(pod, node, missing)
            return
        address = f"{node.prefix}.{self._host(pod)}"
        worst = _worst(pod.shape)

        def change(obj: Object) -> bool:
            if obj["metadata"].get("deletionTimestamp"):
                return False
            if worst is Fate.CRASHES and _never_restarts(pod.shape):
                podstatus.running(obj, address, node.address, timestamps.now())
                podstatus.ended(obj, 1, timestamps.now())
            elif worst in (Fate.UNPULLABLE, Fate.CRASHES):
                podstatus.stuck(obj, address, node.address, timestamps.now())
            else:
                podstatus.running(obj, address, node.address, timestamps.now())
            return True

        if await self.cluster.change_pod(pod, change):
            for container in pod.shape.spec["containers"]:
                self._complain(pod, container)

    def _complain(self, pod: Pod, container: Object) -> None:
        """Records a kubelet's events about failures; those about success are left out."""
        image = container.get("image", "")
        told: list[tuple[str, str, str]] = []
        if fate(image) is Fate.UNPULLABLE:
            told = [
                ("Normal", "Pulling", f'Pulling image "{image}"'),
                ("Warning", "Failed", f'Failed to pull image "{image}": not found'),
                ("Warning", "Failed", "Error: ErrImagePull"),
                ("Normal", "BackOff", f'Back-off pulling image "{image}"'),
            ]
        elif fate(image) is Fate.CRASHES and not _never_restarts(pod.shape):
            text = f"Back-off restarting failed container {container['name']} in pod {pod.name}_{pod.namespace}"
            told = [("Warning", "BackOff", text)]
        for kind, reason, text in told:
            self._events.event(pod.reference, kind, reason, text)

    def _host(self, pod: Pod) -> int:
        """The last part of an address that no other pod on the node has."""
        if pod.host:
            return pod.host
        reserved = self._reserved.setdefault(pod.node, {})
        used = {other.host for other in self.cluster.pods.on_node(pod.node)} | set(reserved.values())
        free = next((host for host in range(2, _HOSTS + 1) if host not in used), _HOSTS)
        reserved[pod.key] = free
        return free


def _worst(shape: Shape) -> Fate:
    fates = {fate(container.get("image", "")) for container in shape.spec["containers"]}
    for one in (Fate.UNPULLABLE, Fate.CRASHES, Fate.SLOW):
        if one in fates:
            return one
    return Fate.RUNS


def _ends(shape: Shape) -> bool:
    """Whether a pod ends by itself: only those that need not run forever."""
    return bool(shape.spec.get("restartPolicy") != "Always")


def _never_restarts(shape: Shape) -> bool:
    return bool(shape.spec.get("restartPolicy") == "Never")


def _readiness(pod: dict[str, Any]) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    podstatus.readiness(pod, timestamps.now())
    return True


def _end(pod: dict[str, Any]) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    podstatus.ended(pod, 0, timestamps.now())
    return True
