"""The smaller kinds of the core group: config maps, secrets, service accounts, endpoints, events, replication controllers."""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import orjson

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.kube.selectors import from_map
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from argosy.server.kinds.pods.containers import PROTOCOLS
from argosy.server.kinds.pods.podspec import default_pod_template, validate_pod_template
from argosy.server.kinds.pods.warnings import workload_warnings
from argosy.server.kinds.services.services import validate_endpoint_ip
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.kinds.shared.meta_rules import (
    dns_label,
    dns_subdomain,
    immutable,
    ip,
    messages,
    nonnegative,
    one_of,
    port_number,
    qualified_name,
    same,
)
from argosy.server.registry import Kind, Object, ScalePaths

__all__ = ["kinds"]

MAX_DATA_BYTES = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
#: Keys a secret of a type cannot do without.
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON_SECRETS = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_LIMITS = (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))


def kinds(schemas: Schemas) -> list[Kind]:
    status_scale = frozenset({"scale", "status"})
    return [
        declare(schemas, ConfigMapStrategy, "", "v1", "ConfigMap", "configmaps", short_names=("cm",)),
        declare(schemas, SecretStrategy, "", "v1", "Secret", "secrets"),
        declare(
            schemas,
            ServiceAccountStrategy,
            "",
            "v1",
            "ServiceAccount",
            "serviceaccounts",
            short_names=("sa",),
            subresources=frozenset({"token"}),
        ),
        declare(schemas, EndpointsStrategy, "", "v1", "Endpoints", "endpoints", short_names=("ep",)),
        declare(schemas, EventStrategy, "", "v1", "Event", "events", short_names=("ev",)),
        declare(
            schemas,
            ReplicationControllerStrategy,
            "",
            "v1",
            "ReplicationController",
            "replicationcontrollers",
            short_names=("rc",),
            categories=("all",),
            subresources=status_scale,
            scale=ScalePaths(),
        ),
    ]


class ConfigMapStrategy(StatuslessStrategy):
    validates_prefix = True

    def default(self, obj: Object) -> None:
        _without_empty(obj, ("data", "binaryData"))

    def validate(self, obj: Object) -> list[FieldError]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors = []
        for name, values in (("data", data), ("binaryData", binary)):
            for key in values:
                errors += messages(key, f"{name}[{key}]", names.config_map_key_errors(key))
                if name == "data" and key in binary:
                    errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_size, binary.values()))
        if size > MAX_DATA_BYTES:
            errors.append(too_long("[]", MAX_DATA_BYTES))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _sealed(new, old, ("data", "binaryData")) + self.validate(new)


class SecretStrategy(StatuslessStrategy):
    validates_prefix = True
    selectable = {"type": lambda obj: str(obj.get("type", ""))}  # noqa: RUF012

    def default(self, obj: Object) -> None:
        obj["type"] = obj.get("type") or "Opaque"
        # Write-only: plain text is stored with the rest and never shown again.
        plain = obj.pop("stringData", None)
        if plain:
            folded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            obj["data"] = {**(obj.get("data") or {}), **folded}
        _without_empty(obj, ("data",))

    def validate(self, obj: Object) -> list[FieldError]:
        data: dict[str, str] = obj.get("data") or {}
        errors = []
        for key in data:
            errors += messages(key, f"data[{key}]", names.config_map_key_errors(key))
        if sum(map(_decoded_size, data.values())) > MAX_DATA_BYTES:
            errors.append(too_long("data", MAX_DATA_BYTES))
        return errors + _secret_type(obj, data)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = immutable(new.get("type"), old.get("type"), "type")
        return errors + _sealed(new, old, ("data",)) + self.validate(new)


def _without_empty(obj: Object, fields: tuple[str, ...]) -> None:
    for name in fields:
        if name in obj and not obj[name]:
            del obj[name]


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def _sealed(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    """An object marked immutable stays so, with its content."""
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _SEALED)]
    return errors + [forbidden(name, _SEALED) for name in fields if not _same_data(new.get(name), old.get(name))]


def _same_data(new: dict[str, str] | None, old: dict[str, str] | None) -> bool:
    return (new or {}) == (old or {})


