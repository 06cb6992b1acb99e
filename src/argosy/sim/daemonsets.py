"""The DaemonSet controller: one pod on every node that the template allows, replaced a few at a time when it changes.

The scheduler places the pods, each bound to its node by affinity. Updates stop the old pod before the new one starts; maxSurge
counts as 0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube import clock
from argosy.kube.errors import ApiError
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE
from argosy.server.trusted import Entry, StoreEvent
from argosy.sim.affinity import matches_node
from argosy.sim.cluster import NODES, Cluster, Object
from argosy.sim.controllerrevisions import REVISION_LABEL, History
from argosy.sim.nodes import Node, tolerates
from argosy.sim.podcontrol import available
from argosy.sim.pods import TERMINAL, Pod
from argosy.sim.rollout import scaled_value
from argosy.sim.workload import Workload

__all__ = ["DaemonSets"]

#: The server counts the changes of a DaemonSet's template in this annotation.
_GENERATION = "deprecated.daemonset.template.generation"
#: Daemon pods stay on nodes that evict others.
_TOLERATIONS: list[Mapping[str, str]] = [
    *(
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": NO_EXECUTE}
        for key in ("not-ready", "unreachable")
    ),
    *(
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": NO_SCHEDULE}
        for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
]


class DaemonSets(Workload):
    name = "daemon sets"
    resource = Resource("apps", "v1", "daemonsets", "DaemonSet")
    component = "daemon-set-controller"
    event_source = "daemonset-controller"

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._history = History(cluster, self.client, REVISION_LABEL)

    def observe(self, event: StoreEvent) -> None:
        super().observe(event)
        if event.entry.key.startswith(NODES):
            for entry in self.cluster.access.entries(self.table[:-1]):
                self.queue.add(entry.key, after=self.cluster.timings.settle)

    async def sync(self, entry: Entry, obj: Object) -> Result | None:
        if entry.deleting:
            return None
        revision = await self._history.current(obj)
        hashed = revision.rpartition("-")[2]
        template = _daemon_template(obj, hashed)
        wanted = [node.name for node in self.cluster.nodes.nodes.values() if _runs_on(node, template["spec"])]
        by_node = self._by_node(obj)
        refused = await self._place(obj, template, wanted, by_node)
        if refused is not None:
            await self._report(obj, wanted, hashed)
            return Result(error=refused.message)
        await self._update(obj, wanted, hashed)
        await self._history.prune(obj, {revision})
        return await self._report(obj, wanted, hashed)

    def _by_node(self, obj: Object) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.cluster.pods.of_owner(obj["metadata"]["uid"]):
            found.setdefault(pod.node or _target(pod), []).append(pod)
        return found

    async def _place(
        self, obj: Object, template: Object, wanted: Sequence[str], by_node: Mapping[str, Sequence[Pod]]
    ) -> ApiError | None:
        """Returns the refusal of a pod, if there was one."""
        for node in wanted:
            pods = by_node.get(node, ())
            if not pods:
                refused = await self.control.create(obj, _bound_to(template, node), [None])
                if refused is not None:
                    return refused
            ended = [pod for pod in pods if pod.phase in TERMINAL and not pod.deleting]
            live = sorted((pod for pod in pods if pod.active), key=lambda pod: pod.created)
            await self.control.delete(obj, [*ended, *live[1:]])
        for node, pods in by_node.items():
            if node not in wanted:
                await self.control.delete(obj, [pod for pod in pods if not pod.deleting])
        return None

    async def _update(self, obj: Object, wanted: Sequence[str], hashed: str) -> None:
        strategy = obj["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        limit = max(1, scaled_value((strategy.get("rollingUpdate") or {}).get("maxUnavailable"), len(wanted), up=True))
        by_node = self._by_node(obj)
        down = sum(not any(pod.active and pod.ready for pod in by_node.get(node, ())) for node in wanted)
        old = [
            pod
            for node in wanted
            for pod in by_node.get(node, ())
            if pod.active and self.cluster.label_of(pod, REVISION_LABEL) != hashed
        ]
        # Pods that are not available are replaced first, which costs nothing.
        idle = [pod for pod in old if not pod.ready]
        busy = [pod for pod in old if pod.ready]
        await self.control.delete(obj, [*idle, *busy[: max(0, limit - down)]])

    async def _report(self, obj: Object, wanted: Sequence[str], hashed: str) -> Result | None:
        by_node = self._by_node(obj)
        running = [next((pod for pod in by_node.get(node, ()) if pod.active), None) for node in wanted]
        pods = [pod for pod in running if pod is not None]
        min_ready = self.cluster.timings.real(obj["spec"].get("minReadySeconds") or 0)
        waits = [available(pod, min_ready, clock.time()) for pod in pods]
        ok = sum(wait == 0 for wait in waits)
        optional = {
            "updatedNumberScheduled": sum(self.cluster.label_of(pod, REVISION_LABEL) == hashed for pod in pods),
            "numberAvailable": ok,
            "numberUnavailable": len(wanted) - ok,
        }
        misplaced = sum(any(pod.active for pod in found) for node, found in by_node.items() if node not in wanted)
        status = {
            "currentNumberScheduled": len(pods),
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(pod.ready for pod in pods),
            "observedGeneration": obj["metadata"]["generation"],
            **{field: amount for field, amount in optional.items() if amount},
        }
        if status != (obj.get("status") or {}):
            obj["status"] = status
            await self.cluster.access.update(self.resource, obj)
        wait = min((one for one in waits if 0 < one < float("inf")), default=0.0)
        return Result(requeue_after=wait) if wait else None


def _runs_on(node: Node, spec: Mapping[str, Any]) -> bool:
    if not matches_node(spec, node.name, node.labels):
        return False
    repelling = [taint for taint in node.taints if taint.get("effect") in (NO_SCHEDULE, NO_EXECUTE)]
    return all(tolerates(spec["tolerations"], taint) is not None for taint in repelling)


def _daemon_template(obj: Object, hashed: str) -> Object:
    template = obj["spec"]["template"]
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), REVISION_LABEL: hashed}
    generation = (obj["metadata"].get("annotations") or {}).get(_GENERATION)
    if generation is not None:
        metadata["labels"]["pod-template-generation"] = generation
    spec = dict(template["spec"])
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *(dict(one) for one in _TOLERATIONS)]
    return {"metadata": metadata, "spec": spec}


def _bound_to(template: Object, node: str) -> Object:
    """The template for one node: its required node terms, each with the node's name."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    affinity = {**(template["spec"].get("affinity") or {}), "nodeAffinity": required}
    return {**template, "spec": {**template["spec"], "affinity": affinity}}


def _target(pod: Pod) -> str:
    """The node a pod that is not bound yet is meant for."""
    affinity = (pod.shape.spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or [{}]
    fields = terms[0].get("matchFields") or [{}]
    return str((fields[0].get("values") or [""])[0])
