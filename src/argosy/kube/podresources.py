"""Pod requests: the sum over containers, side-cars, init containers and overhead.

Kubernetes' rule (`PodRequests` of its component-helpers): containers and side-cars run together; an init container runs with
the side-cars started before it and nothing else. For each resource the pod needs the larger of the two, plus its overhead. A
side-car is an init container whose restartPolicy is Always.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from argosy.kube.quantity import Quantity, parse_or_zero

__all__ = ["InitContainer", "add", "aggregate", "amounts_of", "container_total", "is_pod_level", "pod_requests"]

Amount = TypeVar("Amount", int, Quantity)
Object = Mapping[str, Any]

_HUGE_PAGES = "hugepages-"


class InitContainer(NamedTuple, Generic[Amount]):
    """The requests of an init container. With `sidecar` false it runs alone: Kubernetes' rule before side-cars."""

    amounts: Mapping[str, Amount]
    sidecar: bool = False


def aggregate(
    containers: Iterable[Mapping[str, Amount]], init_containers: Iterable[InitContainer[Amount]] = ()
) -> dict[str, Amount]:
    """The most that the containers need together, init containers in starting order; without the overhead."""
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
    """What the containers of a pod spec need, by their "requests" or "limits"; without pod-level resources and overhead."""
    return aggregate(
        (amounts_of(each, side) for each in spec.get("containers") or ()),
        (
            InitContainer(amounts_of(each, side), each.get("restartPolicy") == "Always")
            for each in spec.get("initContainers") or ()
        ),
    )


def pod_requests(spec: Object) -> dict[str, Quantity]:
    """What a scheduler reserves for a pod. Pod-level resources replace those of its containers."""
    total = container_total(spec, "requests")
    total |= {name: amount for name, amount in amounts_of(spec, "requests").items() if is_pod_level(name)}
    add(total, _amounts(spec.get("overhead")))
    return total


def is_pod_level(resource: str) -> bool:
    """Whether it is supported as a pod-level resource."""
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
