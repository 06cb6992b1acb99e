"""The status a kubelet reports for a pod in each situation: starting, running, stuck, ended, on a lost node. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.conditions import set_condition
from argosy.sim.images import Fate, fate
from argosy.sim.podneeds import Need

__all__ = ["disrupted", "ended", "readiness", "running", "stuck", "unconfigured", "unreachable"]

Object = dict[str, Any]


def running(pod: Object, address: str, host: str, now: str) -> None:
    """All containers run and are ready; so is the pod, unless a readiness gate prevents it."""
    status = _placed(pod, address, host, now)
    status["phase"] = "Running"
    _containers(pod, {"running": {"startedAt": now}}, ready=True)
    _conditions(status, now, ready=True)
    readiness(pod, now)


def readiness(pod: Object, now: str) -> None:
    """The Ready condition of a pod whose containers are ready, by its readiness gates."""
    status = pod["status"]
    met = {one["type"] for one in status["conditions"] if one["status"] == "True"}
    closed = [
        one["conditionType"] for one in pod["spec"].get("readinessGates") or () if one["conditionType"] not in met
    ]
    if closed:
        text = ", ".join(f'the status of pod readiness gate "{name}" is not "True"' for name in closed)
        given = ("False", "ReadinessGatesNotReady", text)
    else:
        given = ("True", "", "")
    status["conditions"] = _tidy(set_condition(status["conditions"], "Ready", *given, now))


def stuck(pod: Object, address: str, host: str, now: str) -> None:
    """Some image cannot be pulled, or ends as soon as it starts."""
    status = _placed(pod, address, host, now)
    fates = {container["name"]: fate(container.get("image", "")) for container in pod["spec"]["containers"]}
    unpulled = any(one is Fate.UNPULLABLE for one in fates.values())
    names = [name for name, one in fates.items() if one in (Fate.UNPULLABLE, Fate.CRASHES)]
    statuses = []
    for container in pod["spec"]["containers"]:
        one = fates[container["name"]]
        if one is Fate.UNPULLABLE:
            message = f'Back-off pulling image "{container["image"]}"'
            state: Object = {"waiting": {"reason": "ImagePullBackOff", "message": message}}
        elif one is Fate.CRASHES:
            message = f"back-off 5m0s restarting failed container={container['name']} pod={pod['metadata']['name']}"
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        else:
            state = {"running": {"startedAt": now}}
        last: Object = {}
        if one is Fate.CRASHES:
            last = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}}
        told = _container(container, state, ready="running" in state, restarts=int(one is Fate.CRASHES))
        statuses.append({**told, "lastState": last})
    status["containerStatuses"] = statuses
    status["phase"] = "Pending" if unpulled else "Running"
    _conditions(status, now, ready=False, message=f"containers with unready status: [{' '.join(names)}]")


def unconfigured(pod: Object, host: str, missing: Sequence[Need], now: str) -> None:
    """What its volumes or containers need is not there. Without its volumes nothing of the pod is started."""
    spec, status = pod["spec"], pod.setdefault("status", {})
    status["hostIP"], status["hostIPs"] = host, [{"ip": host}]
    status.setdefault("startTime", now)
    status["phase"] = "Pending"
    unmounted = any(need.volume for need in missing)
    lacking = {need.container: need.text for need in missing if need.container}
    starting = unmounted or any(each["name"] in lacking for each in spec.get("initContainers") or ())
    idle = "ContainerCreating" if unmounted or not spec.get("initContainers") else "PodInitializing"
    for field, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        made = []
        for container in spec.get(field) or ():
            state: Object = {"waiting": {"reason": idle}}
            if not unmounted and container["name"] in lacking:
                reason = "CreateContainerConfigError"
                state = {"waiting": {"reason": reason, "message": lacking[container["name"]]}}
            elif not starting and field == "initContainers":
                times = {"startedAt": status["startTime"], "finishedAt": status["startTime"]}
                state = {"terminated": {"exitCode": 0, "reason": "Completed", **times}}
            elif not starting:
                state = {"running": {"startedAt": status["startTime"]}}
            made.append(_container(container, state, ready="waiting" not in state))
        if made:
            status[statuses] = made
    unready = [each["name"] for each in status["containerStatuses"] if not each["ready"]]
    _conditions(status, now, ready=False, message=f"containers with unready status: [{' '.join(unready)}]")
    for kind in ("PodReadyToStartContainers", "Initialized") if starting else ():
        if kind == "PodReadyToStartContainers" and not unmounted:
            continue
        if kind == "Initialized" and not spec.get("initContainers"):
            continue
        reason = "ContainersNotInitialized" if kind == "Initialized" else ""
        status["conditions"] = _tidy(set_condition(status["conditions"], kind, "False", reason, "", now))


def ended(pod: Object, code: int, now: str) -> None:
    """All containers have ended, and nothing starts them again."""
    status = pod.setdefault("status", {})
    started = status.get("startTime", now)
    reason = "Completed" if code == 0 else "Error"
    status["phase"] = "Succeeded" if code == 0 else "Failed"
    state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now}}
    _containers(pod, state, ready=False)
    conditions = status.get("conditions")
    for kind in ("Ready", "ContainersReady"):
        why = "PodCompleted" if code == 0 else "PodFailed"
        conditions = set_condition(conditions, kind, "False", why, "", now)
    status["conditions"] = _tidy(conditions or [])


def unreachable(pod: Object, now: str) -> bool:
    """The node stopped reporting: its pods no longer count as ready. False if that is recorded already."""
    status = pod.get("status") or {}
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    if ready is None or ready["status"] == "False":
        return False
    ready.update({"status": "False", "lastTransitionTime": now})
    return True


def disrupted(pod: Object, now: str) -> bool:
    """It must leave a node with a NoExecute taint. False if that is recorded already."""
    status = pod.setdefault("status", {})
    before = status.get("conditions")
    text = "Taint manager: deleting due to NoExecute taint"
    status["conditions"] = set_condition(before, "DisruptionTarget", "True", "DeletionByTaintManager", text, now)
    return bool(status["conditions"] != before)


def _placed(pod: Object, address: str, host: str, now: str) -> Object:
    status: Object = pod.setdefault("status", {})
    status["hostIP"], status["hostIPs"] = host, [{"ip": host}]
    status["podIP"], status["podIPs"] = address, [{"ip": address}]
    status.setdefault("startTime", now)
    init = pod["spec"].get("initContainers")
    if init:
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        status["initContainerStatuses"] = [_container(container, state, ready=True) for container in init]
    return status


def _containers(pod: Object, state: Mapping[str, Any], *, ready: bool) -> None:
    containers = pod["spec"]["containers"]
    pod["status"]["containerStatuses"] = [_container(container, state, ready=ready) for container in containers]


def _container(container: Object, state: Mapping[str, Any], *, ready: bool, restarts: int = 0) -> Object:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "state": dict(state),
        "lastState": {},
        "ready": ready,
        "restartCount": restarts,
        "image": image,
        "imageID": f"sim://{image}" if "waiting" not in state else "",
        "started": "running" in state,
    }


def _conditions(status: Object, now: str, *, ready: bool, message: str = "") -> None:
    conditions = status.get("conditions")
    for kind in ("PodReadyToStartContainers", "Initialized"):
        conditions = set_condition(conditions, kind, "True", "", "", now)
    for kind in ("Ready", "ContainersReady"):
        reason = "" if ready else "ContainersNotReady"
        conditions = set_condition(conditions, kind, "True" if ready else "False", reason, message, now)
    status["conditions"] = _tidy(conditions or [])


def _tidy(conditions: list[Object]) -> list[Object]:
    """As kubelets write them: no empty reason or message."""
    return [{key: value for key, value in one.items() if value != "" or key == "status"} for one in conditions]
