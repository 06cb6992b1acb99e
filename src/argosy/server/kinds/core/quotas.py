"""Limit ranges and resource quotas: their validation. Enforcing them is part of admission."""

from collections.abc import Mapping
from typing import Any

from argosy.kube import chance, names, quantity
from argosy.kube.quantity import Quantity, parse_or_zero
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, required
from argosy.server.kinds.core.resource_lists import (
    canonical_resources,
    container_resource_name,
    is_overcommit_allowed,
    is_standard_quota,
    quota_resource_name,
    resource_name,
    validate_quantity,
)
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.kinds.shared.meta_rules import NOT_AN_OPERATOR, messages
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
#: Which of the standard resources a scope can be used with.
_SCOPES: Mapping[str, frozenset[str]] = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_EXISTS_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_CONFLICTING = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(schemas, LimitRangeStrategy, "", "v1", "LimitRange", "limitranges", short_names=("limits",)),
        declare(
            schemas,
            ResourceQuotaStrategy,
            "",
            "v1",
            "ResourceQuota",
            "resourcequotas",
            short_names=("quota",),
            subresources=frozenset({"status"}),
        ),
    ]


class LimitRangeStrategy(StatuslessStrategy):
    validates_prefix = True
    create_on_update = True

    def prepare_create(self, obj: Object) -> None:
        # The one kind that needs no name.
        obj["metadata"]["name"] = obj["metadata"].get("name") or chance.uid()

    def default(self, obj: Object) -> None:
        # Written out as null when there are none, since it is not optional.
        spec = obj.setdefault("spec", {})
        spec["limits"] = spec.get("limits") or None
        for item in spec["limits"] or ():
            for name in _LISTS:
                canonical_resources(item.get(name))
            if item.get("type") == "Container":
                _default_container_limits(item)

    def validate(self, obj: Object) -> list[FieldError]:
        errors = []
        seen: set[str] = set()
        for i, item in enumerate(obj["spec"]["limits"] or ()):
            path, kind = f"spec.limits[{i}]", item.get("type", "")
            errors += _limit_type(kind, f"{path}.type")
            if kind in seen:
                errors.append(duplicate(f"{path}.type", kind))
            seen.add(kind)
            errors += _limit_item(item, path)
        return errors