def _secret_type(obj: Object, data: dict[str, str]) -> list[FieldError]:
    kind = obj.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        named = (obj["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME)
        return [] if named else [required(f"metadata.annotations[{_ACCOUNT_NAME}]")]
    if kind == "kubernetes.io/basic-auth":
        keys = ("username", "password")
        return [] if any(key in data for key in keys) else [required(f"data[{key}]") for key in keys]
    if kind == "kubernetes.io/ssh-auth":
        return [] if data.get("ssh-privatekey") else [required("data[ssh-privatekey]")]
    errors = [required(f"data[{key}]") for key in _SECRET_KEYS.get(kind, ()) if key not in data]
    if kind in _JSON_SECRETS and not errors:
        (key,) = _SECRET_KEYS[kind]
        errors += _json_object(data[key], f"data[{key}]")
    return errors


def _json_object(text: str, path: str) -> list[FieldError]:
    """The content never appears in the message."""
    try:
        value: Any = orjson.loads(base64.b64decode(text, validate=True))
    except (orjson.JSONDecodeError, binascii.Error) as error:
        detail = "unexpected end of JSON input" if "end of data" in str(error) else "must be valid JSON"
        return [invalid(path, "<secret contents redacted>", detail)]
    if value is None or isinstance(value, dict):
        return []
    return [invalid(path, "<secret contents redacted>", "must be a JSON object")]


class ServiceAccountStrategy(StatuslessStrategy):
    validates_prefix = True

    def prepare_create(self, obj: Object) -> None:
        _only_names(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        _only_names(new)


def _only_names(account: Object) -> None:
    if account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in account["secrets"]]


class EndpointsStrategy(StatuslessStrategy):
    validates_prefix = True
    create_on_update = True

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port["protocol"] = port.get("protocol") or "TCP"

    def validate(self, obj: Object) -> list[FieldError]:
        errors = []
        for i, subset in enumerate(obj.get("subsets") or ()):
            errors += _subset(subset, f"subsets[{i}]")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        # A value that was accepted once is not refused because of a change elsewhere in the object.
        return [] if same(new.get("subsets"), old.get("subsets")) else self.validate(new)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def _subset(subset: Object, path: str) -> list[FieldError]:
    errors = []
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for name in ("addresses", "notReadyAddresses"):
        for i, address in enumerate(subset.get(name) or ()):
            errors += _address(address, f"{path}.{name}[{i}]")
    ports = subset.get("ports") or []
    for i, port in enumerate(ports):
        at, name = f"{path}.ports[{i}]", port.get("name", "")
        if name:
            errors += dns_label(name, f"{at}.name")
        elif len(ports) > 1:
            errors.append(required(f"{at}.name"))
        errors += port_number(port.get("port", 0), f"{at}.port")
        errors += one_of(port.get("protocol", ""), f"{at}.protocol", PROTOCOLS)
        if port.get("appProtocol") is not None:
            errors += qualified_name(port["appProtocol"], f"{at}.appProtocol")
    return errors


def _address(address: Object, path: str) -> list[FieldError]:
    value = address.get("ip", "")
    errors = ip(value, f"{path}.ip")
    if address.get("hostname"):
        errors += dns_label(address["hostname"], f"{path}.hostname")
    if address.get("nodeName") is not None:
        errors += dns_subdomain(address["nodeName"], f"{path}.nodeName")
    return errors + validate_endpoint_ip(value, f"{path}.ip")


def _about(name: str) -> Callable[[Object], str]:
    return lambda obj: str((obj.get("involvedObject") or {}).get(name, ""))


class EventStrategy(StatuslessStrategy):
    """Events as the core group has them: the rules of old, and the newer ones once eventTime is set."""

    create_on_update = True
    selectable = {  # noqa: RUF012
        **{f"involvedObject.{name}": _about(name) for name in _ABOUT},
        "reason": lambda obj: str(obj.get("reason", "")),
        "reportingComponent": lambda obj: str(obj.get("reportingComponent", "")),
        "source": lambda obj: str((obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")),
        "type": lambda obj: str(obj.get("type", "")),
    }

    def default(self, obj: Object) -> None:
        # Kubernetes writes these out even when empty, and typed clients expect them.
        for name in ("eventTime", "firstTimestamp", "lastTimestamp"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj.setdefault(name, "")
        obj.setdefault("source", {})
        obj.setdefault("involvedObject", {})

    def validate(self, obj: Object) -> list[FieldError]:
        namespace = obj["metadata"].get("namespace", "")
        about = (obj.get("involvedObject") or {}).get("namespace", "")
        mismatch = invalid("involvedObject.namespace", about, "does not match event.namespace")
        if not obj.get("eventTime"):
            expected = (namespace,) if about else ("", "default")
            errors = [] if (about or namespace) in expected else [mismatch]
        else:
            errors = [] if about or namespace in ("default", "kube-system") else [mismatch]
            errors += _new_event(obj)
        return errors + messages(namespace, "namespace", names.dns_subdomain_errors(namespace))


def _new_event(obj: Object) -> list[FieldError]:
    reporter = obj.get("reportingComponent") or ""
    errors = [] if reporter else [required("reportingComponent")]
    errors += qualified_name(reporter, "reportingComponent")
    for name, limit in _EVENT_LIMITS:
        value = obj.get(name) or ""
        if not value and name != "message":
            errors.append(required(name))
        if len(value.encode()) > limit:
            errors.append(invalid(name, "", f"can have at most {limit} characters"))
    return errors


class ReplicationControllerStrategy(BuiltinStrategy):
    orphan_by_default = True
    selectable = {  # noqa: RUF012
        "status.replicas": lambda obj: str((obj.get("status") or {}).get("replicas", 0))
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        obj.setdefault("status", {}).setdefault("replicas", 0)
        fill_condition_times(obj, "lastTransitionTime")
        template = spec.get("template")
        if template is None:
            return
        default_pod_template(template)
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            spec["selector"] = spec.get("selector") or dict(labels)
            obj["metadata"]["labels"] = obj["metadata"].get("labels") or dict(labels)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")
        if not spec.get("selector"):
            errors.append(required("spec.selector"))
        errors += nonnegative(spec["replicas"], "spec.replicas")
        if spec.get("template") is None:
            return [*errors, required("spec.template")]
        return errors + _controlled_template(spec)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
        errors = []
        for name in counts:
            errors += nonnegative(status.get(name) or 0, f"status.{name}")
        for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
            value = status.get(name) or 0
            if value > (status.get("replicas") or 0):
                errors.append(invalid(f"status.{name}", value, "cannot be greater than status.replicas"))
        available = status.get("availableReplicas") or 0
        if available > (status.get("readyReplicas") or 0):
            errors.append(invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return workload_warnings(obj, old, "spec.template")


def _controlled_template(spec: Object) -> list[FieldError]:
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    errors = []
    if not from_map(spec.get("selector")).matches(labels):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", labels or None, detail))
    errors += validate_pod_template(template, "spec.template")
    policy = template["spec"].get("restartPolicy")
    if policy != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", policy, ["Always"]))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicationController is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return errors
