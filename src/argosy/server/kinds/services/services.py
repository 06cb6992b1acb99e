"""Services. `ServiceAllocator` allocates addresses and node ports; the server calls it before validation.

Order of a write: `default`, `prepare_*`, `ServiceAllocator.allocate`, `validate*`. On update, allocated values (cluster IP,
node ports) are kept if the client leaves them out, and dropped if the new type does not use them.
"""

import ipaddress
from typing import Any

import orjson

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from argosy.server.kinds.pods.containers import PROTOCOLS
from argosy.server.kinds.services.fields import (
    cluster_ips,
    is_external,
    is_headless,
    needs_cluster_ip,
    needs_health_check,
    service_type,
    validate_cluster_ips,
)
from argosy.server.kinds.services.updates import drop_unneeded, follow_cluster_ip, keep_allocated, validate_changes
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill_conditions
from argosy.server.kinds.shared.meta_rules import (
    cidr,
    dns_label,
    dns_subdomain,
    ip,
    labels,
    one_of,
    port_num_or_name,
    port_number,
    qualified_name,
)
from argosy.server.registry import Kind, Object

__all__ = [
    "ServiceStrategy",
    "kinds",
    "validate_endpoint_ip",
    "validate_load_balancer",
]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITY_SECONDS = 10800
_MAX_AFFINITY_SECONDS = 86400
_DISTRIBUTIONS = ["PreferClose", "PreferSameZone", "PreferSameNode"]
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            ServiceStrategy,
            "",
            "v1",
            "Service",
            "services",
            short_names=("svc",),
            categories=("all",),
            subresources=frozenset({"proxy", "status"}),
        )
    ]


class ServiceStrategy(BuiltinStrategy):
    generation = False
    name_rule = "label"
    create_on_update = True
    needs_cluster_ip = True
    selectable = {  # noqa: RUF012
        "spec.clusterIP": lambda obj: str(obj["spec"].get("clusterIP", "")),
        "spec.type": lambda obj: str(obj["spec"].get("type", "")),
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
        spec["type"] = service_type(spec)
        _default_affinity(spec)
        for port in spec.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"
            port["targetPort"] = port.get("targetPort") or port.get("port", 0)
            if port.get("nodePort") == 0:
                del port["nodePort"]
        if is_external(spec):
            spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
        if needs_cluster_ip(spec):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        status = obj.setdefault("status", {})
        for ingress in status.setdefault("loadBalancer", {}).get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")
        fill_conditions(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        spec, before = new.setdefault("spec", {}), old["spec"]
        keep_allocated(spec, before)
        follow_cluster_ip(spec, before)
        drop_unneeded(spec, before)
        if service_type(spec) != "LoadBalancer" and "status" in new:
            new["status"] = {**new["status"], "loadBalancer": {}}

    def validate(self, obj: Object) -> list[FieldError]:
        return _validate_service(obj, None)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_changes(new["spec"], old["spec"]) + _validate_service(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        before = ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        ingress = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        if new["spec"].get("type") != "LoadBalancer" and ingress:
            path = "status.loadBalancer.ingress"
            return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
        return validate_load_balancer(ingress, before, "status.loadBalancer")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return _warnings(obj["spec"], obj["metadata"].get("annotations") or {})


def _warnings(spec: Object, annotations: dict[str, str]) -> list[str]:
    external, headless = service_type(spec) == "ExternalName", is_headless(spec)
    found = []
    if _TOPOLOGY_HINTS in annotations:
        found.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if headless:
        given = [name for name in ("loadBalancerIP", "externalIPs") if spec.get(name)]
        given += ["SessionAffinity"] if spec.get("sessionAffinity") not in (None, "None") else []
        found += [f"spec.{name} is ignored for headless services" for name in given]
    if spec.get("externalIPs") and external:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    elif spec.get("externalIPs") and not headless:
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("externalName") and not external:
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _default_affinity(spec: Object) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        given = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if given.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _validate_service(service: Object, old: Object | None) -> list[FieldError]:
    spec, before = service["spec"], (old or {}).get("spec") or {}
    annotations = service["metadata"].get("annotations") or {}
    errors = _topology(annotations)
    if not spec.get("ports") and not is_headless(spec) and spec["type"] != "ExternalName":
        errors.append(required("spec.ports"))
    errors += _type_rules(spec)
    errors += _ports(spec.get("ports") or [])
    errors += labels(spec.get("selector"), "spec.selector")
    errors += _affinity(spec)
    errors += validate_cluster_ips(spec, cluster_ips(before))
    known = before.get("externalIPs") or []
    for i, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{i}]"
        errors += ip(address, path, known=known) or validate_endpoint_ip(address, path)
    errors += one_of(spec["type"], "spec.type", _TYPES)
    errors += _port_conflicts(spec)
    errors += _source_ranges(spec, annotations, before)
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec["type"] != "LoadBalancer":
        detail = "may only be used when `type` is 'LoadBalancer'"
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", detail))
    return errors + _load_balancer_class(spec) + _traffic(spec)


def _topology(annotations: dict[str, str]) -> list[FieldError]:
    mode, hints = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, detail)]


