"""Addresses from outside: Services of type LoadBalancer get one each, and all Ingresses that of the member's ingress controller.

They are of the ranges for documentation, so that nothing is ever reached by them. Where a member begins depends on its name.
"""

import zlib
from collections.abc import Collection
from typing import Any

from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.server.trusted import StoreEvent
from argosy.sim.cluster import Cluster, Object
from argosy.sim.controller import Controller

__all__ = ["Addresses", "address", "first_free"]

_SERVICES = Resource("", "v1", "services", "Service")
_INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
_TABLES = {"core/services/": _SERVICES, "networking.k8s.io/ingresses/": _INGRESSES}
_PREFIXES = ("192.0.2", "198.51.100", "203.0.113")
_HOSTS = 254
_ALL = len(_PREFIXES) * _HOSTS


def address(number: int) -> str:
    """All numbers have one; they repeat after some 700."""
    prefix, host = divmod(number % _ALL, _HOSTS)
    return f"{_PREFIXES[prefix]}.{host + 1}"


def first_free(start: int, taken: Collection[str]) -> str:
    """Empty if all are taken."""
    return next((one for one in (address(start + step) for step in range(_ALL)) if one not in taken), "")


class Addresses(Controller):
    name = "addresses"
    workers = 1

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._events = cluster.recorder("service-controller")
        self._start = zlib.crc32(cluster.name.encode()) % _ALL
        #: Addresses of Services, by the Service's key.
        self._taken: dict[str, set[str]] = {}
        #: Services that found none.
        self._waiting: dict[str, None] = {}

    def observe(self, event: StoreEvent) -> None:
        key = event.entry.key
        if not key.startswith(tuple(_TABLES)):
            return
        if self._taken.pop(key, None):
            waiting, self._waiting = self._waiting, {}
            for each in waiting:
                self.queue.add(each)
        if event.deleted:
            self._waiting.pop(key, None)
            return
        obj = event.entry.decode()
        if _SERVICES.kind == obj["kind"] and (found := _addresses(obj)):
            self._taken[key] = found
        if _is_due(obj):
            self.queue.add(key)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.access.get(key)
        if entry is None or entry.deleting:
            return None
        obj = entry.decode()
        if not _is_due(obj):
            return None
        resource = next(one for table, one in _TABLES.items() if key.startswith(table))
        point = self._point(key, obj) if _wanted(obj) else None
        if _wanted(obj) and point is None:
            self._waiting[key] = None
            text = "no address is left"
            self._events.event(reference_to(obj), "Warning", "SyncLoadBalancerFailed", text)
            return None
        obj.setdefault("status", {})["loadBalancer"] = {"ingress": [point]} if point is not None else {}
        await self.cluster.access.update(resource, obj)
        if point is not None and resource is _SERVICES:
            self._events.event(reference_to(obj), "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
        return None

    def _point(self, key: str, obj: Object) -> Object | None:
        if key.startswith("networking"):
            return {"ip": address(self._start)}
        asked = obj["spec"].get("loadBalancerIP")
        taken = {one for held in self._taken.values() for one in held} | {address(self._start)}
        found = asked or first_free(self._start + 1, taken)
        return {"ip": found, "ipMode": "VIP"} if found else None


def _addresses(obj: Object) -> set[str]:
    points: list[Any] = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return {str(one.get("ip") or one.get("hostname")) for one in points}


def _wanted(obj: Object) -> bool:
    return bool(obj["kind"] == "Ingress" or obj["spec"].get("type") == "LoadBalancer")


def _is_due(obj: Object) -> bool:
    """Classes of load balancers are somebody else's."""
    has_class = bool(obj["spec"].get("loadBalancerClass"))
    return not has_class and _wanted(obj) != bool(_addresses(obj))
