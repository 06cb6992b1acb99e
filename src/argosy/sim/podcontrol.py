"""What the controllers of workloads share: making pods from a template, adopting and releasing them, writing a status."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, NotFound
from argosy.kube.events import EventRecorder
from argosy.kube.owners import owner_reference
from argosy.kube.references import reference_to
from argosy.kube.selectors import LabelSelector, SelectorError, from_label_selector
from argosy.sim.cluster import PODS_RESOURCE, Cluster, Object
from argosy.sim.podneeds import account_refusal
from argosy.sim.pods import Pod

__all__ = ["PodControl", "available", "deletion_order", "parse_selector"]

#: Largest number of pods created or deleted by one reconcile; the rest follows in the next.
BURST = 500
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


class PodControl:
    def __init__(self, cluster: Cluster, client: Client, events: EventRecorder):
        self._cluster = cluster
        self._client = client
        self._events = events

    async def create(
        self, owner: Object, template: Mapping[str, Any], names: Sequence[str | None], *, prefix: str = ""
    ) -> ApiError | None:
        """One pod for each name, in growing batches so that a refusal occurs once, not 500 times.

        None is a generated name, which begins with `prefix`, else with the owner's.

        Returns the refusal, if there was one.
        """
        start, batch = 0, 1
        while start < len(names):
            made = [self._create_one(owner, template, name, prefix) for name in names[start : start + batch]]
            for result in await asyncio.gather(*made, return_exceptions=True):
                if isinstance(result, ApiError):
                    self._events.event(
                        reference_to(owner), "Warning", "FailedCreate", f"Error creating: {result.message}"
                    )
                    return result
                if isinstance(result, BaseException):
                    raise result
            start, batch = start + batch, batch * 2
        return None

    async def _create_one(self, owner: Object, template: Mapping[str, Any], name: str | None, prefix: str) -> None:
        wanted = template.get("metadata") or {}
        metadata: Object = {
            key: wanted[key] for key in ("labels", "annotations", "finalizers") if wanted.get(key) is not None
        }
        metadata["generateName"] = f"{prefix or owner['metadata']['name']}-"
        if name is not None:
            metadata["name"] = name
        metadata["ownerReferences"] = [owner_reference(owner, controller=True, block_owner_deletion=True)]
        metadata["namespace"] = owner["metadata"]["namespace"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
        # The server changes what it is given, and the template is for more pods than this one.
        own = orjson.loads(orjson.dumps(pod))
        if (refusal := account_refusal(own, self._cluster.access.get)) is not None:
            raise refusal
        await self._cluster.access.create(self._client.field_manager, PODS_RESOURCE, own)
        self._events.event(reference_to(owner), "Normal", "SuccessfulCreate", f"Created pod: {own['metadata']['name']}")

    async def delete(self, owner: Object, pods: Iterable[Pod]) -> None:
        doomed = list(pods)
        deletes = [self._client.delete(PODS_RESOURCE, pod.name, pod.namespace, uid=pod.uid) for pod in doomed]
        for pod, result in zip(doomed, await asyncio.gather(*deletes, return_exceptions=True), strict=True):
            if isinstance(result, NotFound):
                continue
            if isinstance(result, BaseException):
                raise result
            self._events.event(reference_to(owner), "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def adopt(self, owner: Object, selector: LabelSelector) -> None:
        """Adopt the pods without a controller that the selector matches."""
        namespace = owner["metadata"]["namespace"]
        for pod in [one for one in self._cluster.pods.orphans.values() if one.namespace == namespace and one.active]:
            entry = self._cluster.access.get(pod.key)
            if entry is None or not selector.matches(entry.labels):
                continue
            references = entry.decode()["metadata"].get("ownerReferences") or []
            mine = owner_reference(owner, controller=True, block_owner_deletion=True)
            await self._own(pod, [*references, mine], entry.version)

    async def release(self, owner: Object, selector: LabelSelector, suspects: Iterable[str]) -> None:
        """Release pods whose labels the selector no longer matches."""
        uid = owner["metadata"]["uid"]
        for key in suspects:
            pod, entry = self._cluster.pods.get(key), self._cluster.access.get(key)
            if pod is None or entry is None or pod.owner != uid or selector.matches(entry.labels):
                continue
            references = entry.decode()["metadata"].get("ownerReferences") or []
            await self._own(pod, [one for one in references if one.get("uid") != uid], entry.version)

    async def _own(self, pod: Pod, references: list[Object], version: int) -> None:
        body = {"metadata": {"ownerReferences": references, "uid": pod.uid, "resourceVersion": str(version)}}
        await self._client.patch(PODS_RESOURCE, pod.name, body, pod.namespace, kind=Patch.MERGE, into=bytes)


def parse_selector(spec: Mapping[str, Any]) -> LabelSelector | None:
    """The selector of a workload; None if it cannot be read or would select everything."""
    try:
        selector = from_label_selector(spec.get("selector"))
    except SelectorError:
        return None
    return None if selector.empty else selector


def available(pod: Pod, min_ready: float, now: float) -> float:
    """Seconds until a pod counts as available: 0 when it does, infinity while it is not ready."""
    if not pod.ready:
        return float("inf")
    return max(0.0, pod.ready_since + min_ready - now) if min_ready else 0.0


def deletion_order(pods: Sequence[Pod]) -> list[Pod]:
    """In the order of deletion: unassigned, pending, not ready, cheap to delete, on crowded nodes, younger."""
    crowd: dict[str, int] = {}
    for pod in pods:
        crowd[pod.node] = crowd.get(pod.node, 0) + 1

    def rank(pod: Pod) -> tuple[Any, ...]:
        return (
            bool(pod.node),
            _PHASE_ORDER.get(pod.phase, 0),
            pod.ready,
            pod.cost,
            -crowd[pod.node],
            -pod.ready_since,
            -pod.created,
            pod.name,
        )

    return sorted(pods, key=rank)
