"""The life cycle of nodes: they register, stop reporting and come back; and how the cluster reacts.

A node that stops reporting becomes unreachable after a while: Ready is Unknown, it is tainted, its pods are no longer ready,
and those that do not tolerate the taint forever are deleted when their time is over. Pods on deleted nodes are deleted at once.
"""

import asyncio
from typing import Any

from argosy.kube import clock, timestamps
from argosy.kube.conditions import set_condition
from argosy.kube.errors import AlreadyExists
from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE
from argosy.server.trusted import StoreEvent
from argosy.sim import podstatus
from argosy.sim.cluster import NODES, PODS_RESOURCE, Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.kubelet import Kubelet
from argosy.sim.nodes import Node, stay
from argosy.sim.pods import TERMINAL, Pod, timestamp
from argosy.sim.spec import NodeSpec

__all__ = ["NodeLife"]

_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
UNREACHABLE = "node.kubernetes.io/unreachable"
_HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}
_SILENT = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


class NodeLife(Controller):
    name = "node life cycle"

    def __init__(self, cluster: Cluster, kubelet: Kubelet):
        super().__init__(cluster)
        self._client = cluster.client("node-controller")
        self._events = cluster.recorder("node-controller")
        self._evictions = cluster.recorder("taint-eviction-controller")
        self._kubelet = kubelet
        self._lost_at: dict[str, float] = {}

    async def register(self, specs: list[NodeSpec]) -> None:
        """Creates nodes that do not exist yet; existing ones keep users' changes."""
        for spec in specs:
            if self.cluster.access.get(NODES + spec.name) is None:
                manifest = _manifest(spec, self.cluster.access.git_version)
                try:
                    await self._client.create(_NODES, manifest, into=bytes)
                except AlreadyExists:
                    continue

    def lose(self, name: str) -> None:
        """The node stops reporting from now on."""
        self._kubelet.silent.add(name)
        self._lost_at[name] = asyncio.get_running_loop().time()
        self.queue.add(name, after=self.cluster.timings.real(self.cluster.timings.node_grace))

    def recover(self, name: str) -> None:
        self._lost_at.pop(name, None)
        self._kubelet.silent.discard(name)
        self.queue.add(name)

    def observe(self, event: StoreEvent) -> None:
        if event.entry.key.startswith(NODES):
            name = event.entry.name
            node = self.cluster.nodes.nodes.get(name)
            # A node that was lost before a restart still is.
            if event.previous is None and not event.deleted and node is not None and node.ready is None:
                self._kubelet.silent.add(name)
            self.queue.add(name)

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        if not pod.node or event.deleted:
            return
        node = self.cluster.nodes.nodes.get(pod.node)
        if node is None or any(taint.get("effect") == NO_EXECUTE for taint in node.taints):
            self.queue.add(pod.node, after=self.cluster.timings.settle)

    async def reconcile(self, key: str) -> Result | None:
        node = self.cluster.nodes.nodes.get(key)
        if node is None:
            await self._remove(list(self.cluster.pods.on_node(key)))
            return None
        if key in self._kubelet.silent:
            lost_at = self._lost_at.get(key, 0.0)
            grace = self.cluster.timings.real(self.cluster.timings.node_grace)
            wait = lost_at + grace - asyncio.get_running_loop().time()
            if wait > 0:
                return Result(requeue_after=wait)
            if node.ready is not None:
                await self._declare_unreachable(key)
            await self._unready(key)
        elif node.ready is None:
            await self._declare_ready(key)
        return await self._evict(node)

    async def _declare_unreachable(self, name: str) -> None:
        obj = await self._client.get(_NODES, name)
        now = timestamps.now()
        for kind in _HEALTHY:
            obj["status"]["conditions"] = set_condition(obj["status"].get("conditions"), kind, *_SILENT, now)
        # Tainted first: nothing should be placed on a lost node.
        taints = [taint for taint in obj["spec"].get("taints") or () if taint.get("key") != UNREACHABLE]
        added = [{"key": UNREACHABLE, "effect": effect, "timeAdded": now} for effect in (NO_SCHEDULE, NO_EXECUTE)]
        obj["spec"]["taints"] = [*taints, *added]
        stored = await self._client.update(_NODES, obj)
        stored["status"] = obj["status"]
        await self._client.update(_NODES, stored, subresource="status", into=bytes)
        text = f"Node {name} status is now: NodeNotReady"
        self._events.event(reference_to(obj), "Normal", "NodeNotReady", text)

    async def _declare_ready(self, name: str) -> None:
        obj = await self._client.get(_NODES, name)
        now = timestamps.now()
        for kind, condition in _HEALTHY.items():
            obj["status"]["conditions"] = set_condition(obj["status"].get("conditions"), kind, *condition, now)
        stored = await self._client.update(_NODES, obj, subresource="status")
        stored["spec"]["taints"] = [
            taint for taint in stored["spec"].get("taints") or () if taint.get("key") != UNREACHABLE
        ]
        await self._client.update(_NODES, stored, into=bytes)
        self._kubelet.wake_node(name)

    async def _unready(self, name: str) -> None:
        pods = [pod for pod in self.cluster.pods.on_node(name) if pod.ready]
        await asyncio.gather(*(self._unready_one(pod) for pod in pods))

    async def _unready_one(self, pod: Pod) -> None:
        if await self.cluster.change_pod(pod, lambda obj: podstatus.unreachable(obj, timestamps.now())):
            self._events.event(pod.reference, "Warning", "NodeNotReady", "Node is not ready")

    async def _evict(self, node: Node) -> Result | None:
        """Delete the pods whose toleration of NoExecute taints is over; returns when the next one's is."""
        taints = [taint for taint in node.taints if taint.get("effect") == NO_EXECUTE]
        if not taints:
            return None
        now, soonest, due = clock.time(), float("inf"), []
        for pod in list(self.cluster.pods.on_node(node.name)):
            if pod.deleting or pod.phase in TERMINAL:
                continue
            left = min(self._leaves_at(pod, taint) for taint in taints) - now
            if left <= 0:
                due.append(pod)
            else:
                soonest = min(soonest, left)
        await asyncio.gather(*(self._evict_one(pod) for pod in due), return_exceptions=True)
        return Result(requeue_after=soonest) if soonest < float("inf") else None

    async def _evict_one(self, pod: Pod) -> None:
        text = f"Marking for deletion Pod {pod.namespace}/{pod.name}"
        self._evictions.event(pod.reference, "Normal", "TaintManagerEviction", text)
        await self.cluster.change_pod(pod, lambda obj: podstatus.disrupted(obj, timestamps.now()))
        await self._client.delete(PODS_RESOURCE, pod.name, pod.namespace, uid=pod.uid)

    def _leaves_at(self, pod: Pod, taint: Any) -> float:
        timings = self.cluster.timings
        seconds = stay(pod.shape.spec.get("tolerations") or (), taint)
        if timings.eviction is not None and 0 < seconds < float("inf"):
            seconds = min(seconds, timings.eviction)
        since = timestamp(taint.get("timeAdded")) or pod.created
        return since + timings.real(seconds)

    async def _remove(self, pods: list[Pod]) -> None:
        deletes = [
            self._client.delete(PODS_RESOURCE, pod.name, pod.namespace, uid=pod.uid, grace_period=0) for pod in pods
        ]
        await asyncio.gather(*deletes, return_exceptions=True)


def _manifest(spec: NodeSpec, version: str) -> Object:
    now = timestamps.now()
    conditions: list[Object] = []
    for kind, condition in _HEALTHY.items():
        conditions = set_condition(conditions, kind, *condition, now)
    labels = {
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        # Their older names, which published manifests still select.
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "simulated",
        **spec.labels,
    }
    second, third = divmod(spec.index, 256)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels},
        "spec": {"podCIDR": f"10.{second}.{third}.0/24", "taints": [dict(taint) for taint in spec.taints]},
        "status": {
            "capacity": dict(spec.capacity),
            "allocatable": dict(spec.capacity),
            "addresses": [
                {"type": "InternalIP", "address": f"172.{16 + second % 16}.{third}.2"},
                {"type": "Hostname", "address": spec.name},
            ],
            "conditions": conditions,
            "nodeInfo": {
                "kubeletVersion": version,
                "osImage": "Argosy simulated node",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "containerRuntimeVersion": "sim://1",
            },
        },
    }
