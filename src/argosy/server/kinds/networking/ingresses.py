"""Ingresses: hosts, paths and the services or resources behind them."""

from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.server.fielderrors import FieldError, invalid, not_supported, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy
from argosy.server.registry import Object

__all__ = ["IngressStrategy"]

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ["Exact", "ImplementationSpecific", "Prefix"]
BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
BAD_SUFFIXES = ("/..", "/.")
NOT_DNS = "must be a DNS name, not an IP address"


class IngressStrategy(BuiltinStrategy):
    validates_prefix = True

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def validate(self, obj: Object) -> list[FieldError]:
        errors = _spec(obj["spec"], None)
        annotated = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
        name = obj["spec"].get("ingressClassName")
        if annotated is not None and name is not None and annotated != name:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(invalid(f"annotations.{CLASS_ANNOTATION}", annotated, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _spec(new["spec"], old["spec"])

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        errors = []
        stored = {point.get("ip") for point in _points(old)}
        for i, point in enumerate(_points(new)):
            path = f"status.loadBalancer.ingress[{i}]"
            ip, hostname = point.get("ip"), point.get("hostname")
            if ip and ip not in stored:
                errors += rules.ip(ip, f"{path}.ip")
            if hostname:
                errors += rules.dns_subdomain(hostname, f"{path}.hostname")
                if not names.ip_errors(hostname):
                    errors.append(invalid(f"{path}.hostname", hostname, NOT_DNS))
        return errors


def _points(obj: Object) -> list[Mapping[str, Any]]:
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _spec(spec: Mapping[str, Any], stored: Mapping[str, Any] | None) -> list[FieldError]:
    errors: list[FieldError] = []
    routes, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not routes and backend is None:
        errors.append(invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend(backend, "spec.defaultBackend")
    # Rules for wildcard hosts were once not validated: an Ingress stored then may keep them.
    lenient = stored is not None and any(
        "*" in (rule.get("host") or "") and _http(rule, "") for rule in stored.get("rules") or ()
    )
    for i, rule in enumerate(routes):
        errors += _rule(rule, f"spec.rules[{i}]", lenient)
    errors += _tls(spec, stored)
    if spec.get("ingressClassName") is not None:
        errors += rules.dns_subdomain(spec["ingressClassName"], "spec.ingressClassName")
    return errors


def _tls(spec: Mapping[str, Any], stored: Mapping[str, Any] | None) -> list[FieldError]:
    errors = []
    before = [tls.get("secretName") for tls in (stored or {}).get("tls") or ()]
    lenient = any(name and names.dns_subdomain_errors(name) for name in before)
    for i, tls in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{i}]"
        for j, host in enumerate(tls.get("hosts") or ()):
            rule = names.wildcard_dns_subdomain_errors if "*" in host else names.dns_subdomain_errors
            errors += rules.messages(host, f"{path}.hosts[{j}]", rule(host))
        if tls.get("secretName") and not lenient:
            errors += rules.dns_subdomain(tls["secretName"], f"{path}.secretName")
    return errors


def _rule(rule: Mapping[str, Any], path: str, lenient: bool) -> list[FieldError]:
    errors = []
    host = rule.get("host") or ""
    wildcard = "*" in host
    if host:
        if not names.ip_errors(host):
            errors.append(invalid(f"{path}.host", host, NOT_DNS))
        check = names.wildcard_dns_subdomain_errors if wildcard else names.dns_subdomain_errors
        errors += rules.messages(host, f"{path}.host", check(host))
    return errors if wildcard and lenient else errors + _http(rule, path)


def _http(rule: Mapping[str, Any], path: str) -> list[FieldError]:
    http = rule.get("http")
    if http is None:
        return []
    paths = http.get("paths") or []
    if not paths:
        return [required(f"{path}.http.paths")]
    return [error for i, item in enumerate(paths) for error in _path(item, f"{path}.http.paths[{i}]")]


def _path(item: Mapping[str, Any], path: str) -> list[FieldError]:
    kind, text = item.get("pathType"), item.get("path") or ""
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors = []
    if kind not in PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, PATH_TYPES))
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        errors.append(invalid(f"{path}.path", text, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        found = [f"must not contain '{bad}'" for bad in BAD_SEQUENCES if bad in text]
        found += [f"cannot end with '{bad}'" for bad in BAD_SUFFIXES if text.endswith(bad)]
        errors += rules.messages(text, f"{path}.path", found)
    return errors + _backend(item.get("backend") or {}, f"{path}.backend")


def _backend(backend: Mapping[str, Any], path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _resource(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    errors = []
    if not service.get("name"):
        errors.append(required(f"{path}.service.name"))
    else:
        errors += rules.dns_label(service["name"], f"{path}.service.name")
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += rules.messages(port["name"], f"{path}.service.port.name", names.port_name_errors(port["name"]))
    elif port.get("number"):
        errors += rules.port_number(port["number"], f"{path}.service.port.number")
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _resource(resource: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    if resource.get("apiGroup") is not None:
        errors += rules.dns_subdomain(resource["apiGroup"], f"{path}.apiGroup")
    return errors + rules.segments(resource, path, ("kind", "name"))
