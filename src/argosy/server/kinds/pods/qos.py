"""The quality of service class of a pod, by the requests and limits of its containers or of the pod as a whole."""

from collections.abc import Iterable
from typing import Any

from argosy.kube.podresources import add, amounts_of
from argosy.kube.quantity import ZERO, Quantity

__all__ = ["qos_class"]

Object = dict[str, Any]

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort; pod-level resources, if given, decide alone."""
    if spec.get("resources"):
        holders = [spec]
    else:
        holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests, limits = _compute(holders, "requests"), _compute(holders, "limits")
    if not requests and not limits:
        return "BestEffort"
    every = all(_limited(holder) for holder in holders)
    return "Guaranteed" if every and requests == limits else "Burstable"


def _limited(holder: Object) -> bool:
    limits = amounts_of(holder, "limits")
    return all(limits.get(name, ZERO) > ZERO for name in _COMPUTE)


def _compute(holders: Iterable[Object], side: str) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for holder in holders:
        amounts = amounts_of(holder, side)
        add(total, {name: amounts[name] for name in _COMPUTE if amounts.get(name, ZERO) > ZERO})
    return total
