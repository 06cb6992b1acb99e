"""Pods as kubectl shows them: the STATUS column tells the most important fact, not just the phase."""

from typing import Any

from argosy.server.printers.base import NONE, Object, Printer, age, at, columns, condition, name, seconds, since

__all__ = ["PRINTERS"]

_NODE_LOST = "NodeLost"


def _restartable(container: Object | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


def _ended(status: Object, prefix: str = "") -> str:
    """Why a container ended."""
    terminated = at(status, "state", "terminated") or {}
    if terminated.get("reason"):
        return f"{prefix}{terminated['reason']}"
    if terminated.get("signal"):
        return f"{prefix}Signal:{terminated['signal']}"
    return f"{prefix}ExitCode:{terminated.get('exitCode', 0)}"


class _Tally:
    """The summary of the containers' statuses."""

    def __init__(self, reason: str):
        self.reason = reason
        self.ready = 0
        self.restarts = 0
        self.last_restart: str | None = None

    def count_restarts(self, status: Object) -> None:
        self.restarts += int(status.get("restartCount") or 0)
        finished = at(status, "lastState", "terminated", "finishedAt")
        if finished and (seconds(finished) or 0) > (seconds(self.last_restart) or 0):
            self.last_restart = finished


def _initializing(pod: Object, tally: _Tally, sidecars: _Tally) -> bool:
    """Whether an init container delays the pod; `tally` then has which and why."""
    declared = at(pod, "spec", "initContainers") or []
    by_name = {container["name"]: container for container in declared}
    for index, status in enumerate(at(pod, "status", "initContainerStatuses") or []):
        tally.count_restarts(status)
        restartable = _restartable(by_name.get(status.get("name")))
        if restartable:
            sidecars.count_restarts(status)
        terminated, waiting = at(status, "state", "terminated"), at(status, "state", "waiting", "reason")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if restartable and status.get("started"):
            tally.ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            tally.reason = _ended(status, "Init:")
        elif waiting and waiting != "PodInitializing":
            tally.reason = f"Init:{waiting}"
        else:
            tally.reason = f"Init:{index}/{len(declared)}"
        return True
    return False


def _running(pod: Object, tally: _Tally) -> None:
    running, failure = False, ""
    for status in reversed(at(pod, "status", "containerStatuses") or []):
        tally.count_restarts(status)
        terminated = at(status, "state", "terminated")
        if waiting := at(status, "state", "waiting", "reason"):
            tally.reason = waiting
        elif terminated is not None:
            tally.reason = _ended(status)
            if terminated.get("exitCode"):
                failure = tally.reason
        elif status.get("ready") and at(status, "state", "running") is not None:
            running = True
            tally.ready += 1
    if tally.reason != "Completed":
        return
    if running and (condition(pod, "Ready") or {}).get("status") == "True":
        tally.reason = "Running"
    elif failure:
        tally.reason = failure
    elif running:
        tally.reason = "NotReady"


def _tally(pod: Object) -> _Tally:
    phase = at(pod, "status", "phase") or ""
    reason = at(pod, "status", "reason") or phase
    if (condition(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    tally, sidecars = _Tally(reason), _Tally(reason)
    if not _initializing(pod, tally, sidecars) or (condition(pod, "Initialized") or {}).get("status") == "True":
        tally.restarts, tally.last_restart = sidecars.restarts, sidecars.last_restart
        _running(pod, tally)
    if at(pod, "metadata", "deletionTimestamp"):
        if at(pod, "status", "reason") == _NODE_LOST:
            tally.reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            tally.reason = "Terminating"
    return tally


def _gates(pod: Object) -> str:
    gates = at(pod, "spec", "readinessGates") or []
    if not gates:
        return NONE
    met = sum((condition(pod, gate.get("conditionType")) or {}).get("status") == "True" for gate in gates)
    return f"{met}/{len(gates)}"


def _cells(pod: Object, now: float) -> list[Any]:
    tally = _tally(pod)
    containers = len(at(pod, "spec", "containers") or [])
    containers += sum(_restartable(container) for container in at(pod, "spec", "initContainers") or [])
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts += f" ({since(tally.last_restart, now)} ago)"
    addresses = at(pod, "status", "podIPs") or [{}]
    return [
        name(pod),
        f"{tally.ready}/{containers}",
        tally.reason,
        restarts,
        age(pod, now),
        addresses[0].get("ip") or NONE,
        at(pod, "spec", "nodeName") or NONE,
        at(pod, "status", "nominatedNodeName") or NONE,
        _gates(pod),
    ]


_FINISHED = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


def _conditions(pod: Object) -> list[Object]:
    finished = _FINISHED.get(at(pod, "status", "phase") or "")
    if finished is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": finished[0], "message": finished[1]}]


PRINTERS = {
    "Pod": Printer(
        columns("Name", "Ready", "Status", "Restarts", "Age", wide=("IP", "Node", "Nominated Node", "Readiness Gates")),
        _cells,
        _conditions,
    ),
}