def _type_rules(spec: Object) -> list[FieldError]:
    if spec["type"] in ("LoadBalancer", "NodePort"):
        if not is_headless(spec):
            return []
        return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")]
    if spec["type"] != "ExternalName":
        return []
    detail = "may not be set for ExternalName services"
    errors = [
        forbidden(f"spec.{name}", detail) for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(name)
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    return errors + (dns_subdomain(name, "spec.externalName") if name else [required("spec.externalName")])


def _ports(ports: list[Object]) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at, name = f"spec.ports[{i}]", port.get("name", "")
        if name:
            errors += dns_label(name, f"{at}.name")
            if name in seen:
                errors.append(duplicate(f"{at}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{at}.name"))
        errors += port_number(port.get("port", 0), f"{at}.port")
        errors += one_of(port.get("protocol", ""), f"{at}.protocol", PROTOCOLS)
        errors += port_num_or_name(port.get("targetPort", 0), f"{at}.targetPort")
        if port.get("appProtocol") is not None:
            errors += qualified_name(port["appProtocol"], f"{at}.appProtocol")
    return errors


def _port_conflicts(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    ports = spec.get("ports") or []
    if spec["type"] == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        errors += [
            forbidden(f"spec.ports[{i}].nodePort", detail) for i, port in enumerate(ports) if port.get("nodePort")
        ]
    node_ports: set[tuple[Any, Any]] = set()
    numbers: set[tuple[Any, Any]] = set()
    for i, port in enumerate(ports):
        protocol, node_port, number = port.get("protocol"), port.get("nodePort"), port.get("port", 0)
        if node_port and (protocol, node_port) in node_ports:
            errors.append(duplicate(f"spec.ports[{i}].nodePort", node_port))
        node_ports.add((protocol, node_port))
        if (protocol, number) in numbers:
            shown = {
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": None,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(f"spec.ports[{i}]", orjson.Fragment(orjson.dumps(shown))))
        numbers.add((protocol, number))
    return errors


def _affinity(spec: Object) -> list[FieldError]:
    errors = one_of(spec["sessionAffinity"], "spec.sessionAffinity", ("ClientIP", "None"))
    if spec["sessionAffinity"] == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            detail = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
            errors.append(invalid(path, seconds, detail))
    return errors


def validate_endpoint_ip(address: str, path: str) -> list[FieldError]:
    """An address that traffic may be sent to: not one that is only valid on the node itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return [invalid(path, address, "must be a valid IP address")]
    if parsed.is_unspecified:
        return [invalid(path, address, f"may not be unspecified ({address})")]
    if parsed.is_loopback:
        return [invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    if parsed.is_link_local:
        return [invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")]
    if parsed in _LINK_LOCAL_MULTICAST[parsed.version]:
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        return [invalid(path, address, detail)]
    return []


_LINK_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _source_ranges(spec: Object, annotations: dict[str, str], before: Object) -> list[FieldError]:
    given = spec.get("loadBalancerSourceRanges") or []
    detail = "may only be used when `type` is 'LoadBalancer'"
    if given:
        path = "spec.LoadBalancerSourceRanges"
        errors = [] if spec["type"] == "LoadBalancer" else [forbidden(path, detail)]
        known = [value.strip() for value in before.get("loadBalancerSourceRanges") or ()]
        for i, value in enumerate(given):
            errors += cidr(value.strip(), f"{path}[{i}]", known=known)
        return errors
    if _SOURCE_RANGES not in annotations:
        return []
    path = f"metadata.annotations[{_SOURCE_RANGES}]"
    errors = [] if spec["type"] == "LoadBalancer" else [forbidden(path, detail)]
    text = annotations[_SOURCE_RANGES].strip()
    for value in text.split(",") if text else ():
        errors += cidr(value.strip(), path)
    return errors


def _load_balancer_class(spec: Object) -> list[FieldError]:
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is None:
        return []
    if spec["type"] != "LoadBalancer":
        return [forbidden(path, "may only be used when `type` is 'LoadBalancer'")]
    return qualified_name(name, path)


def _traffic(spec: Object) -> list[FieldError]:
    external, port = spec.get("externalTrafficPolicy") or "", spec.get("healthCheckNodePort") or 0
    path = "spec.externalTrafficPolicy"
    if is_external(spec):
        errors = one_of(external, path, ("Cluster", "Local"))
    else:
        detail = "may only be set for externally-accessible services"
        errors = [invalid(path, external, detail)] if external else []
    path = "spec.healthCheckNodePort"
    if needs_health_check(spec):
        errors += port_number(port, path) if port else [required(path)]
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid(path, port, detail))
    internal, distribution = spec.get("internalTrafficPolicy"), spec.get("trafficDistribution")
    if internal is not None and internal not in ("Cluster", "Local"):
        errors.append(not_supported("spec.internalTrafficPolicy", internal, ["Cluster", "Local"]))
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.append(not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return errors


def validate_load_balancer(ingress: list[Object], before: list[Object], path: str) -> list[FieldError]:
    """Load balancer addresses in the status of services and ingresses."""
    known = [entry.get("ip") for entry in before]
    errors = []
    for i, entry in enumerate(ingress):
        at, address, mode, host = f"{path}.ingress[{i}]", entry.get("ip"), entry.get("ipMode"), entry.get("hostname")
        if address:
            errors += ip(address, f"{at}.ip", known=[each for each in known if each])
        if mode is None and address:
            errors.append(required(f"{at}.ipMode", "must be specified when `ip` is set"))
        elif mode is not None and not address:
            errors.append(forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None and mode not in ("Proxy", "VIP"):
            errors.append(not_supported(f"{at}.ipMode", mode, ["Proxy", "VIP"]))
        if host:
            errors += dns_subdomain(host, f"{at}.hostname")
            if not names.ip_errors(host):
                errors.append(invalid(f"{at}.hostname", host, "must be a DNS name, not an IP address"))
    return errors
