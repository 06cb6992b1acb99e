"""scheduling.k8s.io/v1: PriorityClasses."""

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, forbidden
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object

__all__ = ["SYSTEM_CLASSES", "kinds"]

#: The classes every cluster has, by name and value.
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
SYSTEM_PREFIX = "system-"
HIGHEST_USER_PRIORITY = 1_000_000_000
PREEMPTION_POLICIES = ["PreemptLowerPriority", "Never"]


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            PriorityClassStrategy,
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            "priorityclasses",
            namespaced=False,
            short_names=("pc",),
        )
    ]


class PriorityClassStrategy(StatuslessStrategy):
    generation = True

    def default(self, obj: Object) -> None:
        fill(obj, "value", 0)
        fill(obj, "preemptionPolicy", "PreemptLowerPriority")

    def generation_grows(self, new: Object, old: Object) -> bool:
        return False

    def validate(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if name.startswith(SYSTEM_PREFIX):
            wrong = _not_a_system_class(name, value, bool(obj.get("globalDefault")))
            if wrong:
                reserved = (
                    f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: "
                )
                errors.append(forbidden("metadata.name", reserved + wrong))
        elif value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            errors.append(forbidden("value", detail))
        return errors + rules.one_of(obj["preemptionPolicy"], "preemptionPolicy", PREEMPTION_POLICIES)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = []
        if new["value"] != (old.get("value") or 0):
            errors.append(forbidden("value", "may not be changed in an update."))
        return errors + rules.immutable(new["preemptionPolicy"], old.get("preemptionPolicy"), "preemptionPolicy")


def _not_a_system_class(name: str, value: int, is_default: bool) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    if is_default:
        return f"globalDefault of {name} PriorityClass must be false"
    return ""
