"""Nodes as the simulation holds them: their resources, what is in use, and their taints. Nothing is written here.

Amounts are whole nano-units, as `kube.quantity` counts, so sums are exact.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube import quantity
from argosy.kube.conditions import find
from argosy.kube.taints import matches
from argosy.sim.pods import Shape

__all__ = ["Node", "NodeBook", "stay", "tolerates"]


class Node:
    """One node. `ready` is False if it reports a problem, None if it has not reported for too long."""

    __slots__ = ("address", "allocatable", "labels", "name", "prefix", "ready", "taints", "taken", "unschedulable")

    def __init__(self, name: str):
        self.name = name
        self.labels: Mapping[str, str] = {}
        self.taints: Sequence[Mapping[str, Any]] = ()
        self.unschedulable = False
        self.ready: bool | None = True
        self.allocatable: dict[str, int] = {}
        self.taken: dict[str, int] = {}
        self.address = ""
        #: The first three parts of its pods' addresses.
        self.prefix = "10.244.0"

    def update(self, obj: Mapping[str, Any]) -> None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        self.labels = obj["metadata"].get("labels") or {}
        self.taints = spec.get("taints") or ()
        self.unschedulable = bool(spec.get("unschedulable"))
        self.prefix = str(spec.get("podCIDR") or "10.244.0.0/24").rpartition(".")[0]
        self.allocatable = {
            name: quantity.parse(text).nanos for name, text in (status.get("allocatable") or {}).items()
        }
        addresses = status.get("addresses") or ()
        self.address = next((one["address"] for one in addresses if one.get("type") == "InternalIP"), "")
        state = (find(status.get("conditions"), "Ready") or {}).get("status")
        self.ready = True if state == "True" else None if state == "Unknown" else False

    def lacking(self, shape: Shape) -> list[str]:
        """The resources that do not suffice for one more pod of this shape, "pods" first."""
        taken, allocatable = self.taken, self.allocatable
        return [
            name for name, amount in shape.requests.items() if taken.get(name, 0) + amount > allocatable.get(name, 0)
        ]

    def room(self, shape: Shape) -> int:
        """How many more pods of this shape its free resources would take."""
        return max(
            0,
            min(
                (self.allocatable.get(name, 0) - self.taken.get(name, 0)) // amount
                for name, amount in shape.requests.items()
            ),
        )

    def load(self, shape: Shape) -> float:
        """How full the node would be with one more of these: the mean over cpu and memory, then by number of pods."""
        shares = []
        for name in ("cpu", "memory"):
            total = self.allocatable.get(name, 0)
            if total:
                shares.append((self.taken.get(name, 0) + shape.requests.get(name, 0)) / total)
        pods = (self.taken.get("pods", 0) + shape.requests["pods"]) / max(self.allocatable.get("pods", 0), 1)
        return (sum(shares) / len(shares) if shares else 0.0) + pods

    def claim(self, shape: Shape) -> None:
        for name, amount in shape.requests.items():
            self.taken[name] = self.taken.get(name, 0) + amount

    def release(self, shape: Shape) -> None:
        for name, amount in shape.requests.items():
            self.taken[name] = self.taken.get(name, 0) - amount


class NodeBook:
    """All nodes by name. Claims on a node outlive its object, so that a node that comes back is as full as before."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._absent: dict[str, Node] = {}

    def update(self, obj: Mapping[str, Any]) -> Node:
        name = obj["metadata"]["name"]
        node = self.nodes.get(name)
        if node is None:
            node = self.nodes[name] = self._absent.pop(name) if name in self._absent else Node(name)
        node.update(obj)
        return node

    def remove(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self._absent[name] = node

    def claim(self, name: str, shape: Shape) -> None:
        self._any(name).claim(shape)

    def release(self, name: str, shape: Shape) -> None:
        self._any(name).release(shape)

    def _any(self, name: str) -> Node:
        node = self.nodes.get(name)
        if node is None:
            node = self._absent.get(name)
        if node is None:
            node = self._absent[name] = Node(name)
        return node


def tolerates(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The toleration of a taint that lasts longest, if there is one."""
    found = [one for one in tolerations if _matches(one, taint)]
    if not found:
        return None
    return max(
        found, key=lambda one: float("inf") if one.get("tolerationSeconds") is None else one["tolerationSeconds"]
    )


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    key, operator, value, effect = (toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
    return matches(key, operator, value, effect, (taint["key"], taint.get("value") or "", taint["effect"]))


def stay(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> float:
    """For how many seconds a pod tolerates a NoExecute taint: 0 without a toleration, infinity if it has no limit."""
    toleration = tolerates(tolerations, taint)
    if toleration is None:
        return 0.0
    seconds = toleration.get("tolerationSeconds")
    return float("inf") if seconds is None else max(float(seconds), 0.0)
