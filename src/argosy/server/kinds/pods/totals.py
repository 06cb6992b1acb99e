"""Sums over a pod's containers: what they need together, and the quality of service that follows from it."""

from collections.abc import Iterable
from typing import Any

from argosy.kube import quantity
from argosy.kube.quantity import Quantity
from argosy.server.kinds.core.resource_lists import amount

__all__ = ["container_sum", "qos_class"]

Object = dict[str, Any]
Amounts = dict[str, Quantity]

_COMPUTE = ("cpu", "memory")


def container_sum(spec: Object, side: str) -> Amounts:
    """What the containers need at once: all regular ones and side-cars, or one init container and the side-cars before it."""
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        needs = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            running = _added(running, needs)
            peak = _maximum(peak, running)
        else:
            peak = _maximum(peak, _added(running, needs))
    for container in spec.get("containers") or ():
        running = _added(running, _amounts(container, side))
    return _maximum(peak, running)


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort; pod-level resources, where given, decide alone."""
    if spec.get("resources"):
        holders = [spec]
    else:
        holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests = _compute(_amounts(holder, "requests") for holder in holders)
    limits = _compute(_amounts(holder, "limits") for holder in holders)
    if not requests and not limits:
        return "BestEffort"
    every = all(_limited(holder) for holder in holders)
    return "Guaranteed" if every and requests == limits else "Burstable"


def _limited(holder: Object) -> bool:
    limits = _amounts(holder, "limits")
    return all(limits.get(name, quantity.ZERO) > quantity.ZERO for name in _COMPUTE)


def _compute(amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        total = _added(total, {name: each[name] for name in _COMPUTE if each.get(name, quantity.ZERO) > quantity.ZERO})
    return total


def _amounts(holder: Object, side: str) -> Amounts:
    return {name: amount(value) for name, value in ((holder.get("resources") or {}).get(side) or {}).items()}


def _added(one: Amounts, other: Amounts) -> Amounts:
    return one | {name: one[name] + value if name in one else value for name, value in other.items()}


def _maximum(one: Amounts, other: Amounts) -> Amounts:
    return one | {name: max(one[name], value) if name in one else value for name, value in other.items()}
