"""The controllers of ReplicaSets and ReplicationControllers: as many pods as the spec says, and a status that counts them.

The records it reads are as new as the last commit, so it needs no expectations about its own writes.
"""

from collections.abc import Iterable, Sequence

from argosy.kube import clock, timestamps
from argosy.kube.conditions import remove_condition, set_condition
from argosy.kube.errors import ApiError
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.kube.selectors import LabelSelector, from_map
from argosy.server.trusted import Entry, StoreEvent
from argosy.sim.cluster import Cluster, Object
from argosy.sim.podcontrol import BURST, available, deletion_order, parse_selector
from argosy.sim.pods import Pod
from argosy.sim.workload import Workload

__all__ = ["REPLICASETS", "TABLE", "ReplicaSets", "ReplicationControllers"]

REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
TABLE = "apps/replicasets/"


class ReplicaSets(Workload):
    name = "replica sets"
    workers = 32
    resource = REPLICASETS
    component = "replicaset-controller"
    #: Whether the status counts the pods on their way out.
    counts_terminating = True

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        #: Pods whose labels changed, by owner: they may no longer be selected.
        self._relabelled: dict[str, set[str]] = {}

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        super().observe_pod(pod, event)
        before = event.previous
        if pod.owner_kind == self.resource.kind:
            if before is not None and before.labels != event.entry.labels:
                self._relabelled.setdefault(pod.owner, set()).add(pod.key)
                self.queue.add(f"{self.table}{pod.namespace}/{pod.owner_name}", after=self.cluster.timings.settle)
        elif (
            not pod.owner
            and not event.deleted
            and (before is None or before.owners or before.labels != event.entry.labels)
        ):
            # Released: its former owner no longer counts it, and a workload that selects it may adopt it.
            for entry in self.cluster.access.entries(self.table[:-1], pod.namespace):
                self.queue.add(entry.key, after=self.cluster.timings.settle)

    async def sync(self, entry: Entry, obj: Object) -> Result | None:
        failure: tuple[str, ApiError] | None = None
        if not entry.deleting:
            suspects = self._relabelled.pop(entry.uid, ())
            if suspects or self.cluster.pods.orphans:
                await self._choose(obj, suspects)
            failure = await self._scale(obj)
        return await self._report(obj, failure)

    def selector(self, spec: Object) -> LabelSelector | None:
        return parse_selector(spec)

    async def _choose(self, obj: Object, suspects: Iterable[str]) -> None:
        selector = self.selector(obj["spec"])
        if selector is not None:
            await self.control.release(obj, selector, suspects)
            await self.control.adopt(obj, selector)

    async def _scale(self, obj: Object) -> tuple[str, ApiError] | None:
        pods = [pod for pod in self.cluster.pods.of_owner(obj["metadata"]["uid"]) if pod.active]
        surplus = len(pods) - obj["spec"]["replicas"]
        if surplus < 0:
            refused = await self.control.create(obj, obj["spec"]["template"], [None] * min(-surplus, BURST))
            return ("FailedCreate", refused) if refused is not None else None
        if surplus > 0:
            await self.control.delete(obj, deletion_order(pods)[: min(surplus, BURST)])
        return None

    async def _report(self, obj: Object, failure: tuple[str, ApiError] | None) -> Result | None:
        """Write the status if it changed. If the object changed meanwhile, its event wakes the key again."""
        metadata, spec = obj["metadata"], obj["spec"]
        pods = list(self.cluster.pods.of_owner(metadata["uid"]))
        active = [pod for pod in pods if pod.active]
        wait, counts = self._count(active, spec)
        if self.counts_terminating:
            counts["terminatingReplicas"] = sum(pod.deleting for pod in pods)
        status: Object = {**counts, "observedGeneration": metadata["generation"]}
        old = obj.get("status") or {}
        conditions = old.get("conditions")
        if failure is not None:
            reason, error = failure
            conditions = set_condition(conditions, "ReplicaFailure", "True", reason, error.message, timestamps.now())
        else:
            conditions = remove_condition(conditions, "ReplicaFailure")
        if conditions:
            status["conditions"] = conditions
        if status != old:
            obj["status"] = status
            await self.cluster.access.update(self.resource, obj)
        if failure is not None:
            return Result(error=f"{failure[0]}: {failure[1].message}")
        if len(active) != spec["replicas"] and "deletionTimestamp" not in metadata:
            return Result(requeue_after=self.cluster.timings.settle)
        return Result(requeue_after=wait) if 0 < wait < float("inf") else None

    def _count(self, active: Sequence[Pod], spec: Object) -> tuple[float, Object]:
        """The numbers of a status, and the seconds until the next ready pod counts as available."""
        min_ready = self.cluster.timings.real(spec.get("minReadySeconds") or 0)
        waits = [available(pod, min_ready, clock.time()) for pod in active]
        counts: Object = {"replicas": len(active)}
        amounts = (
            ("fullyLabeledReplicas", len(active)),
            ("readyReplicas", sum(pod.ready for pod in active)),
            ("availableReplicas", sum(wait == 0 for wait in waits)),
        )
        counts.update({name: amount for name, amount in amounts if amount})
        return min((wait for wait in waits if wait > 0), default=0.0), counts


class ReplicationControllers(ReplicaSets):
    """The older kind: its selector is a map of labels."""

    name = "replication controllers"
    workers = 4
    resource = Resource("", "v1", "replicationcontrollers", "ReplicationController")
    component = "replication-controller"
    counts_terminating = False

    def selector(self, spec: Object) -> LabelSelector | None:
        return from_map(spec["selector"]) if spec.get("selector") else None
