"""Columns of workloads and what scales and protects them: apps, batch, autoscaling, policy."""

from typing import Any

from argosy.server.printers.base import (
    NONE,
    UNKNOWN,
    UNSET,
    Object,
    Printer,
    age,
    at,
    columns,
    condition,
    human_duration,
    labels,
    name,
    printer,
    seconds,
    selector,
    since,
)

__all__ = ["APPS", "AUTOSCALING", "BATCH", "POLICY", "containers_and_images"]

_WIDE = ("Containers", "Images", "Selector")


def containers_and_images(template: Any) -> list[str]:
    containers = at(template, "spec", "containers") or []
    return [",".join(str(c.get(field, "")) for c in containers) for field in ("name", "image")]


def _counts(obj: Object, *fields: str) -> list[int]:
    status = obj.get("status") or {}
    return [status.get(field) or 0 for field in fields]


def _wide(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    return [*containers_and_images(spec.get("template")), selector(spec.get("selector"))]


def _ready(obj: Object) -> str:
    return f"{_counts(obj, 'readyReplicas')[0]}/{at(obj, 'spec', 'replicas') or 0}"


def _deployment(obj: Object) -> list[Any]:
    return [_ready(obj), *_counts(obj, "updatedReplicas", "availableReplicas"), *_wide(obj)]


def _replica_set(obj: Object) -> list[Any]:
    return [at(obj, "spec", "replicas") or 0, *_counts(obj, "replicas", "readyReplicas"), *_wide(obj)]


def _daemon_set(obj: Object) -> list[Any]:
    counts = _counts(
        obj,
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [*counts, labels(at(obj, "spec", "template", "spec", "nodeSelector")), *_wide(obj)]


def _revision(obj: Object) -> list[Any]:
    for owner in at(obj, "metadata", "ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return [f"{kind.lower()}/{owner.get('name', '')}", obj.get("revision", 0)]
    return [NONE, obj.get("revision", 0)]


def _job_status(obj: Object) -> str:
    def holds(kind: str) -> bool:
        return (condition(obj, kind) or {}).get("status") == "True"

    for kind in ("Complete", "Failed"):
        if holds(kind):
            return kind
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if holds(kind):
            return kind
    return "Running"


def _job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    succeeded, parallelism = status.get("succeeded") or 0, spec.get("parallelism") or 0
    completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    started, ended = seconds(status.get("startTime")), seconds(status.get("completionTime"))
    took = "" if started is None else human_duration((ended if ended is not None else now) - started)
    return [name(obj), _job_status(obj), completions, took, age(obj, now), *_wide(obj)]


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    job = at(spec, "jobTemplate", "spec") or {}
    suspended = spec.get("suspend")
    last = status.get("lastScheduleTime")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        UNSET if suspended is None else str(bool(suspended)),
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_and_images(job.get("template")),
        selector(job.get("selector")),
    ]


#: Where a metric of a type keeps its numbers, and whether its text begins with a resource's name.
_SOURCES = {
    "External": ("external", False),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


def _metric(spec: Object, status: Object) -> str:
    known = _SOURCES.get(spec.get("type", ""))
    if known is None:
        return "<unknown type>"
    field, named = known
    target, current = at(spec, field, "target") or {}, at(status, field, "current") or {}
    prefix = f"{at(spec, field, 'name')}: " if named else ""
    if target.get("averageValue") is not None:
        average = " (avg)" if field in ("external", "object") else ""
        return f"{prefix}{current.get('averageValue', UNKNOWN)}/{target['averageValue']}{average}"
    if named:
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        shown = UNKNOWN if used is None else f"{used}%"
        return f"{prefix}{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', UNKNOWN)}"


def _autoscaler(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    specs, statuses = spec.get("metrics") or [], status.get("currentMetrics") or []
    texts = [_metric(metric, statuses[i] if i < len(statuses) else {}) for i, metric in enumerate(specs)]
    if "targetCPUUtilizationPercentage" in spec:  # autoscaling/v1 knows this one metric by name
        used = status.get("currentCPUUtilizationPercentage")
        texts.append(f"cpu: {UNKNOWN if used is None else f'{used}%'}/{spec['targetCPUUtilizationPercentage']}%")
    metrics = ", ".join(texts[:2]) + (f" + {len(texts) - 2} more..." if len(texts) > 2 else "")
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metrics or NONE,
        UNSET if least is None else str(least),
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
    ]


def _budget(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    bounds = [str(spec[f]) if spec.get(f) is not None else "N/A" for f in ("minAvailable", "maxUnavailable")]
    return [*bounds, *_counts(obj, "disruptionsAllowed")]


APPS: dict[str, Printer] = {
    "ControllerRevision": printer(("Name", "Controller", "Revision", "Age"), _revision),
    "DaemonSet": printer(
        ("Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer",
         "Node Selector", "Age"),
        _daemon_set,
        wide=_WIDE,
    ),
    "Deployment": printer(("Name", "Ready", "Up-to-date", "Available", "Age"), _deployment, wide=_WIDE),
    "ReplicaSet": printer(
        ("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age"), _replica_set, wide=_WIDE
    ),
    "StatefulSet": printer(
        ("Name", "Ready", "Age"),
        lambda obj: [_ready(obj), *containers_and_images(at(obj, "spec", "template"))],
        wide=("Containers", "Images"),
    ),
}  # fmt: skip

BATCH: dict[str, Printer] = {
    "CronJob": Printer(
        columns(
            "Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", wide=_WIDE
        ),
        _cron_job,
    ),
    "Job": Printer(columns("Name", "Status", "Completions", "Duration", "Age", wide=_WIDE), _job),
}

AUTOSCALING: dict[str, Printer] = {
    "HorizontalPodAutoscaler": printer(
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler
    ),
}

POLICY: dict[str, Printer] = {
    "PodDisruptionBudget": printer(
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"), _budget
    ),
}
