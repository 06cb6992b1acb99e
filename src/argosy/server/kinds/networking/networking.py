"""networking.k8s.io/v1: Ingresses, their classes, network policies, and the addresses of services."""

import ipaddress
from collections.abc import Collection, Mapping
from typing import Any

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from argosy.server.kinds.networking.ingresses import IngressStrategy
from argosy.server.kinds.shared import domains
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "networking.k8s.io"
STATUS = frozenset({"status"})
PROTOCOLS = ["TCP", "UDP", "SCTP"]
POLICY_TYPES = ["Ingress", "Egress"]
MAX_CONTROLLER = 250
NOT_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def kinds(schemas: Schemas) -> list[Kind]:
    def cluster(strategy: type[BuiltinStrategy], kind: str, plural: str, *short_names: str) -> Kind:
        return declare(schemas, strategy, GROUP, "v1", kind, plural, namespaced=False, short_names=short_names)

    return [
        cluster(IngressClassStrategy, "IngressClass", "ingressclasses"),
        declare(
            schemas, IngressStrategy, GROUP, "v1", "Ingress", "ingresses", short_names=("ing",), subresources=STATUS
        ),
        cluster(IPAddressStrategy, "IPAddress", "ipaddresses", "ip"),
        declare(
            schemas, NetworkPolicyStrategy, GROUP, "v1", "NetworkPolicy", "networkpolicies", short_names=("netpol",)
        ),
        declare(
            schemas,
            ServiceCIDRStrategy,
            GROUP,
            "v1",
            "ServiceCIDR",
            "servicecidrs",
            namespaced=False,
            subresources=STATUS,
        ),
    ]


class IngressClassStrategy(StatuslessStrategy):
    generation = True

    def default(self, obj: Object) -> None:
        parameters = obj.setdefault("spec", {}).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        controller = spec.get("controller") or ""
        errors = [too_long("spec.controller", MAX_CONTROLLER)] if len(controller) > MAX_CONTROLLER else []
        errors += domains.prefixed_path(controller, "spec.controller")
        if spec.get("parameters") is not None:
            errors += _parameters(spec["parameters"], "spec.parameters")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        fixed = rules.immutable(new["spec"].get("controller"), old["spec"].get("controller"), "spec.controller")
        return fixed + self.validate(new)


def _parameters(parameters: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    if parameters.get("apiGroup") is not None:
        errors += rules.dns_subdomain(parameters["apiGroup"], f"{path}.apiGroup")
    errors += rules.segments(parameters, path, ("kind", "name"))
    scope, namespace = parameters["scope"], parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        errors.append(not_supported(f"{path}.scope", scope, ["Cluster", "Namespace"]))
    elif scope == "Cluster" and namespace is not None:
        errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        errors += rules.dns_label(namespace or "", f"{path}.namespace")
    return errors


class NetworkPolicyStrategy(StatuslessStrategy):
    generation = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("podSelector") is None:
            spec["podSelector"] = {}
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"

    def validate(self, obj: Object) -> list[FieldError]:
        return _policy(obj["spec"], frozenset())

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _policy(new["spec"], frozenset(_cidrs(old["spec"])))


def _cidrs(spec: Mapping[str, Any]) -> list[str]:
    peers = [
        peer.get("ipBlock") or {}
        for direction, side in (("ingress", "from"), ("egress", "to"))
        for rule in spec.get(direction) or ()
        for peer in rule.get(side) or ()
    ]
    return [cidr for block in peers for cidr in (block.get("cidr", ""), *(block.get("except") or ()))]


def _policy(spec: Mapping[str, Any], stored_cidrs: Collection[str]) -> list[FieldError]:
    errors = rules.label_selector(spec["podSelector"], "spec.podSelector")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{i}]"
            for j, port in enumerate(rule.get("ports") or ()):
                errors += _port(port, f"{path}.ports[{j}]")
            for j, peer in enumerate(rule.get(side) or ()):
                errors += _peer(peer, f"{path}.{side}[{j}]", stored_cidrs)
    types = spec["policyTypes"]
    if len(types) > len(POLICY_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    for i, kind in enumerate(types):
        if kind not in POLICY_TYPES:
            errors.append(not_supported(f"spec.policyTypes[{i}]", kind, POLICY_TYPES))
    return errors


def _port(port: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    if port["protocol"] not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS))
    number, end = port.get("port"), port.get("endPort")
    if number is None:
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified"))
        return errors
    if isinstance(number, str):
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
        return errors + rules.port_num_or_name(number, f"{path}.port")
    errors += rules.port_number(number, f"{path}.port")
    if end is not None:
        if end < number:
            errors.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
        errors += rules.port_number(end, f"{path}.endPort")
    return errors


