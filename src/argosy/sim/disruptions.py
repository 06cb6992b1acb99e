"""The disruption controller: how many pods of each PodDisruptionBudget are healthy, and how many of them may be evicted.

The API server's evictions spend what this allows. It follows pods, not their workloads, as in Kubernetes.
"""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from argosy.kube import clock, timestamps
from argosy.kube.conditions import set_condition
from argosy.kube.owners import controller_of
from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.kube.selectors import LabelSelector, SelectorError, from_label_selector
from argosy.server.trusted import StoreEvent
from argosy.sim.cluster import PODS, Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.pods import Pod
from argosy.sim.rollout import scaled_value

__all__ = ["Disruptions", "desired", "status_of", "still_expected"]

_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
_TABLE = "policy/poddisruptionbudgets/"
#: Workloads with replicas that may own pods; ReplicaSets count by their Deployments.
_TABLES = {
    "ReplicaSet": "apps/replicasets",
    "Deployment": "apps/deployments",
    "StatefulSet": "apps/statefulsets",
    "ReplicationController": "core/replicationcontrollers",
}
#: How long the end of an evicted pod is waited for.
_PATIENCE = timedelta(minutes=2)


class Disruptions(Controller):
    name = "disruption budgets"
    workers = 2

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._events = cluster.recorder("controllermanager")
        #: What each budget selects, by namespace and key.
        self._selectors: dict[str, dict[str, LabelSelector]] = {}

    def observe(self, event: StoreEvent) -> None:
        key, namespace = event.entry.key, event.entry.namespace
        if not key.startswith(_TABLE):
            return
        selectors = self._selectors.setdefault(namespace, {})
        selectors.pop(key, None)
        if not event.deleted:
            with contextlib.suppress(SelectorError):  # told of with its status
                selectors[key] = from_label_selector(event.entry.decode()["spec"].get("selector"))
            self.queue.add(key)
        if not selectors:
            del self._selectors[namespace]

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        selectors = self._selectors.get(pod.namespace)
        before, labels = event.previous, event.entry.labels
        if not selectors or not (event.deleted or pod.moved or before is None or before.labels != labels):
            return
        for key, selector in selectors.items():
            if selector.matches(labels) or (before is not None and selector.matches(before.labels)):
                self.queue.add(key, after=self.cluster.timings.settle)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.access.get(key)
        if entry is None or entry.deleting:
            return None
        obj, now = entry.decode(), clock.now()
        old = obj.get("status") or {}
        try:
            pods = self._pods(obj["metadata"]["namespace"], from_label_selector(obj["spec"].get("selector")))
            if not pods:
                self._events.event(reference_to(obj), "Normal", "NoPods", "No matching pods found")
            expected = self._expected(obj, pods)
        except (SelectorError, LookupError) as error:
            self._events.event(reference_to(obj), "Warning", "CalculateExpectedPodCountFailed", _said(error))
            obj["status"] = _failed(old, str(error))
        else:
            leaving = still_expected(
                old.get("disruptedPods") or {}, {pod.name for pod in pods if not pod.deleting}, now
            )
            healthy = sum(pod.ready and not pod.deleting and pod.name not in leaving for pod in pods)
            counts = (expected, healthy, desired(obj["spec"], expected))
            obj["status"] = status_of(old, obj["metadata"]["generation"], counts, leaving)
        if obj["status"] != old:
            await self.cluster.access.update(_BUDGETS, obj)
        times = [timestamps.parse(each) or now for each in (obj["status"].get("disruptedPods") or {}).values()]
        return Result(requeue_after=(min(times) + _PATIENCE - now).total_seconds() + 1) if times else None

    def _pods(self, namespace: str, selector: LabelSelector) -> list[Pod]:
        found = (each for each in self.cluster.access.entries(PODS[:-1], namespace) if selector.matches(each.labels))
        known = (self.cluster.pods.get(each.key) for each in found)
        return [pod for pod in known if pod is not None]

    def _expected(self, obj: Object, pods: Sequence[Pod]) -> int:
        """How many pods there should be. Raises LookupError for pods of workloads without replicas."""
        if obj["spec"].get("maxUnavailable") is None and not isinstance(obj["spec"].get("minAvailable"), str):
            return len(pods)
        scales: dict[str, int] = {}
        unmanaged = [pod for pod in pods if not pod.owner]
        for pod in pods:
            if pod.owner and pod.owner not in scales:
                scales |= self._scale(pod)
        if unmanaged:
            text = (
                f"Pods selected by this PodDisruptionBudget (selector: {obj['spec'].get('selector')}) were found to be"
                " unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in"
                ' undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an'
                " integer value."
            )
            self._events.event(reference_to(obj), "Warning", "UnmanagedPods", text)
        return sum(scales.values())

    def _scale(self, pod: Pod) -> dict[str, int]:
        """The replicas of the workload a pod belongs to, by its uid."""
        kind, name, uid = pod.owner_kind, pod.owner_name, pod.owner
        while (table := _TABLES.get(kind)) is not None:
            entry = self.cluster.access.get(f"{table}/{pod.namespace}/{name}")
            if entry is None or entry.uid != uid:
                break
            owner = entry.decode()
            above = controller_of(owner) if kind == "ReplicaSet" else None
            if above is None or above["kind"] != "Deployment":
                return {uid: owner["spec"]["replicas"]}
            kind, name, uid = above["kind"], above["name"], above["uid"]
        raise LookupError(f'found no controllers for pod "{pod.name}"')


def desired(spec: Mapping[str, Any], expected: int) -> int:
    """How many pods have to stay healthy. Percentages are rounded up, whichever of the two is given."""
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - scaled_value(spec["maxUnavailable"], expected, up=True))
    if spec.get("minAvailable") is not None:
        return scaled_value(spec["minAvailable"], expected, up=True)
    return 0


def still_expected(disrupted: Mapping[str, str], present: set[str], now: datetime) -> dict[str, str]:
    """The evicted pods whose deletion has not begun, and that are still waited for."""
    return {
        name: moment
        for name, moment in disrupted.items()
        if name in present and (timestamps.parse(moment) or now) + _PATIENCE >= now
    }


def status_of(old: Object, generation: int, counts: tuple[int, int, int], leaving: Mapping[str, str]) -> Object:
    """The status for so many expected, healthy and desired pods."""
    expected, healthy, wanted = counts
    allowed = max(0, healthy - wanted) if expected > 0 else 0
    status: Object = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "expectedPods": expected,
        "observedGeneration": generation,
    }
    if leaving:
        status["disruptedPods"] = dict(leaving)
    told = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    conditions = set_condition(old.get("conditions"), "DisruptionAllowed", *told, "", timestamps.now(), generation)
    return {**status, "conditions": conditions}


def _failed(old: Object, message: str) -> Object:
    """Nothing may be evicted as long as it is not known how many pods there should be."""
    conditions = set_condition(
        old.get("conditions"),
        "DisruptionAllowed",
        "False",
        "SyncFailed",
        message,
        timestamps.now(),
        old.get("observedGeneration") or 0,
    )
    return {**old, "disruptionsAllowed": 0, "conditions": conditions}


def _said(error: Exception) -> str:
    return f"Failed to calculate the number of expected pods: {error}"
