"""Columns of networking and service discovery: Ingress, NetworkPolicy, EndpointSlice and their kin."""

from typing import Any

from argosy.server.printers.base import NONE, UNSET, Object, Printer, age, at, columns, limited, name, printer, selector
from argosy.server.printers.core import addresses

__all__ = ["DISCOVERY", "NETWORKING"]


def _hosts(rules: Any) -> str:
    """At most three hosts; the number of further rules counts those without a host too, as in kube-apiserver."""
    hosts: list[str] = []
    for index, rule in enumerate(rules or ()):
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..." if index < len(rules) else ",".join(hosts)
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _ingress(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        spec.get("ingressClassName") or NONE,
        _hosts(spec.get("rules")),
        addresses(at(obj, "status", "loadBalancer")),
        "80, 443" if spec.get("tls") else "80",
    ]


def _ingress_class(obj: Object, now: float) -> list[Any]:
    annotations = at(obj, "metadata", "annotations") or {}
    default = " (default)" if annotations.get("ingressclass.kubernetes.io/is-default-class") == "true" else ""
    parameters = at(obj, "spec", "parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [name(obj) + default, at(obj, "spec", "controller") or "", shown, age(obj, now)]


def _address(obj: Object) -> list[Any]:
    parent = at(obj, "spec", "parentRef")
    if not parent:
        return [NONE]
    group = f".{parent['group']}" if parent.get("group") else ""
    namespace = f"/{parent['namespace']}" if parent.get("namespace") else ""
    return [f"{parent.get('resource', '')}{group}".lower() + f"{namespace}/{parent.get('name', '')}"]


def _slice(obj: Object) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    found = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [obj.get("addressType", ""), limited(ports, 3, empty=UNSET), limited(found, 3, empty=UNSET)]


NETWORKING: dict[str, Printer] = {
    "IPAddress": printer(("Name", "ParentRef"), _address),
    "Ingress": printer(("Name", "Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    "IngressClass": Printer(columns("Name", "Controller", "Parameters", "Age"), _ingress_class),
    "NetworkPolicy": printer(
        ("Name", "Pod-Selector", "Age"), lambda obj: [selector(at(obj, "spec", "podSelector") or {})]
    ),
    "ServiceCIDR": printer(("Name", "CIDRs", "Age"), lambda obj: [",".join(at(obj, "spec", "cidrs") or ())]),
}

DISCOVERY: dict[str, Printer] = {
    "EndpointSlice": printer(("Name", "AddressType", "Ports", "Endpoints", "Age"), _slice),
}
