"""node.k8s.io/v1: RuntimeClasses."""

import orjson

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, required
from argosy.server.kinds.core.resource_lists import canonical_resources, validate_requirements
from argosy.server.kinds.pods.scheduling import validate_tolerations
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]


def kinds(schemas: Schemas) -> list[Kind]:
    group, plural = "node.k8s.io", "runtimeclasses"
    return [declare(schemas, RuntimeClassStrategy, group, "v1", "RuntimeClass", plural, namespaced=False)]


class RuntimeClassStrategy(StatuslessStrategy):
    create_on_update = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        fill(obj, "handler", "")
        canonical_resources((obj.get("overhead") or {}).get("podFixed"))

    def validate(self, obj: Object) -> list[FieldError]:
        handler = obj["handler"]
        errors = (
            rules.messages(handler, "handler", names.dns_label_errors(handler)) if handler else [required("handler")]
        )
        if obj.get("overhead") is not None:
            errors += validate_requirements({"limits": obj["overhead"].get("podFixed") or {}}, "overhead")
        scheduling = obj.get("scheduling") or {}
        errors += rules.labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        errors += validate_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")
        seen = set()
        for i, toleration in enumerate(scheduling.get("tolerations") or ()):
            key = {field: toleration.get(field) or "" for field in ("key", "operator", "value", "effect")}
            if tuple(key.values()) in seen:
                internal = {field.capitalize(): value for field, value in key.items()}
                internal["TolerationSeconds"] = toleration.get("tolerationSeconds")
                shown = orjson.Fragment(orjson.dumps(internal))
                errors.append(duplicate(f"scheduling.tolerations[{i}]", shown))
            seen.add(tuple(key.values()))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new) + rules.immutable(new["handler"], old.get("handler"), "handler")
