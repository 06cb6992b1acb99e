"""HorizontalPodAutoscalers in autoscaling/v1: converted to and from v2, in place.

v1 has one number, the CPU target. Everything else is in annotations, in the form of older versions, so that a v1 client that
reads and writes back loses nothing.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from argosy.server.registry import Object

__all__ = ["DEFAULT_CPU_UTILIZATION", "as_v2", "cpu_metric", "from_v2", "to_v2"]

#: The default target if no metric is given.
DEFAULT_CPU_UTILIZATION = 80

PREFIX = "autoscaling.alpha.kubernetes.io"
METRICS = f"{PREFIX}/metrics"
CURRENT_METRICS = f"{PREFIX}/current-metrics"
CONDITIONS = f"{PREFIX}/conditions"
BEHAVIOR = f"{PREFIX}/behavior"
TOLERANCES = (f"{PREFIX}/scale-down-tolerance", f"{PREFIX}/scale-up-tolerance")
ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, *TOLERANCES)

Values = Mapping[str, Any]


def as_v2(obj: Object) -> Object:
    """A copy in v2."""
    converted = copy.deepcopy(obj)
    to_v2(converted)
    return converted


def to_v2(obj: Object) -> None:
    obj["apiVersion"] = "autoscaling/v2"
    spec, annotations = obj.setdefault("spec", {}), obj["metadata"].get("annotations") or {}
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [_converted(metric, _TO_V2) for metric in _read(annotations, METRICS, list) or ()]
    if cpu is not None:
        metrics.append(cpu_metric(cpu))
    spec["metrics"] = metrics or [cpu_metric(DEFAULT_CPU_UTILIZATION)]
    behavior = _read(annotations, BEHAVIOR, dict)
    if behavior:
        spec["behavior"] = _renamed(behavior, _lower)
    if obj.get("status") is not None:
        _status_to_v2(obj["status"], annotations)
    _drop_annotations(obj)


def from_v2(obj: Object) -> None:
    obj["apiVersion"] = "autoscaling/v1"
    spec = obj.setdefault("spec", {})
    _drop_annotations(obj)
    found: dict[str, Any] = {}
    others = []
    for metric in spec.pop("metrics", None) or ():
        if not _is_cpu(metric):
            others.append(_converted(metric, _TO_V1))
        elif "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
    if others:
        found[METRICS] = others
    behavior = spec.pop("behavior", None)
    if behavior is not None:
        found[BEHAVIOR] = _internal_behavior(behavior)
    status = obj.get("status")
    if status is not None:
        _status_from_v2(status, found)
    if found:
        annotations = dict(obj["metadata"].get("annotations") or {})
        annotations.update({key: orjson.dumps(value).decode() for key, value in found.items()})
        obj["metadata"]["annotations"] = annotations


def _status_to_v2(status: Object, annotations: Values) -> None:
    cpu = status.pop("currentCPUUtilizationPercentage", None)
    current = _read(annotations, CURRENT_METRICS, list)
    if current is not None:
        status["currentMetrics"] = [_v2_status(metric) for metric in current]
    elif cpu is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": cpu}}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    else:
        status["currentMetrics"] = None
    conditions = _read(annotations, CONDITIONS, list)
    if conditions:
        status["conditions"] = conditions
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)


def _status_from_v2(status: Object, found: dict[str, Any]) -> None:
    current = status.pop("currentMetrics", None)
    if current:
        found[CURRENT_METRICS] = [_v1_status(metric) for metric in current]
    for metric in current or ():
        resource = metric.get("resource") or {}
        utilization = (resource.get("current") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and utilization is not None:
            status["currentCPUUtilizationPercentage"] = utilization
    conditions = status.pop("conditions", None)
    if conditions:
        found[CONDITIONS] = conditions
    status.setdefault("currentReplicas", 0)


def _read(annotations: Values, key: str, type: type) -> Any:
    """What an annotation holds; something unreadable in it counts as nothing, as in Kubernetes."""
    try:
        value = orjson.loads(annotations.get(key, ""))
    except orjson.JSONDecodeError:
        return None
    if type is list and isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return value if isinstance(value, type) else None


def _drop_annotations(obj: Object) -> None:
    annotations = obj["metadata"].get("annotations")
    if not annotations or not any(key in annotations for key in ANNOTATIONS):
        return
    kept = {key: value for key, value in annotations.items() if key not in ANNOTATIONS}
    if kept:
        obj["metadata"]["annotations"] = kept
    else:
        del obj["metadata"]["annotations"]


def cpu_metric(utilization: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _is_cpu(metric: Values) -> bool:
    resource = metric.get("resource") or {}
    utilization = (resource.get("target") or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and utilization is not None


def _given(values: Values) -> Object:
    return {key: value for key, value in values.items() if value is not None}


def _parts(source: Any) -> Object:
    return source if isinstance(source, dict) else {}


def _reference(source: Any) -> Object:
    """Of an object, its fields in the order Kubernetes writes them into the annotation."""
    parts = _parts(source)
    named: Object = {"kind": parts.get("kind", ""), "name": parts.get("name", "")}
    return named | _given({"apiVersion": parts.get("apiVersion")})


def _converted(metric: Values, converts: Mapping[str, Callable[[Values], Object]]) -> Object:
    converted: Object = {"type": metric.get("type", "")}
    for field, convert in converts.items():
        if metric.get(field) is not None:
            converted[field] = convert(_parts(metric[field]))
    return converted


def _identifier(name: Any, selector: Any) -> Object:
    return _given({"name": name or "", "selector": selector})


def _object_to_v2(old: Values) -> Object:
    average, value = old.get("averageValue"), old.get("targetValue")
    if average is None:
        target = _given({"type": "Value", "value": value})
    else:
        # v1 cannot leave the value out and writes "0", which v2 would refuse.
        target = _given({"type": "AverageValue", "value": None if value in (None, "0", 0) else value})
        target["averageValue"] = average
    metric = _identifier(old.get("metricName"), old.get("selector"))
    return {"describedObject": _parts(old.get("target")), "metric": metric, "target": target}


def _object_to_v1(new: Values) -> Object:
    target, metric = _parts(new.get("target")), _parts(new.get("metric"))
    return _given(
        {
            "target": _reference(new.get("describedObject")),
            "metricName": metric.get("name", ""),
            "targetValue": target.get("value", "0"),
            "selector": metric.get("selector"),
            "averageValue": target.get("averageValue"),
        }
    )


def _pods_to_v2(old: Values) -> Object:
    target = _given({"type": "AverageValue", "averageValue": old.get("targetAverageValue")})
    return {"metric": _identifier(old.get("metricName"), old.get("selector")), "target": target}


def _pods_to_v1(new: Values) -> Object:
    metric = _parts(new.get("metric"))
    value = _parts(new.get("target")).get("averageValue", "0")
    return _given(
        {"metricName": metric.get("name", ""), "targetAverageValue": value, "selector": metric.get("selector")}
    )


def _resource_to_v2(old: Values) -> Object:
    utilization, value = old.get("targetAverageUtilization"), old.get("targetAverageValue")
    kind = "AverageValue" if utilization is None else "Utilization"
    target = _given({"type": kind, "averageValue": value, "averageUtilization": utilization})
    return _given({"name": old.get("name", ""), "target": target, "container": old.get("container")})


def _resource_to_v1(new: Values) -> Object:
    target = _parts(new.get("target"))
    return _given(
        {
            "name": new.get("name", ""),
            "targetAverageUtilization": target.get("averageUtilization"),
            "targetAverageValue": target.get("averageValue"),
            "container": new.get("container"),
        }
    )


def _external_to_v2(old: Values) -> Object:
    value, average = old.get("targetValue"), old.get("targetAverageValue")
    kind = "AverageValue" if value is None else "Value"
    target = _given({"type": kind, "value": value, "averageValue": average})
    return {"metric": _identifier(old.get("metricName"), old.get("metricSelector")), "target": target}


def _external_to_v1(new: Values) -> Object:
    target, metric = _parts(new.get("target")), _parts(new.get("metric"))
    return _given(
        {
            "metricName": metric.get("name", ""),
            "metricSelector": metric.get("selector"),
            "targetValue": target.get("value"),
            "targetAverageValue": target.get("averageValue"),
        }
    )


_Convert = Callable[[Values], Object]
_TO_V2: Mapping[str, _Convert] = {
    "object": _object_to_v2,
    "pods": _pods_to_v2,
    "resource": _resource_to_v2,
    "containerResource": _resource_to_v2,
    "external": _external_to_v2,
}
_TO_V1: Mapping[str, _Convert] = {
    "object": _object_to_v1,
    "pods": _pods_to_v1,
    "resource": _resource_to_v1,
    "containerResource": _resource_to_v1,
    "external": _external_to_v1,
}


#: Fields of a v1 metric status that hold its current values, by their v2 names.
_CURRENT = {
    "object": {"value": "currentValue", "averageValue": "averageValue"},
    "pods": {"averageValue": "currentAverageValue"},
    "resource": {"averageUtilization": "currentAverageUtilization", "averageValue": "currentAverageValue"},
    "containerResource": {"averageUtilization": "currentAverageUtilization", "averageValue": "currentAverageValue"},
    "external": {"value": "currentValue", "averageValue": "currentAverageValue"},
}


def _v2_status(metric: Values) -> Object:
    converted: Object = {"type": metric.get("type", "")}
    for field, current in _CURRENT.items():
        if metric.get(field) is None:
            continue
        old = _parts(metric[field])
        new: Object = {"current": _given({name: old.get(old_name) for name, old_name in current.items()})}
        if field in ("resource", "containerResource"):
            new |= _given({"name": old.get("name", ""), "container": old.get("container")})
        else:
            selector = old.get("metricSelector") if field == "external" else old.get("selector")
            new["metric"] = _identifier(old.get("metricName"), selector)
        if field == "object":
            new["describedObject"] = _parts(old.get("target"))
        converted[field] = new
    return converted


def _v1_status(metric: Values) -> Object:
    converted: Object = {"type": metric.get("type", "")}
    for field, current in _CURRENT.items():
        if metric.get(field) is None:
            continue
        new = _parts(metric[field])
        values, identifier = _parts(new.get("current")), _parts(new.get("metric"))
        old: Object = {}
        if field == "object":
            old["target"] = _reference(new.get("describedObject"))
        if field in ("resource", "containerResource"):
            old |= _given({"name": new.get("name", ""), "container": new.get("container")})
        else:
            old["metricName"] = identifier.get("name", "")
            selector = "metricSelector" if field == "external" else "selector"
            old |= _given({selector: identifier.get("selector")})
        converted[field] = old | _given({name: values.get(key) for key, name in current.items()})
    return converted


def _internal_behavior(behavior: Values) -> Object:
    """The annotation has always held the internal type, with every field there."""
    internal: Object = {}
    for side in ("scaleUp", "scaleDown"):
        scaling = behavior.get(side)
        internal[_upper(side)] = scaling and {
            _upper(field): _renamed(scaling.get(field), _upper)
            for field in ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
        }
    return internal


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {rename(key): _renamed(item, rename) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_renamed(item, rename) for item in value]
    return value


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]
