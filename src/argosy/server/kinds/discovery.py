"""discovery.k8s.io/v1: EndpointSlices."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, invalid, not_supported, required, too_many
from argosy.server.kinds.shared import domains
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

ADDRESS_TYPES = ["FQDN", "IPv4", "IPv6"]
PROTOCOLS = ["SCTP", "TCP", "UDP"]
MAX_ADDRESSES = 100
MAX_PORTS = 20_000
MAX_ENDPOINTS = 1000
MAX_HINTS = 8


def kinds(schemas: Schemas) -> list[Kind]:
    return [declare(schemas, EndpointSliceStrategy, "discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")]


class EndpointSliceStrategy(StatuslessStrategy):
    generation = True
    validates_prefix = True

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        new = old is None and obj.get("addressType") == "FQDN"
        return ["spec.addressType: FQDN endpoints are deprecated"] if new else []

    def default(self, obj: Object) -> None:
        fill(obj, "addressType", "")
        # Both lists are always written; an absent one is null.
        obj["endpoints"] = obj.get("endpoints") or None
        obj["ports"] = obj.get("ports") or None
        for port in obj["ports"] or ():
            fill(port, "name", "")
            fill(port, "protocol", "TCP")
        for endpoint in obj["endpoints"] or ():
            fill(endpoint, "conditions", {})

    def prepare_create(self, obj: Object) -> None:
        _drop_topology(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        if not any(endpoint.get("deprecatedTopology") for endpoint in old.get("endpoints") or ()):
            _drop_topology(new)

    def generation_grows(self, new: Object, old: Object) -> bool:
        """Labels count: they name the slice's service."""
        labels = new["metadata"].get("labels") or {}
        return super().generation_grows(new, old) or labels != (old["metadata"].get("labels") or {})

    def validate(self, obj: Object) -> list[FieldError]:
        kind = obj["addressType"]
        errors = rules.one_of(kind, "addressType", ADDRESS_TYPES)
        errors += _ports(obj["ports"] or [], "ports")
        return errors + _endpoints(obj["endpoints"] or [], kind, "endpoints")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        kind = new["addressType"]
        errors = rules.one_of(kind, "addressType", ADDRESS_TYPES)
        errors += _ports(new["ports"] or [], "ports")
        if not rules.same(new["endpoints"], old.get("endpoints")):
            errors += _endpoints(new["endpoints"] or [], kind, "endpoints")
        return errors + rules.immutable(kind, old.get("addressType"), "addressType")


def _drop_topology(obj: Object) -> None:
    """Readable in v1 if an older version wrote it, but not writable there."""
    for endpoint in obj["endpoints"] or ():
        endpoint.pop("deprecatedTopology", None)


def _ports(ports: list[Mapping[str, Any]], path: str) -> list[FieldError]:
    if len(ports) > MAX_PORTS:
        return [too_many(path, len(ports), MAX_PORTS)]
    errors = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        name, protocol, application = port["name"], port["protocol"], port.get("appProtocol")
        if name:
            errors += rules.dns_label(name, f"{path}[{i}].name")
        if name in seen:
            errors.append(duplicate(f"{path}[{i}].name", name))
        seen.add(name)
        if protocol not in PROTOCOLS:
            errors.append(not_supported(f"{path}[{i}].protocol", protocol, PROTOCOLS))
        if application is not None:
            errors += rules.qualified_name(application, f"{path}[{i}].appProtocol")
    return errors


def _endpoints(endpoints: list[Mapping[str, Any]], kind: str, path: str) -> list[FieldError]:
    if len(endpoints) > MAX_ENDPOINTS:
        return [too_many(path, len(endpoints), MAX_ENDPOINTS)]
    errors = []
    for i, endpoint in enumerate(endpoints):
        at = f"{path}[{i}]"
        errors += _addresses(endpoint.get("addresses") or [], kind, f"{at}.addresses")
        if endpoint.get("nodeName") is not None:
            errors += rules.dns_subdomain(endpoint["nodeName"], f"{at}.nodeName")
        errors += rules.labels(endpoint.get("deprecatedTopology"), f"{at}.deprecatedTopology")
        if endpoint.get("hostname") is not None:
            errors += rules.dns_label(endpoint["hostname"], f"{at}.hostname")
        if endpoint.get("hints") is not None:
            errors += _hints(endpoint["hints"], f"{at}.hints")
    return errors


def _addresses(addresses: list[str], kind: str, path: str) -> list[FieldError]:
    errors = []
    if not addresses:
        errors.append(required(path, "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        errors.append(too_many(path, len(addresses), MAX_ADDRESSES))
    for i, address in enumerate(addresses):
        if kind == "FQDN":
            errors += domains.fully_qualified(address, f"{path}[{i}]")
        elif kind in ("IPv4", "IPv6"):
            errors += _ip(address, kind, path, i)
    return errors


def _ip(address: str, kind: str, path: str, i: int) -> list[FieldError]:
    at = f"{path}[{i}]"
    if names.ip_errors(address):
        return rules.messages(address, at, names.ip_errors(address))
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return [invalid(at, address, "must not have leading 0s")]
    errors = []
    if kind != f"IPv{ip.version}":
        # Without the index, as in Kubernetes.
        errors.append(invalid(path, address, f"must be an {kind} address"))
    if ip.is_unspecified:
        errors.append(invalid(at, address, f"may not be unspecified ({address})"))
    if ip.is_loopback:
        errors.append(invalid(at, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if ip.is_link_local:
        errors.append(invalid(at, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if any(ip in network for network in _LOCAL_MULTICAST):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(at, address, detail))
    return errors


_LOCAL_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))


def _hints(hints: Mapping[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("forZones", names.label_value_errors), ("forNodes", names.dns_subdomain_errors)):
        listed = hints.get(field) or []
        if len(listed) > MAX_HINTS:
            return [*errors, too_many(f"{path}.{field}", len(listed), MAX_HINTS)]
        seen: set[str] = set()
        for i, hint in enumerate(listed):
            name, at = hint.get("name") or "", f"{path}.{field}[{i}].name"
            if name in seen:
                errors.append(duplicate(at, name))
            seen.add(name)
            errors += rules.messages(name, at, check(name))
    return errors
