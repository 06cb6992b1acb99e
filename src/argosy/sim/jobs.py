"""The Job controller: runs pods to completion, so many at a time, until enough have succeeded or too many have failed.

Counting pods is in `jobstatus`. Indexed Jobs give each pod its index. A failed pod is replaced at once, without the growing
delays of Kubernetes. Pod failure policies, success policies and limits per index are not simulated.
"""

import asyncio

from argosy.kube import clock, timestamps
from argosy.kube.client import Patch
from argosy.kube.conditions import is_true, set_condition
from argosy.kube.errors import ApiError
from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.server.trusted import Entry, StoreEvent
from argosy.sim import jobstatus
from argosy.sim.cluster import PODS, PODS_RESOURCE, Object
from argosy.sim.podcontrol import deletion_order
from argosy.sim.pods import TRACKING, Pod, timestamp
from argosy.sim.workload import Workload

__all__ = ["Jobs"]

_INDEX = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{_INDEX}']"}},
}


class Jobs(Workload):
    name = "jobs"
    resource = Resource("batch", "v1", "jobs", "Job")
    component = "job-controller"

    def observe(self, event: StoreEvent) -> None:
        super().observe(event)
        if event.deleted and event.entry.key.startswith(self.table):
            for pod in self.cluster.pods.of_owner(event.entry.uid):
                self.queue.add(pod.key)

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        super().observe_pod(pod, event)
        if pod.tracked and not event.deleted and self._owner_key(pod) is None:
            self.queue.add(pod.key)

    def _owner_key(self, pod: Pod) -> str | None:
        """The key of the Job a pod belongs to, if it exists."""
        key = f"{self.table}{pod.namespace}/{pod.owner_name}"
        entry = self.cluster.access.get(key) if pod.owner_kind == "Job" else None
        return key if entry is not None and entry.uid == pod.owner else None

    async def reconcile(self, key: str) -> Result | None:
        if key.startswith(PODS):
            pod = self.cluster.pods.get(key)
            if pod is not None and self._owner_key(pod) is None:
                await self._let_go(pod)
            return None
        return await super().reconcile(key)

    async def sync(self, entry: Entry, obj: Object) -> Result | None:
        old: Object = obj.get("status") or {}
        if jobstatus.finished(old):
            return await self._expire(obj) if not entry.deleting else None
        status: Object = {**old}
        pods = list(self.cluster.pods.of_owner(entry.uid))
        ended = jobstatus.note(status, pods, self._indexes(obj, pods))
        wait, refused = None, None
        try:
            wait = await self._advance(obj, status, pods) if not entry.deleting else None
        except ApiError as error:  # a pod was refused: what is known is stored all the same
            refused = error
        jobstatus.count(status, self.cluster.pods.of_owner(entry.uid))
        if self._is_over(status):
            self._conclude(obj, status)
        if status != old:
            obj["status"] = status
            await self.cluster.access.update(self.resource, obj)
        # Only pods whose end is stored may go, or they would not be counted.
        await asyncio.gather(*(self._let_go(pod) for pod in ended))
        if jobstatus.finished(status):
            return await self._expire(obj)
        if refused is not None:
            return Result(error=refused.message)
        return Result(requeue_after=wait) if wait is not None else None

    def _is_over(self, status: Object) -> bool:
        """Whether nothing is left to stop or to count."""
        left = status.get("active") or status.get("terminating") or status.get("uncountedTerminatedPods")
        return bool(jobstatus.target(status)) and not left

    def _conclude(self, obj: Object, status: Object) -> None:
        succeeds = jobstatus.target(status) == "SuccessCriteriaMet"
        reason, message = jobstatus.conclude(status, timestamps.now())
        if succeeds:
            self.events.event(reference_to(obj), "Normal", "Completed", "Job completed")
        else:
            self.events.event(reference_to(obj), "Warning", reason, message)

    async def _advance(self, obj: Object, status: Object, pods: list[Pod]) -> float | None:
        """Start or stop pods, or begin to end; returns the seconds until the next check, if any."""
        spec, active, now = obj["spec"], [pod for pod in pods if pod.active], timestamps.now()
        if jobstatus.target(status):
            await self.control.delete(obj, active)
            return None
        if spec.get("suspend"):
            await self._withdraw(obj, active)
            if not is_true(status.get("conditions"), "Suspended"):
                self.events.event(reference_to(obj), "Normal", "Suspended", "Job suspended")
                _set(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
            status.pop("startTime", None)
            return None
        if is_true(status.get("conditions"), "Suspended"):
            self.events.event(reference_to(obj), "Normal", "Resumed", "Job resumed")
            _set(status, "Suspended", "False", "JobResumed", "Job resumed", now)
        status.setdefault("startTime", now)
        left = self._seconds_left(spec, status)
        failure = None
        if jobstatus.failed(status) > spec["backoffLimit"]:
            failure = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif left is not None and left <= 0:
            failure = ("DeadlineExceeded", "Job was active longer than specified deadline")
        if failure is not None:
            _set(status, "FailureTarget", "True", *failure, now)
            await self.control.delete(obj, active)
            return None
        running = await self._scale(obj, status, active)
        wanted, succeeded = spec.get("completions"), jobstatus.succeeded(status)
        if not running and (succeeded >= wanted if wanted is not None else succeeded):
            text = "Reached expected number of succeeded pods"
            _set(status, "SuccessCriteriaMet", "True", "CompletionsReached", text, now)
        return left

    async def _scale(self, obj: Object, status: Object, active: list[Pod]) -> int:
        """Start or stop pods to reach the wanted number of active ones, which is returned."""
        spec, succeeded = obj["spec"], jobstatus.succeeded(status)
        wanted: int = spec["parallelism"]
        if spec.get("completions") is not None:
            wanted = min(wanted, max(0, spec["completions"] - succeeded))
        elif succeeded:
            # A work queue: once one pod has succeeded, no more are started.
            wanted = min(wanted, len(active))
        if len(active) > wanted:
            await self._withdraw(obj, deletion_order(active)[: len(active) - wanted])
            return wanted
        missing = wanted - len(active)
        template = _tracked(spec["template"])
        if spec.get("completionMode") != "Indexed":
            refused = await self.control.create(obj, template, [None] * missing)
            if refused is not None:
                raise refused
            return wanted
        taken = set(jobstatus.parsed(status.get("completedIndexes", ""))) | set(self._indexes(obj, active).values())
        free = [index for index in range(spec["completions"]) if index not in taken]
        for index in free[:missing]:
            prefix = f"{obj['metadata']['name']}-{index}"
            refused = await self.control.create(obj, _indexed(template, index, prefix), [None], prefix=prefix)
            if refused is not None:
                raise refused
        return wanted

    async def _withdraw(self, obj: Object, pods: list[Pod]) -> None:
        """Stop pods that should not count as failed."""
        await asyncio.gather(*(self._let_go(pod) for pod in pods))
        await self.control.delete(obj, pods)

    async def _let_go(self, pod: Pod) -> None:
        """Remove the tracking finalizer from a pod."""
        if not pod.tracked:
            return
        if not pod.deleting:
            await self.cluster.change_pod(pod, _untrack)
            return
        # Without its last finalizer the server must remove it, so this takes the full path.
        entry = self.cluster.access.get(pod.key)
        if entry is None or entry.uid != pod.uid:
            return
        obj = entry.decode()
        _untrack(obj)
        metadata = {
            "finalizers": obj["metadata"].get("finalizers"),
            "uid": pod.uid,
            "resourceVersion": str(entry.version),
        }
        body = {"metadata": metadata}
        await self.client.patch(PODS_RESOURCE, pod.name, body, pod.namespace, kind=Patch.MERGE, into=bytes)

    def _seconds_left(self, spec: Object, status: Object) -> float | None:
        limit = spec.get("activeDeadlineSeconds")
        if limit is None:
            return None
        return timestamp(status.get("startTime")) + self.cluster.timings.real(limit) - clock.time()

    async def _expire(self, obj: Object) -> Result | None:
        """A finished Job is deleted when its time to live is over."""
        ttl = obj["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        status, metadata = obj["status"], obj["metadata"]
        ended = next(one for one in status["conditions"] if one["type"] in ("Complete", "Failed"))
        wait = timestamp(ended["lastTransitionTime"]) + self.cluster.timings.real(ttl) - clock.time()
        if wait > 0:
            return Result(requeue_after=wait)
        await self.client.delete(
            self.resource, metadata["name"], metadata["namespace"], uid=metadata["uid"], propagation="Foreground"
        )
        return None

    def _indexes(self, obj: Object, pods: list[Pod]) -> dict[str, int]:
        """The index of each pod by uid; none for Jobs that have no indexes."""
        if obj["spec"].get("completionMode") != "Indexed":
            return {}
        found = {}
        for pod in pods:
            text = self.cluster.label_of(pod, _INDEX)
            if text.isdecimal():
                found[pod.uid] = int(text)
        return found


def _set(status: Object, kind: str, state: str, reason: str, message: str, now: str) -> None:
    status["conditions"] = set_condition(status.get("conditions"), kind, state, reason, message, now)


def _tracked(template: Object) -> Object:
    metadata = dict(template.get("metadata") or {})
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING]
    return {**template, "metadata": metadata}


def _untrack(pod: Object) -> bool:
    metadata = pod["metadata"]
    held = metadata.pop("finalizers", None) or []
    left = [one for one in held if one != TRACKING]
    if left:
        metadata["finalizers"] = left
    return left != held


def _indexed(template: Object, index: int, hostname: str) -> Object:
    metadata = dict(template["metadata"])
    for field in ("labels", "annotations"):
        metadata[field] = {**(metadata.get(field) or {}), _INDEX: str(index)}
    spec = {"hostname": hostname, **template["spec"]}
    for field in ("initContainers", "containers"):
        if field in spec:
            spec[field] = [{**one, "env": [*(one.get("env") or ()), _INDEX_VARIABLE]} for one in spec[field]]
    return {**template, "metadata": metadata, "spec": spec}
