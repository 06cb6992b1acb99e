"""policy/v1: PodDisruptionBudgets, and the body of evictions."""

import orjson

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid, not_supported
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, VirtualStrategy, declare
from argosy.server.kinds.shared.defaults import fill, fill_conditions
from argosy.server.registry import Kind, Object

__all__ = ["eviction", "kinds"]

EVICTION_POLICIES = ["AlwaysAllow", "IfHealthyBudget"]
COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            DisruptionBudgetStrategy,
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            short_names=("pdb",),
            subresources=frozenset({"status"}),
        )
    ]


def eviction(schemas: Schemas) -> Kind:
    """The body of pods/eviction; not a resource of its own."""
    return declare(schemas, VirtualStrategy, "policy", "v1", "Eviction", "evictions")


class DisruptionBudgetStrategy(BuiltinStrategy):
    name_rule = "path"
    unconditional_update = False
    metadata_last = True

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        for field in sorted(COUNTS):
            fill(status, field, 0)
        fill_conditions(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict.fromkeys(sorted(COUNTS), 0)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        available, unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
        eviction = spec.get("unhealthyPodEvictionPolicy")
        if available is not None and unavailable is not None:
            # As messages show it: by the names of Kubernetes' internal type.
            internal = {
                "MinAvailable": available,
                "Selector": spec.get("selector"),
                "MaxUnavailable": unavailable,
                "UnhealthyPodEvictionPolicy": eviction,
            }
            shown = orjson.Fragment(orjson.dumps(internal))
            errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
        for field, value in (("minAvailable", available), ("maxUnavailable", unavailable)):
            if value is not None:
                errors += workloads.int_or_percent(value, f"spec.{field}")
                errors += workloads.not_above_100_percent(value, f"spec.{field}")
        errors += rules.label_selector(spec.get("selector"), "spec.selector")
        if eviction is not None and eviction not in EVICTION_POLICIES:
            errors.append(not_supported("spec.unhealthyPodEvictionPolicy", eviction, EVICTION_POLICIES))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return workloads.counters(new.get("status") or {}, "status", COUNTS)
