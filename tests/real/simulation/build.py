"""Manifests for the scenarios, and what they wait for."""

from collections.abc import Callable
from typing import Any

from tests.real.simulation import view
from tests.real.simulation.pair import GATE, Side
from tests.real.simulation.record import Object

GOOD, NEXT, BAD, CRASH = "app:1", "app:2", "app:bad", "app:crash"


def template(image: str = GOOD, cpu: str = "50m", **spec: Any) -> Object:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def gated(image: str = GOOD) -> Object:
    """Pods that run, and are ready when the scenario says so."""
    return template(image, readinessGates=[{"conditionType": GATE}])


def deployment(replicas: int, name: str = "web", **spec: Any) -> Object:
    return _workload("apps/v1", "Deployment", name, {"replicas": replicas, "template": template(), **spec})


def replica_set(replicas: int, name: str = "web", **spec: Any) -> Object:
    return _workload("apps/v1", "ReplicaSet", name, {"replicas": replicas, "template": template(), **spec})


def stateful_set(replicas: int, **spec: Any) -> Object:
    own = {"replicas": replicas, "serviceName": "web", "template": template(), **spec}
    return _workload("apps/v1", "StatefulSet", "web", own)


def daemon_set(**spec: Any) -> Object:
    return _workload("apps/v1", "DaemonSet", "web", {"template": template(), **spec})


def job(name: str = "web", image: str = GOOD, pod: Object | None = None, **spec: Any) -> Object:
    own = {"template": template(image, restartPolicy="Never", **(pod or {})), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": own}


def _workload(version: str, kind: str, name: str, spec: Object) -> Object:
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def rolling(surge: int | str, unavailable: int | str) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def with_image(image: str) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


def complete(name: str = "web") -> Callable[[Side], bool]:
    """The Deployment has rolled out, and nothing of it is on its way out."""

    def holds(side: Side) -> bool:
        obj = side.one("Deployment", name)
        status, wanted = obj.get("status") or {}, obj["spec"].get("replicas")
        counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
        seen = status.get("observedGeneration") == obj["metadata"].get("generation", -1)
        return seen and counts == [wanted] * 3 and not status.get("terminatingReplicas")

    return holds


def sizes(*wanted: int) -> Callable[[Side], bool]:
    """The ReplicaSets, in the order in which they came, are to have so many pods, and have them."""

    def holds(side: Side) -> bool:
        found = sorted(side.all("ReplicaSet"), key=lambda one: side.record.numbers[one["metadata"]["uid"]])
        asked = [one["spec"]["replicas"] for one in found]
        there = [(one.get("status") or {}).get("replicas") for one in found]
        pods = sum("deletionTimestamp" not in pod["metadata"] for pod in side.all("Pod"))
        return asked == there == [*wanted] and pods == sum(wanted)

    return holds


def condition(kind: str, name: str, type: str, wanted: str) -> Callable[[Side], bool]:
    return lambda side: view.conditions(side.one(kind, name)).get(type) == wanted


def ready(kind: str, count: int, field: str = "readyReplicas", name: str = "web") -> Callable[[Side], bool]:
    def holds(side: Side) -> bool:
        obj = side.one(kind, name)
        status = obj.get("status") or {}
        seen = status.get("observedGeneration") == obj["metadata"].get("generation", -1)
        return seen and status.get(field, 0) == count

    return holds


def gone(kind: str, name: str = "web") -> Callable[[Side], bool]:
    """It was there, and is no longer."""
    return lambda side: any((one.type, one.kind, one.name) == ("DELETED", kind, name) for one in side.record.entries)


def empty(*kinds: str) -> Callable[[Side], bool]:
    return lambda side: not any(side.all(kind) for kind in kinds)