def _default_container_limits(item: Object) -> None:
    """max is the default of the default limit; the default limit, or min, is that of the default request."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _limit_type(kind: str, path: str) -> list[FieldError]:
    errors = messages(kind, path, names.qualified_name_errors(kind))
    if not errors and "/" not in kind and kind not in _LIMIT_TYPES:
        errors.append(invalid(path, kind, "must be a standard limit type or fully qualified"))
    return errors


def _limit_item(item: Object, path: str) -> list[FieldError]:
    kind = item.get("type", "")
    name_rule = container_resource_name if kind in ("Pod", "Container") else resource_name
    errors = []
    used: dict[str, dict[str, Quantity]] = {}
    for name in _LISTS:
        values = item.get(name) or {}
        if kind == "Pod" and name in ("default", "defaultRequest"):
            if values:
                errors.append(forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'"))
            continue
        for key in values:
            errors += name_rule(key, f"{path}.{name}[{key}]")
        used[name] = {key: parse_or_zero(value) for key, value in values.items()}
    if kind == "PersistentVolumeClaim" and "storage" not in {*used["min"], *used["max"]}:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", detail))
    for key in sorted({key for values in used.values() for key in values}):
        errors += _limit_order(key, {name: values[key] for name, values in used.items() if key in values}, path)
    return errors


def _limit_order(key: str, given: dict[str, Quantity], path: str) -> list[FieldError]:
    """min ≤ default request ≤ default limit ≤ max, and a ratio these allow."""
    errors = []

    def above(low: str, high: str, field: str, value: str, text: str) -> None:
        if low in given and high in given and given[low] > given[high]:
            errors.append(invalid(f"{path}.{field}[{key}]", str(given[value]), text.format(given[low], given[high])))

    above("min", "max", "min", "min", "min value {} is greater than max value {}")
    request = "defaultRequest"
    above("min", request, request, request, "min value {} is greater than default request value {}")
    above(request, "max", request, request, "default request value {} is greater than max value {}")
    above(request, "default", request, request, "default request value {} is greater than default limit value {}")
    above("min", "default", "default", "min", "min value {} is greater than default value {}")
    above("default", "max", "default", "max", "default value {} is greater than max value {}")
    errors += _ratio(key, given, path)
    fixed = not is_overcommit_allowed(key) and "default" in given and request in given
    if fixed and given["default"] != given[request]:
        detail = f"default value {given['default']} must equal to defaultRequest value {given[request]} in {key}"
        errors.append(invalid(f"{path}.defaultRequest[{key}]", str(given[request]), detail))
    return errors


def _ratio(key: str, given: dict[str, Quantity], path: str) -> list[FieldError]:
    ratio = given.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    at = f"{path}.maxLimitRequestRatio[{key}]"
    errors = []
    if ratio < Quantity.from_value(1):
        errors.append(invalid(at, str(ratio), f"ratio {ratio} is less than 1"))
    low, high = given.get("min"), given.get("max")
    if low is not None and high is not None and low > quantity.ZERO and ratio.nanos * low.nanos > high.nanos * 10**9:
        limit = high.nanos / low.nanos
        errors.append(invalid(at, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}"))
    return errors


class ResourceQuotaStrategy(BuiltinStrategy):
    generation = False

    def default(self, obj: Object) -> None:
        canonical_resources(obj.setdefault("spec", {}).get("hard"))
        status = obj.setdefault("status", {})
        canonical_resources(status.get("hard"))
        canonical_resources(status.get("used"))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _hard(spec.get("hard") or {}, "spec.hard")
        errors += _scopes(spec)
        if spec.get("scopeSelector") is not None:
            errors += _scope_selector(spec)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        scopes, before = new["spec"].get("scopes") or [], (old.get("spec") or {}).get("scopes") or []
        if set(scopes) != set(before):
            errors.append(invalid("spec.scopes", scopes, "field is immutable"))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        return _hard(status.get("hard") or {}, "status.hard") + _hard(status.get("used") or {}, "status.used")


def _hard(values: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    for name, value in values.items():
        at = f"{path}[{name}]"
        errors += quota_resource_name(name, at) + validate_quantity(name, value, at)
    return errors


def _unfit(scope: str, hard: Mapping[str, Any]) -> list[str]:
    """Standard resources the scope says nothing about."""
    fit = _SCOPES.get(scope)
    return [] if fit is None else [name for name in sorted(hard) if is_standard_quota(name) and name not in fit]


def _scopes(spec: Object) -> list[FieldError]:
    scopes, path = spec.get("scopes") or [], "spec.scopes"
    errors = []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        errors += [
            invalid(path, scopes, "unsupported scope applied to resource")
            for _ in _unfit(scope, spec.get("hard") or {})
        ]
    return errors + [invalid(path, scopes, "conflicting scopes") for pair in _CONFLICTING if pair <= set(scopes)]


def _scope_selector(spec: Object) -> list[FieldError]:
    selector, path = spec["scopeSelector"], "spec.scopeSelector.matchExpressions"
    errors = []
    requirements = selector.get("matchExpressions") or []
    for requirement in requirements:
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        values = requirement.get("values") or []
        if scope not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        unfit = _unfit(scope, spec.get("hard") or {})
        errors += [invalid(path, selector, "unsupported scope applied to resource") for _ in unfit]
        if scope in _EXISTS_ONLY and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
                "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            errors.append(invalid(f"{path}.operator", operator, detail))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, detail))
        else:
            errors.append(invalid(f"{path}.operator", operator, NOT_AN_OPERATOR))
    named = {requirement.get("scopeName") for requirement in requirements}
    scopes = spec.get("scopes")
    return errors + [invalid(path, scopes, "conflicting scopes") for pair in _CONFLICTING if pair <= named]
