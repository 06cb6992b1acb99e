"""The scheduler: binds pods to nodes where their requests fit, and says why when they fit nowhere.

Filters: unschedulable nodes, taints, node selector and required node affinity, resources, affinity and anti-affinity to other
pods. Of the remaining nodes those that pods prefer come first, and of these the least loaded one. Pods that fit nowhere wait by
shape; when room appears, as many are retried as could fit. Pods wait for volumes, too: their claims are told the node, and the
pod is bound when they are. No preemption.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube import timestamps
from argosy.kube.conditions import set_condition
from argosy.kube.queue import Result
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE
from argosy.server.trusted import StoreEvent
from argosy.sim.affinity import matches_node
from argosy.sim.claims import CLAIMS_TABLE, pod_standing, settle_on
from argosy.sim.cluster import Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.nodes import Node, tolerates
from argosy.sim.podaffinity import APART_FROM_ALL, PodAffinity
from argosy.sim.pods import Pod, Shape

__all__ = ["Scheduler", "unfit"]

#: Feasible nodes to score before the best is taken; as in Kubernetes, huge clusters are not searched completely.
ENOUGH = 100
_CORDONED = "node.kubernetes.io/unschedulable"
_TAINTED = "node(s) had untolerated taint(s)"
_UNSCHEDULABLE = "node(s) were unschedulable"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_UNHELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


class Scheduler(Controller):
    name = "scheduler"
    workers = 32

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._parked: dict[Shape, dict[str, Pod]] = {}
        #: Pods that wait for a claim, by its key.
        self._awaiting: dict[str, dict[str, None]] = {}
        self._events = cluster.recorder("default-scheduler")
        self._start = 0
        self._retry: asyncio.TimerHandle | None = None

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        if event.deleted or pod.node or pod.deleting:
            self._unpark(pod)
        elif not pod.claimed and not pod.gated and not self._is_parked(pod):
            self.queue.add(pod.key)
        if pod.node and any(shape.terms.together for shape in self._parked):
            # Somebody waits for company.
            self.observe_room()

    def observe(self, event: StoreEvent) -> None:
        if event.entry.key.startswith(CLAIMS_TABLE) and not event.deleted:
            for key in self._awaiting.pop(event.entry.key, ()):
                self.queue.add(key)

    async def reconcile(self, key: str) -> Result | None:
        pod = self.cluster.pods.get(key)
        if pod is None or pod.node or pod.claimed or pod.deleting or pod.gated:
            return None
        self._unpark(pod)
        undecided: tuple[str, ...] = ()
        if pod.shape.claims:
            problem, undecided, soon = pod_standing(self.cluster, pod)
            if problem or undecided or soon:
                self._await_claims(pod)
            if problem:
                await self._park(pod, _impossible(len(self.cluster.nodes.nodes), problem))
            if problem or soon:
                return None
        node, message = self.place(pod.shape, self.cluster.affinity(pod))
        if node is None:
            await self._park(pod, message)
            return None
        if undecided:
            await self._tell_claims(pod, undecided, node)
            return None
        self.cluster.claim(pod, node.name)
        try:
            bound = await self.cluster.access.bind(pod.key, pod.uid, node.name)
        finally:
            self.cluster.unclaim(pod)
        if bound:
            text = f"Successfully assigned {pod.namespace}/{pod.name} to {node.name}"
            self._events.event(pod.reference, "Normal", "Scheduled", text)
        return None

    def place(self, shape: Shape, affinity: PodAffinity | None = None) -> tuple[Node | None, str]:
        """The node for one more pod of this shape, or None and the reason as users see it."""
        nodes = list(self.cluster.nodes.nodes.values())
        reasons: Counter[str] = Counter()
        hopeless = 0
        best: tuple[int, float, str, Node] | None = None
        feasible = 0
        for offset in range(len(nodes)):
            node = nodes[(self._start + offset) % len(nodes)]
            found, helpful = unfit(node, shape)
            if found:
                reasons.update(found)
                hopeless += not helpful
                continue
            if affinity is not None and (refusal := affinity.refuses(node.labels)):
                reasons[refusal] += 1
                hopeless += refusal == APART_FROM_ALL
                continue
            preferred = affinity.score(node.labels) if affinity is not None else 0
            candidate = (-preferred, node.load(shape), node.name, node)
            if best is None or candidate[:3] < best[:3]:
                best = candidate
            feasible += 1
            if feasible >= ENOUGH:
                self._start = (self._start + offset + 1) % len(nodes)
                break
        if best is not None:
            return best[3], ""
        return None, _message(len(nodes), reasons, hopeless)

    async def _park(self, pod: Pod, message: str) -> None:
        self._parked.setdefault(pod.shape, {})[pod.key] = pod
        await self._refuse(pod, message)

    def _await_claims(self, pod: Pod) -> None:
        for name in pod.shape.claims:
            self._awaiting.setdefault(f"{CLAIMS_TABLE}{pod.namespace}/{name}", {})[pod.key] = None

    async def _tell_claims(self, pod: Pod, names: Iterable[str], node: Node) -> None:
        """Their volumes are made for this node; once they are bound, the pod is looked at again."""
        for name in names:
            await settle_on(self.cluster, f"{CLAIMS_TABLE}{pod.namespace}/{name}", node.name)

    async def _refuse(self, pod: Pod, message: str) -> None:
        if pod.scheduled_message == message:
            return

        def change(obj: Object) -> bool:
            if obj["spec"].get("nodeName"):
                return False
            status = obj.setdefault("status", {})
            status["conditions"] = set_condition(
                status.get("conditions"), "PodScheduled", "False", "Unschedulable", message, timestamps.now()
            )
            return True

        if await self.cluster.change_pod(pod, change):
            self._events.event(pod.reference, "Warning", "FailedScheduling", message)

    def _is_parked(self, pod: Pod) -> bool:
        return pod.key in self._parked.get(pod.shape, ())

    def _unpark(self, pod: Pod) -> None:
        waiting = self._parked.get(pod.shape)
        if waiting is not None and waiting.pop(pod.key, None) is not None and not waiting:
            del self._parked[pod.shape]

    def observe_room(self) -> None:
        if self._parked and self._retry is None:
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(self.cluster.timings.settle, self._try_parked)

    def _try_parked(self) -> None:
        self._retry = None
        for shape, pods in self._parked.items():
            room = sum(node.room(shape) for node in self.cluster.nodes.nodes.values() if not _repelled(node, shape))
            # One more than fits, so that the message of the remaining pods is current; all where not only room counts.
            for _, key in zip(range(len(pods) if shape.terms else room + 1), list(pods), strict=False):
                self.queue.add(key)


def unfit(node: Node, shape: Shape) -> tuple[list[str], bool]:
    """Why a node is not for pods of this shape (empty: it is), and whether evicting others could help."""
    repelled = _repelled(node, shape)
    if repelled:
        return [repelled], False
    lacking = node.lacking(shape)
    if not lacking:
        return [], True
    reasons = ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in lacking]
    never = any(shape.requests[name] > node.allocatable.get(name, 0) for name in lacking)
    return reasons, not never


def _repelled(node: Node, shape: Shape) -> str:
    if node.unschedulable and not _tolerated(shape.spec, {"key": _CORDONED, "effect": NO_SCHEDULE}):
        return _UNSCHEDULABLE
    for taint in node.taints:
        if taint.get("effect") in (NO_SCHEDULE, NO_EXECUTE) and not _tolerated(shape.spec, taint):
            return _TAINTED
    if not matches_node(shape.spec, node.name, node.labels):
        return _AFFINITY
    return ""


def _tolerated(spec: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    return tolerates(spec.get("tolerations") or (), taint) is not None


def _impossible(total: int, problem: str) -> str:
    first = f"0/{total} nodes are available"
    return f"{first}: {problem}. preemption: {first}: {total} {_UNHELPFUL}."


def _message(total: int, reasons: Counter[str], hopeless: int) -> str:
    if not total:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    second = [(hopeless, _UNHELPFUL), (total - hopeless, _NO_VICTIMS)]
    why = ", ".join(sorted(f"{count} {text}" for count, text in second if count))
    first = f"0/{total} nodes are available"
    return f"{first}: {listed}. no new claims to deallocate, preemption: {first}: {why}."
