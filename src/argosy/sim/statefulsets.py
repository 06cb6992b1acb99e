"""The StatefulSet controller: pods with fixed names, started in order, stopped and updated in reverse order."""

from collections.abc import Sequence
from typing import Any

from argosy.kube import clock
from argosy.kube.errors import ApiError
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.trusted import Entry
from argosy.sim.claimtemplates import ClaimTemplates
from argosy.sim.cluster import Cluster, Object
from argosy.sim.controllerrevisions import REVISION_LABEL, History
from argosy.sim.podcontrol import available
from argosy.sim.pods import TERMINAL, Pod
from argosy.sim.workload import Workload

__all__ = ["StatefulSets"]


class StatefulSets(Workload):
    name = "stateful sets"
    resource = Resource("apps", "v1", "statefulsets", "StatefulSet")
    component = "statefulset-controller"

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._history = History(cluster, self.client, "controller.kubernetes.io/hash")
        self._claims = ClaimTemplates(cluster, self.client, self.events)

    async def sync(self, entry: Entry, obj: Object) -> Result | None:
        update = await self._history.current(obj) if not entry.deleting else ""
        current = (obj.get("status") or {}).get("currentRevision") or update
        refused = await self._step(obj, current, update) if not entry.deleting else None
        reported = await self._report(obj, current, update)
        return reported if refused is None else Result(error=refused.message)

    def _pods(self, obj: Object) -> dict[int, Pod]:
        """Its pods by ordinal."""
        found = {}
        for pod in self.cluster.pods.of_owner(obj["metadata"]["uid"]):
            ordinal = pod.name.rpartition("-")[2]
            if ordinal.isdecimal():
                found[int(ordinal)] = pod
        return found

    def _is_available(self, obj: Object, pod: Pod) -> bool:
        """Whether it has been ready for long enough, and is not terminating."""
        min_ready = self.cluster.timings.real(obj["spec"].get("minReadySeconds") or 0)
        return not pod.deleting and available(pod, min_ready, clock.time()) == 0

    async def _step(self, obj: Object, current: str, update: str) -> ApiError | None:
        """Start missing pods, then stop surplus ones, then replace outdated ones; in order, one at a time.

        Returns the refusal of a pod, if there was one."""
        spec = obj["spec"]
        ordered = spec["podManagementPolicy"] == "OrderedReady"
        start = (spec.get("ordinals") or {}).get("start") or 0
        wanted = range(start, start + spec["replicas"])
        pods = self._pods(obj)
        for ordinal in wanted:
            await self._claims.take_back(obj, ordinal)
            pod = pods.get(ordinal)
            if pod is None:
                refused = await self._create(obj, ordinal, start, current, update)
                if refused is not None:
                    return refused
            elif pod.phase in TERMINAL and not pod.deleting:
                await self.control.delete(obj, [pod])
            elif self._is_available(obj, pod):
                continue
            if ordered:
                return None
        surplus = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
        if surplus:
            doomed = [pods[ordinal] for ordinal in surplus]
            if ordered and any(pod.deleting for pod in doomed):
                return None
            chosen = [pod for pod in doomed if not pod.deleting][: 1 if ordered else None]
            await self._claims.hand_over(obj, chosen)
            await self.control.delete(obj, chosen)
            return None
        await self._update(obj, [pods[ordinal] for ordinal in reversed(wanted) if ordinal in pods], start, update)
        return None

    async def _update(self, obj: Object, newest_first: Sequence[Pod], start: int, update: str) -> None:
        strategy = obj["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        for pod in newest_first:
            if int(pod.name.rpartition("-")[2]) < start + partition:
                return
            if self.cluster.label_of(pod, REVISION_LABEL) != update and not pod.deleting:
                await self.control.delete(obj, [pod])
                return
            if not self._is_available(obj, pod):
                return

    async def _create(self, obj: Object, ordinal: int, start: int, current: str, update: str) -> ApiError | None:
        refused = await self._claims.ensure(obj, ordinal)
        if refused is not None:
            return refused
        spec = obj["spec"]
        partition = (spec["updateStrategy"].get("rollingUpdate") or {}).get("partition") or 0
        revision = current if ordinal < start + partition else update
        template = (self._history.template(obj, revision) if revision != update else None) or spec["template"]
        name = f"{obj['metadata']['name']}-{ordinal}"
        metadata = dict(template.get("metadata") or {})
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            REVISION_LABEL: revision,
        }
        pod_spec = {**self._claims.mounted(obj, ordinal, template["spec"]), "hostname": name}
        if spec.get("serviceName"):
            pod_spec["subdomain"] = spec["serviceName"]
        return await self.control.create(obj, {"metadata": metadata, "spec": pod_spec}, [name])

    async def _report(self, obj: Object, current: str, update: str) -> Result | None:
        spec, old = obj["spec"], obj.get("status") or {}
        pods = list(self._pods(obj).values())
        min_ready = self.cluster.timings.real(spec.get("minReadySeconds") or 0)
        active = [pod for pod in pods if pod.active]
        waits = [available(pod, min_ready, clock.time()) for pod in active]
        ready = [pod for pod in active if pod.ready]
        updated = [pod for pod in active if self.cluster.label_of(pod, REVISION_LABEL) == update]
        if len(updated) == len(ready) == len(pods) == spec["replicas"]:
            current = update
        counts: dict[str, Any] = {
            "readyReplicas": len(ready),
            "currentReplicas": sum(self.cluster.label_of(pod, REVISION_LABEL) == current for pod in active),
            "updatedReplicas": len(updated),
        }
        status = {
            "observedGeneration": obj["metadata"]["generation"],
            "replicas": len(pods),
            **{field: amount for field, amount in counts.items() if amount},
            "availableReplicas": sum(wait == 0 for wait in waits),
            "currentRevision": current,
            "updateRevision": update or old.get("updateRevision", ""),
            "collisionCount": old.get("collisionCount") or 0,
        }
        if status != old:
            obj["status"] = status
            await self.cluster.access.update(self.resource, obj)
        if update and current == update:
            await self._history.prune(obj, {update})
        wait = min((one for one in waits if 0 < one < float("inf")), default=0.0)
        return Result(requeue_after=wait) if wait else None
