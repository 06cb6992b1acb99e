"""apiregistration.k8s.io/v1: APIServices. Groups served elsewhere are stored, not proxied."""

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid, not_supported, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared import webhooks
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

STATUSES = ["True", "False", "Unknown"]
MAX_GROUP_PRIORITY = 20_000
MAX_VERSION_PRIORITY = 1000


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            APIServiceStrategy,
            "apiregistration.k8s.io",
            "v1",
            "APIService",
            "apiservices",
            namespaced=False,
            categories=("api-extensions",),
            subresources=frozenset({"status"}),
        )
    ]


class APIServiceStrategy(BuiltinStrategy):
    generation = False
    name_rule = "path"
    unconditional_update = False

    def default(self, obj: Object) -> None:
        webhooks.default_client_config(obj.setdefault("spec", {}))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        group, version = spec.get("group") or "", spec.get("version") or ""
        errors = []
        if name != f"{version}.{group}":
            detail = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
            errors.append(invalid("metadata.name", name, detail))
        if group:
            errors += rules.dns_subdomain(group, "spec.group")
        elif version != "v1":
            errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
        errors += rules.messages(version, "spec.version", names.dns1035_label_errors(version))
        limits = {"groupPriorityMinimum": MAX_GROUP_PRIORITY, "versionPriority": MAX_VERSION_PRIORITY}
        for field, limit in limits.items():
            value = spec.get(field) or 0
            if not 0 < value <= limit:
                errors.append(invalid(f"spec.{field}", value, f"must be positive and less than {limit}"))
        return errors + _service(spec)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return [
            not_supported(f"status.conditions[{i}].status", condition.get("status"), STATUSES)
            for i, condition in enumerate((new.get("status") or {}).get("conditions") or ())
            if condition.get("status") not in STATUSES
        ]


def _service(spec: Object) -> list[FieldError]:
    service, insecure, bundle = spec.get("service"), spec.get("insecureSkipTLSVerify"), spec.get("caBundle")
    path = "spec.insecureSkipTLSVerify"
    errors = []
    if service is None:
        if bundle:
            detail = "local APIServices may not have a caBundle"
            size = len(bundle) // 4 * 3 - bundle.count("=")
            errors.append(invalid("spec.caBundle", f"{size} bytes", detail))
        if insecure:
            errors.append(invalid(path, True, "local APIServices may not have insecureSkipTLSVerify"))
        return errors
    errors += [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    wrong = names.port_number_errors(service["port"])
    if wrong:
        errors.append(invalid("spec.service.port", service["port"], f"port is not valid: {', '.join(wrong)}"))
    if insecure and bundle:
        errors.append(invalid(path, True, "may not be true if caBundle is present"))
    return errors
