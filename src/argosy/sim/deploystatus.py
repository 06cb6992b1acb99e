"""The status of a Deployment from its ReplicaSets': counts, Available, Progressing with its deadline. Pure: the caller
brings the time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.conditions import find, remove_condition
from argosy.sim.pods import timestamp

__all__ = ["complete", "counted", "has_deadline", "paused_or_resumed", "progressed", "put", "seconds_to_deadline"]

Object = dict[str, Any]
NEW_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
_NO_DEADLINE = 2**31 - 1


def counted(deployment: Object, sets: Sequence[Object], new: Object | None, unavailable: int, now: str) -> Object:
    """The numbers and the Available condition; other conditions as they were."""
    spec, old = deployment["spec"], deployment.get("status") or {}
    available = _sum(sets, "availableReplicas")
    amounts = (
        ("replicas", _sum(sets, "replicas")),
        ("updatedReplicas", _sum([new] if new else [], "replicas")),
        ("readyReplicas", _sum(sets, "readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", max(0, sum(one["spec"]["replicas"] for one in sets) - available)),
    )
    status: Object = {"observedGeneration": deployment["metadata"]["generation"]}
    status.update({name: amount for name, amount in amounts if amount})
    status["terminatingReplicas"] = _sum(sets, "terminatingReplicas")
    if "collisionCount" in old:
        status["collisionCount"] = old["collisionCount"]
    status["conditions"] = list(old.get("conditions") or ())
    if available >= spec["replicas"] - unavailable:
        put(status, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    else:
        text = "Deployment does not have minimum availability."
        put(status, "Available", "False", "MinimumReplicasUnavailable", text, now)
    return status


def _sum(sets: Sequence[Object], field: str) -> int:
    return sum((one.get("status") or {}).get(field) or 0 for one in sets)


def progressed(
    deployment: Object, status: Object, new: Object | None, failures: Sequence[Object], now: str, speed: float
) -> None:
    """Set Progressing and ReplicaFailure in a new status, as they follow from the old one."""
    old = deployment.get("status") or {}
    current = find(status["conditions"], "Progressing")
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if not has_deadline(deployment):
        status["conditions"] = remove_condition(status["conditions"], "Progressing")
    elif not _was_complete(status, current):
        if complete(deployment, status):
            put(status, "Progressing", "True", NEW_AVAILABLE, f"{subject} has successfully progressed.", now)
        elif _moved(old, status):
            transition = current["lastTransitionTime"] if current and current["status"] == "True" else now
            status["conditions"] = remove_condition(status["conditions"], "Progressing")
            put(status, "Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
            status["conditions"][-1]["lastTransitionTime"] = transition
        elif seconds_to_deadline(deployment, status, timestamp(now), speed) < 0:
            put(status, "Progressing", "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
    if failures:
        failure = failures[0]
        put(status, "ReplicaFailure", failure["status"], failure["reason"], failure["message"], now)
    else:
        status["conditions"] = remove_condition(status["conditions"], "ReplicaFailure")


def _was_complete(status: Mapping[str, Any], current: Mapping[str, Any] | None) -> bool:
    """Whether nothing rolls out: then changed counts say nothing about progress."""
    settled = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return settled and current is not None and current.get("reason") == NEW_AVAILABLE


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    def of(status: Mapping[str, Any], field: str) -> int:
        return int(status.get(field) or 0)

    old_rest = of(old, "replicas") - of(old, "updatedReplicas")
    new_rest = of(new, "replicas") - of(new, "updatedReplicas")
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return new_rest < old_rest or any(of(new, field) > of(old, field) for field in grown)


def complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    wanted = deployment["spec"]["replicas"]
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return bool(seen) and all((status.get(field) or 0) == wanted for field in fields)


def has_deadline(deployment: Object) -> bool:
    return bool(deployment["spec"].get("progressDeadlineSeconds", _NO_DEADLINE) != _NO_DEADLINE)


def seconds_to_deadline(deployment: Object, status: Mapping[str, Any], now: float, speed: float) -> float:
    """Until lack of progress becomes a failure; below zero when it is over, minus infinity when that
    is noted already, infinity when it cannot become one."""
    condition = find(status.get("conditions"), "Progressing")
    if not has_deadline(deployment) or condition is None or condition.get("reason") == NEW_AVAILABLE:
        return float("inf")
    if condition.get("reason") == TIMED_OUT:
        return -float("inf")
    deadline = float(deployment["spec"]["progressDeadlineSeconds"]) / speed
    return timestamp(condition.get("lastUpdateTime")) + deadline - now


def paused_or_resumed(deployment: Object, now: str) -> None:
    """Record in the old status that a rollout was paused or resumed; its deadline counts anew from there."""
    status: Object = deployment.setdefault("status", {})
    condition = find(status.get("conditions"), "Progressing")
    reason = (condition or {}).get("reason")
    if not has_deadline(deployment) or reason == TIMED_OUT:
        return
    paused = bool(deployment["spec"].get("paused"))
    if paused and reason != "DeploymentPaused":
        put(status, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)
    elif not paused and reason == "DeploymentPaused":
        put(status, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now)


def put(status: Object, kind: str, state: str, reason: str, message: str, now: str) -> None:
    """Set a condition, unless one with the same status and reason exists: then it stays as it is."""
    conditions: list[Object] = status.get("conditions") or []
    current = find(conditions, kind)
    if current is not None and current["status"] == state and current.get("reason") == reason:
        return
    transition = current["lastTransitionTime"] if current is not None and current["status"] == state else now
    condition = {
        "type": kind,
        "status": state,
        "lastUpdateTime": now,
        "lastTransitionTime": transition,
        "reason": reason,
        "message": message,
    }
    status["conditions"] = [*(one for one in conditions if one["type"] != kind), condition]
