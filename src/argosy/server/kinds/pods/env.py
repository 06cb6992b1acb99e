"""Environment of containers: variables, their sources, and the downward API both here and in volumes."""

from collections.abc import Collection
from typing import Any

from argosy.kube import names
from argosy.kube.quantity import parse_or_zero
from argosy.server.fielderrors import FieldError, invalid, not_supported, required
from argosy.server.kinds.pods.paths import no_backsteps
from argosy.server.kinds.shared.meta_rules import dns_label, dns_subdomain, messages, qualified_name

__all__ = [
    "FIELDS_IN_VOLUMES",
    "validate_env",
    "validate_env_from",
    "validate_field_ref",
    "validate_resource_field_ref",
]

Object = dict[str, Any]

FIELDS_IN_ENV = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
FIELDS_IN_VOLUMES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
#: Pod fields that the downward API supports; which of them are allowed depends on the place.
_POD_FIELDS = frozenset(
    {*FIELDS_IN_ENV, *FIELDS_IN_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"}
)
_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_CPU_DIVISORS = ("1m", "1")
_DIVIDED = {
    ".cpu": "cpu",
    ".memory": "memory",
    ".ephemeral-storage": "local ephemeral storage",
    ".hugepages-": "hugepages",
}
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_env(variables: list[Object], path: str) -> list[FieldError]:
    errors = []
    for i, variable in enumerate(variables):
        at, name = f"{path}[{i}]", variable.get("name", "")
        if not name:
            errors.append(required(f"{at}.name"))
        else:
            errors += messages(name, f"{at}.name", names.env_var_name_errors(name))
        if variable.get("valueFrom") is not None:
            errors += _value_from(variable, f"{at}.valueFrom")
    return errors


def _value_from(variable: Object, path: str) -> list[FieldError]:
    source: Object = variable["valueFrom"]
    used = [name for name in _SOURCES if source.get(name) is not None]
    errors = []
    for name in used:
        errors += _source(name, source[name], f"{path}.{name}")
    if not used:
        *first, last = (f"`{name}`" for name in _SOURCES)
        errors.append(invalid(path, "", f"must specify one of: {', '.join(first)} or {last}"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(used) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _source(name: str, source: Object, path: str) -> list[FieldError]:
    if name == "fieldRef":
        return validate_field_ref(source, path, FIELDS_IN_ENV)
    if name == "resourceFieldRef":
        return validate_resource_field_ref(source, path)
    if name == "fileKeyRef":
        return _file_key(source, path)
    errors = dns_subdomain(source.get("name", ""), f"{path}.name")
    key = source.get("key", "")
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + messages(key, f"{path}.key", names.config_map_key_errors(key))


def _file_key(source: Object, path: str) -> list[FieldError]:
    key, volume, file = source.get("key", ""), source.get("volumeName", ""), source.get("path", "")
    errors = messages(key, f"{path}.key", names.env_var_name_errors(key)) if key else [required(f"{path}.key")]
    errors += dns_label(volume, f"{path}.volumeName") if volume else [required(f"{path}.volumeName")]
    errors += no_backsteps(file, f"{path}.path") if file else [required(f"{path}.path")]
    return errors


def validate_field_ref(ref: Object, path: str, fields: Collection[str]) -> list[FieldError]:
    """A reference to a field of the pod itself; `fields` are those the place allows besides subscripts."""
    name = ref.get("fieldPath", "")
    at = f"{path}.fieldPath"
    if not name:
        return [required(at)]
    if ref.get("apiVersion", "v1") != "v1":
        return [invalid(at, name, f"error converting fieldPath: unsupported pod version: {ref['apiVersion']}")]
    base, subscript = _split_subscript(name)
    if subscript is None:
        if name not in _POD_FIELDS:
            return [invalid(at, name, f"error converting fieldPath: field label not supported: {name}")]
        return [] if name in fields else [not_supported(at, name, sorted(fields))]
    if base == "metadata.annotations":
        return qualified_name(subscript.lower(), path)
    if base == "metadata.labels":
        return qualified_name(subscript, path)
    return [invalid(at, name, f"error converting fieldPath: field label does not support subscript: {name}")]


def _split_subscript(name: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is the field and what stands between the quotes."""
    if not name.endswith("']"):
        return name, None
    base, found, subscript = name[:-2].partition("['")
    return (base, subscript) if found and base else (name, None)


def validate_resource_field_ref(ref: Object, path: str) -> list[FieldError]:
    """A reference to a container's own limits or requests."""
    name = ref.get("resource", "")
    errors = []
    if not name:
        errors.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", name, list(_RESOURCES)))
    return errors + _divisor(name, ref.get("divisor", "0"), f"{path}.divisor")


def _divisor(name: str, divisor: Any, path: str) -> list[FieldError]:
    value = parse_or_zero(divisor)
    what = next((text for part, text in _DIVIDED.items() if part in name), None)
    if not value or what is None:
        return []
    allowed = _CPU_DIVISORS if what == "cpu" else _BYTE_DIVISORS
    if str(value) in allowed:
        return []
    listed = " and ".join(allowed) if what == "cpu" else ", ".join(allowed)
    return [invalid(path, name, f"only divisor's values {listed} are supported with the {what} resource")]


def validate_env_from(sources: list[Object], path: str) -> list[FieldError]:
    errors = []
    for i, source in enumerate(sources):
        at, prefix = f"{path}[{i}]", source.get("prefix", "")
        if prefix:
            errors += messages(prefix, f"{at}.prefix", names.env_var_name_errors(prefix))
        used = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in used:
            referred = source[name].get("name", "")
            where = f"{at}.{name}.name"
            errors += dns_subdomain(referred, where) if referred else [required(where)]
        # Kubernetes names the list, not the entry, in these two.
        if not used:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(used) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors
