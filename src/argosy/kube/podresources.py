"""What a pod asks for: the one sum over its containers, side-cars, init containers and overhead.

Kubernetes' rule (`PodRequests` of its component-helpers): containers and side-cars run together; an init container runs with
the side-cars started before it and nothing else. Resource by resource the pod needs the larger of the two, and its overhead on
top. A side-car is an init container whose restartPolicy is Always.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from argosy.kube.quantity import Quantity, parse_or_zero

__all__ = ["InitContainer", "add", "aggregate", "amounts_of", "container_total", "is_pod_level", "pod_requests"]

Amount = TypeVar("Amount", int, Quantity)
Object = Mapping[str, Any]

_HUGE_PAGES = "hugepages-"


class InitContainer(NamedTuple, Generic[Amount]):
    """What it asks for. One that is told of as no side-car, whatever it is, runs alone: Kubernetes' rule before side-cars."""

    amounts: Mapping[str, Amount]
    sidecar: bool = False


def aggregate(
    containers: Iterable[Mapping[str, Amount]], init_containers: Iterable[InitContainer[Amount]] = ()
) -> dict[str, Amount]:
    """What the containers need together at most, init containers in the order they start in; without the overhead."""
    together: dict[str, Amount] = {}
    for amounts in containers:
        add(together, amounts)
    sidecars: dict[str, Amount] = {}
    starting: dict[str, Amount] = {}
    for amounts, sidecar in init_containers:
        if sidecar:
            add(together, amounts)
            add(sidecars, amounts)
            _raise(starting, sidecars)
        else:
            alone = dict(amounts)
            add(alone, sidecars)
            _raise(starting, alone)
    if starting:
        _raise(together, starting)
    return together


def container_total(spec: Object, side: str) -> dict[str, Quantity]:
    """What the containers of a pod spec need, of their "requests" or "limits"; pod-level resources and overhead aside."""
    return aggregate(
        (amounts_of(each, side) for each in spec.get("containers") or ()),
        (
            InitContainer(amounts_of(each, side), each.get("restartPolicy") == "Always")
            for each in spec.get("initContainers") or ()
        ),
    )


def pod_requests(spec: Object) -> dict[str, Quantity]:
    """What a scheduler sets aside for a pod. What the pod asks for as a whole stands for what its containers do."""
    total = container_total(spec, "requests")
    total |= {name: amount for name, amount in amounts_of(spec, "requests").items() if is_pod_level(name)}
    add(total, _amounts(spec.get("overhead")))
    return total


def is_pod_level(resource: str) -> bool:
    """Whether a pod may ask for it as a whole."""
    return resource in ("cpu", "memory") or resource.startswith(_HUGE_PAGES)


def amounts_of(holder: Object, side: str) -> dict[str, Quantity]:
    """The "requests" or "limits" of a container, or of a pod spec as a whole; unreadable ones count as nothing."""
    return _amounts((holder.get("resources") or {}).get(side))


def add(total: dict[str, Amount], amounts: Mapping[str, Amount]) -> None:
    """Add to the total, in place."""
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, Amount], amounts: Mapping[str, Amount]) -> None:
    for name, amount in amounts.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def _amounts(resources: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: parse_or_zero(value) for name, value in (resources or {}).items()}
