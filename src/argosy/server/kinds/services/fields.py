"""Fields of services that depend on each other: the type and its fields, cluster IPs and families."""

from collections.abc import Collection
from typing import Any

from argosy.server.fielderrors import FieldError, duplicate, invalid, not_supported, required
from argosy.server.kinds.shared.meta_rules import dual_stack, ip, repeated

__all__ = [
    "cluster_ips",
    "family_of",
    "is_external",
    "is_headless",
    "needs_cluster_ip",
    "needs_health_check",
    "needs_node_port",
    "validate_cluster_ips",
]

Object = dict[str, Any]

_FAMILIES = ["IPv4", "IPv6"]
_POLICIES = ["PreferDualStack", "RequireDualStack", "SingleStack"]


def service_type(spec: Object) -> str:
    return str(spec.get("type") or "ClusterIP")


def cluster_ips(spec: Object) -> list[str]:
    """clusterIPs, or the one in clusterIP."""
    several = spec.get("clusterIPs") or []
    return list(several) if several or not spec.get("clusterIP") else [spec["clusterIP"]]


def family_of(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def is_headless(spec: Object) -> bool:
    return cluster_ips(spec) == ["None"]


def needs_cluster_ip(spec: Object) -> bool:
    return service_type(spec) in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_node_port(spec: Object) -> bool:
    return service_type(spec) in ("NodePort", "LoadBalancer")


def needs_health_check(spec: Object) -> bool:
    return service_type(spec) == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def is_external(spec: Object) -> bool:
    """Whether it is reachable from outside: by its type, or by its addresses."""
    return needs_node_port(spec) or (service_type(spec) == "ClusterIP" and bool(spec.get("externalIPs")))


def validate_cluster_ips(spec: Object, known: Collection[str]) -> list[FieldError]:
    """clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy together; `known` are its previous addresses."""
    if service_type(spec) == "ExternalName":
        return []
    one, several = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    path = "spec.clusterIPs"
    errors = []
    if one and not several:
        errors.append(required(path))
    elif one and several[0] != one:
        errors.append(invalid(path, several, "first value must match `clusterIP`"))
    elif several and not one:
        errors.append(invalid(path, several, "must be empty when `clusterIP` is not specified"))
    errors += _families(spec.get("ipFamilies") or [])
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    wrong = _addresses(several, known, path)
    if len(several) > 2:
        errors.append(invalid(path, several, "may only hold up to 2 values"))
    if wrong:
        return errors + wrong
    if len(several) > 1 and not dual_stack(several):
        errors.append(invalid(path, several, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for i, (address, family) in enumerate(zip(several, spec.get("ipFamilies") or (), strict=False)):
            if family in _FAMILIES and family_of(address) != family:
                detail = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
                errors.append(invalid(f"{path}[{i}]", address, detail))
    return errors


def _families(families: list[str]) -> list[FieldError]:
    errors = []
    for i, (family, again) in enumerate(zip(families, repeated(families), strict=True)):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{i}]", family, _FAMILIES))
        if again:
            errors.append(duplicate(f"spec.ipFamilies[{i}]", family))
    return errors


def _addresses(several: list[str], known: Collection[str], path: str) -> list[FieldError]:
    errors = []
    for i, address in enumerate(several):
        if i == 0 and address == "None":
            if len(several) > 1:
                errors.append(invalid(path, several, "'None' must be the first and only value"))
            continue
        errors += ip(address, f"{path}[{i}]", known=known)
    return errors
