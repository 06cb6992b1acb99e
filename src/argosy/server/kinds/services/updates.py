"""Updates of services: which allocated values are kept or dropped, and which fields are immutable."""

from typing import Any

from argosy.server.fielderrors import FieldError, forbidden, invalid
from argosy.server.kinds.services.fields import (
    is_external,
    is_headless,
    needs_cluster_ip,
    needs_health_check,
    needs_node_port,
    service_type,
)

__all__ = ["drop_unneeded", "follow_cluster_ip", "keep_allocated", "validate_changes"]

Object = dict[str, Any]


def keep_allocated(spec: Object, before: Object) -> None:
    """Allocated values are kept if the client leaves them out, so that it need not read before writing."""
    if needs_cluster_ip(before) and needs_cluster_ip(spec):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    if needs_node_port(before) and needs_node_port(spec):
        given = {port.get("name", ""): port.get("nodePort") for port in before.get("ports") or ()}
        used = {port.get("nodePort") for port in spec.get("ports") or ()} & set(given.values())
        for port in spec.get("ports") or ():
            kept = given.get(port.get("name", ""))
            if not port.get("nodePort") and kept and kept not in used:
                port["nodePort"] = kept
    if needs_health_check(before) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort", 0)
    if needs_cluster_ip(before) and needs_cluster_ip(spec) and _same_addresses(spec, before):
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(name) is None and before.get(name) is not None:
                spec[name] = before[name]


def _same_addresses(spec: Object, before: Object) -> bool:
    return (spec.get("clusterIPs") or []) == (before.get("clusterIPs") or [])


def follow_cluster_ip(spec: Object, before: Object) -> None:
    """A client that knows only clusterIP changes clusterIPs with it."""
    if not spec.get("clusterIPs") and before.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
        spec["clusterIPs"] = before["clusterIPs"]
    if spec.get("clusterIP") == before.get("clusterIP") or not _same_addresses(spec, before):
        return
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    else:
        spec.pop("clusterIPs", None)


def drop_unneeded(spec: Object, before: Object) -> None:
    """A change of the type removes the fields of the old type that the client merely sent back."""
    if needs_cluster_ip(before) and not needs_cluster_ip(spec):
        if _same_addresses(spec, before):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _pop_same(spec, before, "ipFamilies")
        _pop_same(spec, before, "ipFamilyPolicy")
        _pop_same(spec, before, "internalTrafficPolicy")
    if needs_node_port(before) and not needs_node_port(spec) and _node_ports(spec) == _node_ports(before):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _pop_same(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and service_type(spec) != "LoadBalancer":
        _pop_same(spec, before, "allocateLoadBalancerNodePorts")
        _pop_same(spec, before, "loadBalancerClass")
    if is_external(before) and not is_external(spec):
        _pop_same(spec, before, "externalTrafficPolicy")


def _pop_same(spec: Object, before: Object, name: str) -> None:
    if spec.get(name) == before.get(name):
        spec.pop(name, None)


def _node_ports(spec: Object) -> set[int]:
    return {port.get("nodePort") or 0 for port in spec.get("ports") or ()}


def validate_changes(spec: Object, before: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if "ExternalName" not in (spec["type"], service_type(before)):
        errors += _address_changes(spec, before) + _family_changes(spec, before)
    if spec["type"] == before.get("type") == "LoadBalancer" and _changed("loadBalancerClass", spec, before):
        errors.append(invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set"))
    checked = needs_health_check(before) and needs_health_check(spec)
    if checked and _changed("healthCheckNodePort", spec, before):
        errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors


def _changed(name: str, spec: Object, before: Object) -> bool:
    return bool(spec.get(name) != before.get(name))


def _address_changes(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if is_headless(spec) and is_headless(before):
        return []
    path = "spec.clusterIPs"
    if len(new) == len(old):
        return [
            invalid(f"{path}[{i}]", new, "may not change once set")
            for i, (address, had) in enumerate(zip(new, old, strict=True))
            if address != had
        ]
    errors = []
    if old and not new:
        errors.append(invalid(f"{path}[0]", new, "primary clusterIP can not be unset"))
    elif old and new[0] != old[0]:
        errors.append(invalid(f"{path}[0]", new, "may not change once set"))
    if len(new) == 1 and len(old) > 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    return errors


def _family_changes(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if is_headless(spec) or is_headless(before) or not old:
        return []
    path = "spec.ipFamilies[0]"
    if len(new) == len(old):
        changed = sum(family != had for family, had in zip(new, old, strict=True))
        return [invalid(path, new, "may not change once set")] * changed
    errors = []
    if new and new[0] != old[0]:
        errors.append(invalid(path, spec.get("clusterIPs"), "may not change once set"))
    if len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    return errors
