"""flowcontrol.apiserver.k8s.io/v1: flow schemas and priority levels, as stored objects."""

from collections.abc import Mapping
from typing import Any

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill, fill_condition_times
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "flowcontrol.apiserver.k8s.io"
MAX_PRECEDENCE = 10_000
DISTINGUISHERS = ["ByNamespace", "ByUser"]


def kinds(schemas: Schemas) -> list[Kind]:
    def kind(strategy: type[BuiltinStrategy], name: str) -> Kind:
        plural, status = f"{name.lower()}s", frozenset({"status"})
        return declare(schemas, strategy, GROUP, "v1", name, plural, namespaced=False, subresources=status)

    return [
        kind(FlowSchemaStrategy, "FlowSchema"),
        kind(PriorityLevelStrategy, "PriorityLevelConfiguration"),
    ]


class FlowSchemaStrategy(BuiltinStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = 1000
        spec.setdefault("priorityLevelConfiguration", {})
        fill_condition_times(obj, "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = []
        precedence = spec["matchingPrecedence"]
        if precedence <= 0:
            errors.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
        if precedence > MAX_PRECEDENCE:
            detail = f"must not be greater than {MAX_PRECEDENCE}"
            errors.append(invalid("spec.matchingPrecedence", precedence, detail))
        method = spec.get("distinguisherMethod")
        if method is not None and method.get("type") not in DISTINGUISHERS:
            internal = {"Type": method.get("type") or ""}
            errors.append(not_supported("spec.distinguisherMethod.type", internal, DISTINGUISHERS))
        level = spec["priorityLevelConfiguration"].get("name") or ""
        path = "spec.priorityLevelConfiguration.name"
        errors += rules.dns_subdomain(level, path) if level else [required(path, "must reference a priority level")]
        return errors


class PriorityLevelStrategy(BuiltinStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field, shares in (("limited", 30), ("exempt", 0)):
            if spec.get(field) is not None:
                fill(spec[field], "nominalConcurrencyShares", shares)
                fill(spec[field], "lendablePercent", 0)
        queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for field, default in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(field):
                    queuing[field] = default
        fill_condition_times(obj, "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
        if kind == "Exempt":
            detail = "must be nil if the type is not Limited"
            return [forbidden("spec.limited", detail)] if limited is not None else []
        if kind != "Limited":
            return rules.one_of(kind, "spec.type", ["Exempt", "Limited"])
        errors = [] if exempt is None else [forbidden("spec.exempt", "must be nil if the type is Limited")]
        if limited is None:
            return [*errors, required("spec.limited", "must not be empty when type is Limited")]
        return errors + _limited(limited, "spec.limited")


def _limited(limited: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = rules.nonnegative(limited["nominalConcurrencyShares"], f"{path}.nominalConcurrencyShares")
    errors += rules.inclusive_range(limited["lendablePercent"], f"{path}.lendablePercent", 0, 100)
    response, path = limited.get("limitResponse") or {}, f"{path}.limitResponse"
    kind, queuing = response.get("type") or "", response.get("queuing")
    if not kind:
        return [*errors, required(f"{path}.type")]
    if kind not in ("Queue", "Reject"):
        return [*errors, not_supported(f"{path}.type", kind, ["Queue", "Reject"])]
    if kind == "Reject" and queuing is not None:
        detail = "must be nil if limited.limitResponse.type is not Limited"
        errors.append(forbidden(f"{path}.queuing", detail))
    if kind == "Queue" and queuing is None:
        detail = "must not be empty if limited.limitResponse.type is Limited"
        errors.append(required(f"{path}.queuing", detail))
    return errors