def _peer(peer: Mapping[str, Any], path: str, stored_cidrs: Collection[str]) -> list[FieldError]:
    errors = []
    given = [field for field in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(field) is not None]
    for field in given:
        if field == "ipBlock":
            errors += _ip_block(peer[field], f"{path}.ipBlock", stored_cidrs)
        else:
            errors += rules.label_selector(peer[field], f"{path}.{field}")
    if not given:
        errors.append(required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _ip_block(block: Mapping[str, Any], path: str, stored_cidrs: Collection[str]) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = _cidr(cidr, f"{path}.cidr", stored_cidrs)
    whole = _network(cidr)
    if whole is None:
        return errors
    for i, text in enumerate(block.get("except") or ()):
        errors += _cidr(text, f"{path}.except[{i}]", stored_cidrs)
        part = _network(text)
        if part is None:
            continue
        inside = part.version == whole.version and part.network_address in whole and whole.prefixlen < part.prefixlen
        if not inside:
            errors.append(invalid(f"{path}.except[{i}]", text, "must be a strict subset of `cidr`"))
    return errors


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """A network in the form of older objects: leading zeros and host bits are accepted."""
    if names.cidr_errors(cidr):
        return None
    address, _, length = cidr.partition("/")
    if ":" not in address:
        address = ".".join(str(int(part)) for part in address.split("."))
    return ipaddress.ip_network(f"{address}/{int(length)}", strict=False)


def _cidr(cidr: str, path: str, stored: Collection[str] = ()) -> list[FieldError]:
    """A network in the strict form for new objects, which all parsers understand alike."""
    if cidr in stored:
        return []
    network = _network(cidr)
    if network is None:
        return [invalid(path, cidr, NOT_CIDR)]
    address, _, length = cidr.partition("/")
    errors = []
    zeros = ":" not in address and any(part != str(int(part)) for part in address.split("."))
    if zeros or length != str(int(length)):
        errors.append(invalid(path, cidr, "must not have leading 0s in IP or prefix length"))
    if ":" in address and ipaddress.IPv6Address(address).ipv4_mapped is not None:
        errors.append(invalid(path, cidr, "must not have an IPv4-mapped IPv6 address"))
    if not zeros and ipaddress.ip_address(address) != network.network_address:
        errors.append(invalid(path, cidr, "must not have bits set beyond the prefix length"))
    return errors


class IPAddressStrategy(StatuslessStrategy):
    name_rule = "path"

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def validate(self, obj: Object) -> list[FieldError]:
        name = obj["metadata"].get("name", "")
        errors = rules.messages(name, "metadata.name", names.ip_errors(name))
        if not errors and str(ipaddress.ip_address(name)) != name:
            detail = f'must be in canonical form ("{ipaddress.ip_address(name)}")'
            errors.append(invalid("metadata.name", name, detail))
        parent = obj["spec"].get("parentRef")
        if parent is None:
            return [*errors, required("spec.parentRef")]
        path = "spec.parentRef"
        if parent.get("group"):
            errors += rules.dns_subdomain(parent["group"], f"{path}.group")
        errors += rules.segments(parent, path, ("resource", "name"))
        if parent.get("namespace"):
            errors += rules.segments(parent, path, ("namespace",))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        parent, before = new["spec"].get("parentRef"), old["spec"].get("parentRef")
        return self.validate(new) + rules.immutable(parent, before, "spec.parentRef")


class ServiceCIDRStrategy(BuiltinStrategy):
    generation = False

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        cidrs, path = obj["spec"].get("cidrs") or [], "spec.cidrs"
        if not cidrs:
            return [required(path, "at least one CIDR required")]
        if len(cidrs) > 2:
            return [invalid(path, {"CIDRs": cidrs}, "may only hold up to 2 values")]
        errors = [error for i, cidr in enumerate(cidrs) for error in _cidr(cidr, f"{path}[{i}]")]
        networks = [network for network in map(_network, cidrs) if network is not None]
        if len(networks) == 2 and networks[0].version == networks[1].version:
            detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            errors.append(invalid(path, cidrs, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        cidrs, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
        path = "spec.cidrs"
        if len(cidrs) != len(before) and (len(cidrs), len(before)) != (2, 1):
            return [invalid(path, cidrs, rules.IMMUTABLE)]
        errors = [
            invalid(f"{path}[{i}]", cidrs[i], rules.IMMUTABLE) for i, cidr in enumerate(before) if cidrs[i] != cidr
        ]
        # A second family may be added later.
        return errors + (self.validate(new) if len(cidrs) > len(before) else [])
