"""autoscaling: HorizontalPodAutoscalers in v2, the stored version, and in v1, whose conversion is in `hpa_v1`."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from argosy.kube import names
from argosy.kube.quantity import parse_or_zero
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.autoscaling import hpa_v1
from argosy.server.kinds.core.resource_lists import canonical_quantity, container_resource_name
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill, fill_condition_times
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "autoscaling"
MAX_PERIOD = 1800
MAX_STABILIZATION = 3600
SOURCES = ["ContainerResource", "External", "Object", "Pods", "Resource"]
#: The order in which Kubernetes looks for a metric's source: only the first one found is checked.
SOURCE_FIELDS = ("object", "external", "pods", "resource", "containerResource")


def kinds(schemas: Schemas) -> list[Kind]:
    stored = declare(
        schemas,
        AutoscalerStrategy,
        GROUP,
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        short_names=("hpa",),
        categories=("all",),
        subresources=frozenset({"status"}),
    )
    v1 = msgspec.structs.replace(
        stored,
        version="v1",
        strategy=AutoscalerV1Strategy(schemas.kind(GROUP, "v1", "HorizontalPodAutoscaler")),
        to_storage=hpa_v1.to_v2,
        from_storage=hpa_v1.from_v2,
    )
    return [stored, v1]


class AutoscalerStrategy(BuiltinStrategy):
    generation = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, "minReplicas", 1)
        fill(spec, "maxReplicas", 0)
        if not spec.get("metrics"):
            spec["metrics"] = [hpa_v1.cpu_metric(hpa_v1.DEFAULT_CPU_UTILIZATION)]
        for metric in spec["metrics"]:
            _canonical(metric)
        behavior = spec.get("behavior")
        if behavior is not None:
            behavior["scaleUp"] = _scaling_rules(behavior.get("scaleUp"), _scale_up())
            behavior["scaleDown"] = _scaling_rules(behavior.get("scaleDown"), _scale_down())
        fill_condition_times(obj, "lastTransitionTime")
        status = obj.setdefault("status", {})
        status["currentMetrics"] = status.get("currentMetrics") or None
        fill(status, "desiredReplicas", 0)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        return _spec(obj["spec"], None)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _spec(new["spec"], old["spec"])

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return workloads.counters(new.get("status") or {}, "status", ("currentReplicas", "desiredReplicas"))


class AutoscalerV1Strategy(AutoscalerStrategy):
    """Requests in v1. Defaulting, preparing and validating happen on v1 objects, so each goes by way of v2."""

    def default(self, obj: Object) -> None:
        fill(obj.setdefault("spec", {}), "minReplicas", 1)
        fill(obj["spec"], "maxReplicas", 0)
        # The default metric depends on the annotation, so the conversion fills it in. Behaviour from an annotation gets no
        # defaults.
        hpa_v1.to_v2(obj)
        for metric in obj["spec"]["metrics"]:
            _canonical(metric)
        hpa_v1.from_v2(obj)

    def prepare_create(self, obj: Object) -> None:
        # Half of the status is in annotations: it is dropped or kept as a whole.
        hpa_v1.to_v2(obj)
        super().prepare_create(obj)
        hpa_v1.from_v2(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        hpa_v1.to_v2(new)
        super().prepare_update(new, hpa_v1.as_v2(old))
        hpa_v1.from_v2(new)

    def prepare_status(self, new: Object, old: Object) -> None:
        hpa_v1.to_v2(new)
        super().prepare_status(new, hpa_v1.as_v2(old))
        hpa_v1.from_v2(new)

    def validate(self, obj: Object) -> list[FieldError]:
        return super().validate(hpa_v1.as_v2(obj))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return super().validate_update(hpa_v1.as_v2(new), hpa_v1.as_v2(old))


def _canonical(metric: Object) -> None:
    for field in SOURCE_FIELDS:
        target = (metric.get(field) or {}).get("target") or {}
        for value in ("value", "averageValue"):
            if target.get(value) is not None:
                target[value] = canonical_quantity(target[value])


def _scale_up() -> Object:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}


def _scale_down() -> Object:
    # No stabilisation window: the controller's own setting applies.
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _scaling_rules(given: Mapping[str, Any] | None, default: Object) -> Object:
    filled = default | {key: value for key, value in (given or {}).items() if value is not None}
    if "tolerance" in filled:
        filled["tolerance"] = canonical_quantity(filled["tolerance"])
    return filled


def _spec(spec: Mapping[str, Any], stored: Mapping[str, Any] | None) -> list[FieldError]:
    errors = []
    # Scaling to zero is behind a feature gate; an object that has it keeps it.
    lowest = 0 if stored is not None and stored.get("minReplicas") == 0 else 1
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < lowest:
        errors.append(invalid("spec.minReplicas", low, f"must be greater than or equal to {lowest}"))
    if high == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif high < 0:
        errors.append(invalid("spec.maxReplicas", high, "must be greater than or equal to 1"))
    if low is not None and high < low:
        errors.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    errors += rules.segments(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef", ("kind", "name"))
    errors += _target_version(spec, stored)
    errors += _metrics(spec.get("metrics") or [], low)
    behavior = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        if behavior.get(field) is not None:
            errors += _validate_scaling(behavior[field], f"spec.behavior.{field}")
    return errors


def _target_version(spec: Mapping[str, Any], stored: Mapping[str, Any] | None) -> list[FieldError]:
    """The target's group is needed to find its scale; what was stored without one stays."""
    ref, before = spec.get("scaleTargetRef") or {}, (stored or {}).get("scaleTargetRef") or {}
    if stored is not None and all((ref.get(f) or "") == (before.get(f) or "") for f in ("apiVersion", "kind")):
        return []
    path, version = "spec.scaleTargetRef.apiVersion", ref.get("apiVersion") or ""
    has_group = "/" in version and not version.startswith("/")
    if version.count("/") < 2 and not has_group and ref.get("kind") != "ReplicationController":
        return [invalid(path, version, "apiVersion must specify API group")]
    return _api_version(version, path)


