"""Service: every cluster assigns its own addresses and node ports; those are kept.

The source shows the addresses of all members' load balancers.
"""

from collections.abc import Sequence
from typing import Any, Final

from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, addresses, merged
from argosy.plan.kinds.observation import Aggregation

__all__ = ["KIND"]


def _strip(desired: Json) -> Json:
    if fields.get(desired, "spec.clusterIP", None) == "None":  # a headless service
        return desired
    return fields.without(fields.without(desired, "spec.clusterIP"), "spec.clusterIPs")


def _retain(desired: Json, observed: Json) -> Json:
    for path in ("spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"):
        value = fields.get(observed, path, None)
        if value:
            desired = fields.put(desired, path, value)
    ports = fields.get(desired, "spec.ports", None)
    if not ports:
        return desired
    node_ports = {_port_key(port): port["nodePort"] for port in _ports(observed) if port.get("nodePort")}
    kept = [{**port, "nodePort": node_ports[key]} if (key := _port_key(port)) in node_ports else port for port in ports]
    return fields.put(desired, "spec.ports", kept)


def _ports(service: Json) -> list[Json]:
    return fields.get(service, "spec.ports", None) or []


def _port_key(port: Json) -> tuple[Any, ...]:
    return port.get("name") or "", port.get("protocol") or "TCP", port.get("port")


def _unfinished(desired: Json, copy: Json) -> list[str]:
    if fields.get(desired, "spec.type", None) != "LoadBalancer":
        return []
    return [] if fields.get(copy, "status.loadBalancer.ingress", None) else ["its load balancer has no address yet"]


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    """Kubernetes allows addresses to no other type, though a member may still have some just after the type was changed."""
    is_balanced = fields.get(aggregation.source, "spec.type", None) == "LoadBalancer"
    return addresses(members if is_balanced else ())


KIND: Final = Kind(strip=_strip, retain=_retain, aggregate=merged(_merge), unfinished=_unfinished)
