"""Health as Argo CD finds it from an object's own spec and status: the view of a tool that knows nothing of a federation."""

from typing import Any

__all__ = ["health"]

HEALTHY, PROGRESSING, DEGRADED = "Healthy", "Progressing", "Degraded"


def health(obj: dict[str, Any]) -> str:
    return _CHECKS[obj["kind"]](obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"].get("generation") or 0)


def _deployment(spec: dict[str, Any], status: dict[str, Any], generation: int) -> str:
    if generation > status.get("observedGeneration", 0):
        return PROGRESSING
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded":
        return DEGRADED
    updated = status.get("updatedReplicas", 0)
    if updated < spec.get("replicas", 1) or status.get("replicas", 0) > updated:
        return PROGRESSING
    return HEALTHY if status.get("availableReplicas", 0) >= updated else PROGRESSING


def _stateful_set(spec: dict[str, Any], status: dict[str, Any], generation: int) -> str:
    if not status.get("observedGeneration") or generation > status["observedGeneration"]:
        return PROGRESSING
    if status.get("readyReplicas", 0) < spec.get("replicas", 1):
        return PROGRESSING
    return HEALTHY if status.get("updateRevision") == status.get("currentRevision") else PROGRESSING


def _daemon_set(spec: dict[str, Any], status: dict[str, Any], generation: int) -> str:
    if generation > status.get("observedGeneration", 0):
        return PROGRESSING
    desired = status.get("desiredNumberScheduled", 0)
    if status.get("updatedNumberScheduled", 0) < desired:
        return PROGRESSING
    return HEALTHY if status.get("numberAvailable", 0) >= desired else PROGRESSING


def _job(spec: dict[str, Any], status: dict[str, Any], generation: int) -> str:
    stated = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}
    if "Failed" in stated:
        return DEGRADED
    return HEALTHY if "Complete" in stated else PROGRESSING


_CHECKS = {"Deployment": _deployment, "StatefulSet": _stateful_set, "DaemonSet": _daemon_set, "Job": _job}
