"""The Job controller: pods run to completion, so many at a time, until enough have succeeded or too many have failed.

Indexed Jobs give each pod its index. Pods carry no tracking finalizer, so what the status has counted once stays counted.
Pod failure policies, success policies and limits per index are not simulated.
"""

import time

from argosy.kube.conditions import find, set_condition
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.sim.cluster import Object, now_text
from argosy.sim.podcontrol import deletion_order
from argosy.sim.pods import Pod, timestamp
from argosy.sim.workload import Workload

__all__ = ["Jobs"]

_INDEX = "batch.kubernetes.io/job-completion-index"


class Jobs(Workload):
    name = "jobs"
    resource = Resource("batch", "v1", "jobs", "Job")
    component = "job-controller"

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.store.get(key)
        if entry is None or entry.deleting:
            return None
        obj = entry.decode()
        old: Object = obj.get("status") or {}
        if _finished(old):
            return await self._expire(obj)
        status: Object = {**old}
        pods = list(self.cluster.pods.of_owner(entry.uid))
        self._count(obj, status, pods)
        wait = await self._advance(obj, status, pods)
        self._count(obj, status, list(self.cluster.pods.of_owner(entry.uid)))
        if status != old:
            obj["status"] = status
            await self.cluster.write_back(self.resource, obj)
        if _finished(status):
            return await self._expire(obj)
        return Result(requeue_after=wait) if wait is not None else None

    def _count(self, obj: Object, status: Object, pods: list[Pod]) -> None:
        active = [pod for pod in pods if pod.active]
        indexes = {self._index(pod) for pod in pods if pod.phase == "Succeeded"} - {None}
        indexed = obj["spec"].get("completionMode") == "Indexed"
        if indexed:
            indexes |= set(_parsed(status.get("completedIndexes", "")))
        succeeded = len(indexes) if indexed else sum(pod.phase == "Succeeded" for pod in pods)
        amounts = {
            "active": len(active),
            "succeeded": max(succeeded, status.get("succeeded") or 0),
            "failed": max(sum(pod.phase == "Failed" for pod in pods), status.get("failed") or 0),
        }
        for field, amount in amounts.items():
            if amount:
                status[field] = amount
            else:
                status.pop(field, None)
        status["ready"] = sum(pod.ready for pod in active)
        status["terminating"] = sum(pod.deleting for pod in pods)
        status.setdefault("uncountedTerminatedPods", {})
        if indexed and indexes:
            status["completedIndexes"] = _ranges(sorted(one for one in indexes if one is not None))

    async def _advance(self, obj: Object, status: Object, pods: list[Pod]) -> float | None:
        """Start or stop pods, or finish; returns in how many seconds to look again, if at all."""
        spec, active = obj["spec"], [pod for pod in pods if pod.active]
        now = now_text()
        if spec.get("suspend"):
            await self.control.delete(active)
            status["conditions"] = set_condition(
                status.get("conditions"), "Suspended", "True", "JobSuspended", "Job suspended", now
            )
            status.pop("startTime", None)
            return None
        if find(status.get("conditions"), "Suspended") is not None:
            status["conditions"] = set_condition(
                status["conditions"], "Suspended", "False", "JobResumed", "Job resumed", now
            )
        status.setdefault("startTime", now)
        wanted = spec.get("completions")
        succeeded = status.get("succeeded", 0)
        left = self._seconds_left(spec, status)
        if status.get("failed", 0) > spec["backoffLimit"]:
            await self._fail(status, active, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
            return None
        if left is not None and left <= 0:
            await self._fail(status, active, "DeadlineExceeded", "Job was active longer than specified deadline")
            return None
        if (wanted is not None and succeeded >= wanted) or (wanted is None and succeeded and not active):
            await self.control.delete(active)
            _complete(status, now)
            return None
        await self._scale(obj, active, succeeded)
        return left

    async def _scale(self, obj: Object, active: list[Pod], succeeded: int) -> None:
        spec = obj["spec"]
        wanted = spec["parallelism"]
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - succeeded)
        elif succeeded:
            # A queue of work: once one is through, no more are started.
            wanted = min(wanted, len(active))
        if len(active) > wanted:
            await self.control.delete(deletion_order(active)[: len(active) - wanted])
            return
        missing = wanted - len(active)
        if spec.get("completionMode") != "Indexed":
            refused = await self.control.create(obj, spec["template"], [None] * missing)
            if refused is not None:
                raise refused
            return
        done = {self._index(pod) for pod in self.cluster.pods.of_owner(obj["metadata"]["uid"]) if pod.phase != "Failed"}
        done |= set(_parsed((obj.get("status") or {}).get("completedIndexes", "")))
        free = [index for index in range(spec["completions"]) if index not in done]
        for index in free[:missing]:
            refused = await self.control.create(obj, _indexed(spec["template"], index), [None])
            if refused is not None:
                raise refused

    async def _fail(self, status: Object, active: list[Pod], reason: str, message: str) -> None:
        await self.control.delete(active)
        for kind in ("FailureTarget", "Failed"):
            status["conditions"] = set_condition(status.get("conditions"), kind, "True", reason, message, now_text())

    def _seconds_left(self, spec: Object, status: Object) -> float | None:
        limit = spec.get("activeDeadlineSeconds")
        if limit is None:
            return None
        return timestamp(status.get("startTime")) + self.cluster.timings.real(limit) - time.time()

    async def _expire(self, obj: Object) -> Result | None:
        """A finished Job goes when its time to live is over."""
        ttl = obj["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        status, metadata = obj["status"], obj["metadata"]
        ended = next(one for one in status["conditions"] if one["type"] in ("Complete", "Failed"))
        wait = timestamp(ended["lastTransitionTime"]) + self.cluster.timings.real(ttl) - time.time()
        if wait > 0:
            return Result(requeue_after=wait)
        await self.client.delete(
            self.resource, metadata["name"], metadata["namespace"], uid=metadata["uid"], propagation="Foreground"
        )
        return None

    def _index(self, pod: Pod) -> int | None:
        entry = self.cluster.store.get(pod.key)
        text = entry.labels.get(_INDEX, "") if entry is not None else ""
        return int(text) if text.isdecimal() else None


def _finished(status: Object) -> bool:
    return any(one["type"] in ("Complete", "Failed") for one in status.get("conditions") or ())


def _complete(status: Object, now: str) -> None:
    for kind in ("SuccessCriteriaMet", "Complete"):
        status["conditions"] = set_condition(
            status.get("conditions"),
            kind,
            "True",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
            now,
        )
    status["completionTime"] = now


def _indexed(template: Object, index: int) -> Object:
    metadata = dict(template.get("metadata") or {})
    for field in ("labels", "annotations"):
        metadata[field] = {**(metadata.get(field) or {}), _INDEX: str(index)}
    return {**template, "metadata": metadata}


def _parsed(text: str) -> list[int]:
    """The numbers of a list such as "0,2-4"."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            found += range(int(first), int(last or first) + 1)
    return found


def _ranges(indexes: list[int]) -> str:
    parts: list[list[int]] = []
    for index in indexes:
        if parts and parts[-1][-1] == index - 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join("-".join(str(one) for one in part) for part in parts)