def _api_version(version: str, path: str) -> list[FieldError]:
    if version.count("/") < 2:
        return []
    return [invalid(path, version, f"unexpected GroupVersion string: {version}")]


def _metrics(metrics: list[Mapping[str, Any]], low: int | None) -> list[FieldError]:
    errors = []
    for i, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{i}]")
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", detail))
    return errors


def _metric(metric: Mapping[str, Any], path: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    errors = [] if kind else [required(f"{path}.type", "must specify a metric source type")]
    unknown = not_supported(f"{path}.type", kind, SOURCES)
    if kind not in SOURCES:
        errors.append(unknown)
    present = [field for field in SOURCE_FIELDS if metric.get(field) is not None]
    if present:
        errors += _CHECKS[present[0]](metric[present[0]], f"{path}.{present[0]}")
    expected = kind[:1].lower() + kind[1:]
    if kind not in SOURCES:
        errors.append(unknown)
    elif expected not in present:
        detail = "must populate information for the given metric source"
        errors.append(required(f"{path}.{expected}", detail))
    if len(present) != 1:
        errors += [
            forbidden(f"{path}.{field}", "must populate the given metric source only")
            for field in present
            if field != expected
        ]
    return errors


def _object(source: Mapping[str, Any], path: str) -> list[FieldError]:
    target = source.get("target") or {}
    described = source.get("describedObject") or {}
    errors = rules.segments(described, f"{path}.describedObject", ("kind", "name"))
    errors += _api_version(described.get("apiVersion") or "", f"{path}.describedObject.apiVersion")
    errors += _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        detail = "must set either a target value or averageValue"
        errors.append(required(f"{path}.target.averageValue", detail))
    return errors


def _external(source: Mapping[str, Any], path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _identifier(source, path) + _target(target, f"{path}.target")
    given = [field for field in ("value", "averageValue") if target.get(field) is not None]
    if not given:
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", detail))
    if len(given) == 2:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", detail))
    return errors


def _pods(source: Mapping[str, Any], path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("averageValue") is None:
        errors.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return errors


def _resource(source: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    return errors + _utilization(source, path)


def _container_resource(source: Mapping[str, Any], path: str) -> list[FieldError]:
    name, container = source.get("name") or "", source.get("container") or ""
    if name:
        errors = container_resource_name(name, f"{path}.name")
    else:
        errors = [required(f"{path}.name", "must specify a resource name")]
    if container:
        errors += rules.dns_label(container, f"{path}.container")
    else:
        errors.append(required(f"{path}.container", "must specify a container"))
    return errors + _utilization(source, path)


def _utilization(source: Mapping[str, Any], path: str) -> list[FieldError]:
    target = source.get("target") or {}
    path = f"{path}.target"
    errors = _target(target, path)
    given = [field for field in ("averageUtilization", "averageValue") if target.get(field) is not None]
    if not given:
        detail = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.averageUtilization", detail))
    if len(given) == 2:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{path}.averageValue", detail))
    return errors


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], list[FieldError]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _identifier(source: Mapping[str, Any], path: str) -> list[FieldError]:
    name = (source.get("metric") or {}).get("name") or ""
    path = f"{path}.metric.name"
    if not name:
        return [required(path, "must specify a metric name")]
    return rules.messages(name, path, names.path_segment_name_errors(name))


def _target(target: Mapping[str, Any], path: str) -> list[FieldError]:
    kind = target.get("type") or ""
    errors = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and parse_or_zero(value).milli() <= 0:
            errors.append(invalid(f"{path}.{field}", value, "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{path}.averageUtilization", utilization, "must be greater than 0"))
    return errors


def _validate_scaling(scaling: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    window = scaling.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if window is not None and window > MAX_STABILIZATION:
        detail = f"must be less than or equal to {MAX_STABILIZATION}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    select = scaling.get("selectPolicy")
    if select is not None and select not in ("Max", "Min", "Disabled"):
        errors.append(not_supported(f"{path}.selectPolicy", select, ["Disabled", "Max", "Min"]))
    policies = scaling.get("policies") or []
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for i, policy in enumerate(policies):
        errors += _scaling_policy(policy, f"{path}.policies[{i}]")
    tolerance = scaling.get("tolerance")
    if tolerance is not None and parse_or_zero(tolerance).milli() < 0:
        errors.append(invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0"))
    return errors


def _scaling_policy(policy: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    kind, value, period = policy.get("type") or "", policy.get("value") or 0, policy.get("periodSeconds") or 0
    if kind not in ("Pods", "Percent"):
        errors.append(not_supported(f"{path}.type", kind, ["Percent", "Pods"]))
    errors += rules.positive(value, f"{path}.value")
    errors += rules.positive(period, f"{path}.periodSeconds")
    if period > MAX_PERIOD:
        errors.append(invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {MAX_PERIOD}"))
    return errors
