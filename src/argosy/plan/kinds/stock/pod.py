"""Pod: almost no field of a running pod may change, and members inject many; all of them are kept.

Its status shows the pods of all clusters as one: the phase of the worst, the containers of all, named `<container> (<cluster>)`.
"""

from collections.abc import Sequence
from typing import Final

from argosy.kube.conditions import is_true
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, earliest, everybody, merged, worst
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import status_of

__all__ = ["KIND", "retain_container"]

#: The path where kubelets expect the token of the pod's service account; admission mounts it.
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_KEPT: Final = ("ephemeralContainers", "volumes")
_KEPT_WHERE_UNSET: Final = ("serviceAccountName", "serviceAccount", "nodeName", "priority", "dnsConfig")


def _strip(desired: Json) -> Json:
    return fields.without(desired, "spec.ephemeralContainers")


def _retain(desired: Json, observed: Json) -> Json:
    spec, theirs = dict(desired.get("spec") or {}), observed.get("spec") or {}
    for field in _KEPT:
        spec.pop(field, None)
        if theirs.get(field) is not None:
            spec[field] = theirs[field]
    for field in _KEPT_WHERE_UNSET:
        if not spec.get(field) and theirs.get(field) is not None:
            spec[field] = theirs[field]
    for field in ("containers", "initContainers"):
        observed_containers = {each.get("name"): each for each in theirs.get(field) or ()}
        if spec.get(field):
            spec[field] = [
                retain_container(each, observed_containers[each.get("name")])
                if each.get("name") in observed_containers
                else each
                for each in spec[field]
            ]
    return {**desired, "spec": spec}


def retain_container(desired: Json, observed: Json) -> Json:
    """Resources as in the member's pod, set or unset, and the mount of the service account's token."""
    result = {key: value for key, value in desired.items() if key != "resources"}
    if "resources" in observed:
        result["resources"] = observed["resources"]
    mounts = list(result.get("volumeMounts") or ())
    for index, mount in enumerate(observed.get("volumeMounts") or ()):
        if mount.get("mountPath") == _TOKEN_PATH and not any(m.get("mountPath") == _TOKEN_PATH for m in mounts):
            mounts.insert(index, mount)
    return {**result, "volumeMounts": mounts} if mounts else result


def _unfinished(desired: Json, copy: Json) -> list[str]:
    status = status_of(copy)
    phase = status.get("phase") or "Pending"
    if phase == "Succeeded" or (phase == "Running" and is_true(status.get("conditions"), "Ready")):
        return []
    waiting = (fields.get(each, "state.waiting.reason", None) for each in status.get("containerStatuses") or ())
    why = next(filter(None, waiting), None) or status.get("reason") or phase
    return [f"the Pod {'failed' if phase == 'Failed' else 'is not ready'}: {why}"]


_PENDING: Final = "Pending"
_PHASES: Final = ("Failed", _PENDING, "", "Running", "Succeeded")
_CONTAINERS: Final = ("initContainerStatuses", "containerStatuses")


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    """A member that has reported nothing yet counts as pending."""
    pods = everybody(members, aggregation)
    status: Json = {"phase": worst(pods, "phase", _PHASES) or _PENDING}
    if members or aggregation.status.get("message"):
        status["message"] = _message(pods)
    # The API server gave it when the source was made, and it never changes.
    status |= {key: value for key, value in aggregation.status.items() if key == "qosClass"}
    status |= earliest(members, "startTime")
    for field in _CONTAINERS:
        if containers := [
            {**each, "name": f"{each.get('name')} ({member.cluster})"}
            for member in members
            for each in member.status.get(field) or ()
        ]:
            status[field] = sorted(containers, key=lambda each: str(each["name"]))
    return status


def _message(members: Sequence[Member]) -> str:
    if not members:
        return "Pod in no cluster"
    phases: dict[str, list[str]] = {}
    for each in sorted(members, key=lambda each: each.cluster):
        phases.setdefault(str(each.status.get("phase") or _PENDING), []).append(each.cluster)
    order = [*(phase for phase in _PHASES if phase in phases), *sorted(phases.keys() - set(_PHASES))]
    return "Pod " + ", and ".join(f"{phase.lower()} in clusters [{','.join(phases[phase])}]" for phase in order)


KIND: Final = Kind(pod_spec=("spec",), strip=_strip, retain=_retain, aggregate=merged(_merge), unfinished=_unfinished)
