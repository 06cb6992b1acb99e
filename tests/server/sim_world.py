"""A simulated member for tests: fast timings, small builders, and waiting for what is stored instead of sleeping."""

import asyncio
from collections.abc import Callable
from typing import Any

from argosy.kube.resource import Resource
from argosy.sim.member import Member
from argosy.sim.timings import Timings
from tests.harness.eventually import PATIENCE

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
PODS = Resource("", "v1", "pods", "Pod")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
FAST = Timings(start=0.03, stop=0.02, node_grace=0.05, eviction=0.2, job=0.05, settle=0.005)

Object = dict[str, Any]


def deployment(name: str = "web", replicas: int = 3, image: str = "nginx:1", cpu: str = "100m", **spec: Any) -> Object:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


def stored(member: Member, table: str) -> list[Object]:
    return [entry.decode() for entry in member.embedded.server.store.table(table).entries.values()]


def pods(member: Member) -> list[Object]:
    """Those that are not on their way out."""
    return [pod for pod in stored(member, "core/pods") if "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def condition(obj: Object, kind: str) -> Object:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), {})


def image_of(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"])


async def until(member: Member, holds: Callable[[], Any], timeout: float = PATIENCE) -> Any:
    """Wait until what is stored makes `holds` true; looked at after every change."""
    changed = asyncio.Event()
    unsubscribe = member.embedded.server.store.subscribe(lambda event: changed.set())
    try:
        async with asyncio.timeout(timeout):
            while True:
                changed.clear()
                found = holds()
                if found:
                    return found
                await changed.wait()
    finally:
        unsubscribe()


def rolled_out(member: Member, name: str = "web") -> Callable[[], Object | None]:
    def holds() -> Object | None:
        entry = member.embedded.server.store.get(f"apps/deployments/default/{name}")
        if entry is None:
            return None
        obj = entry.decode()
        wanted, status = obj["spec"]["replicas"], obj.get("status") or {}
        counts = [
            status.get(field, 0) for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        ]
        seen = status.get("observedGeneration") == obj["metadata"]["generation"]
        return obj if seen and counts == [wanted] * 4 and "unavailableReplicas" not in status else None

    return holds
