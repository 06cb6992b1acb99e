"""Capacity of one member: what its nodes can hold and what its pods leave free, kept up to date event by event.

Only sums are kept: a pod counts by its request vector, shared by all pods that ask for the same, so 20,000 pods cost a
dictionary of references. Objects themselves belong to the watch that feeds this.

Which nodes and pods count follows KubeAdmiral: cordoned, not ready and NoSchedule/NoExecute-tainted nodes hold nothing;
every pod that has not finished counts, wherever it is and whether it is scheduled or not.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from argosy.api.clusters import ClusterResources, ResourceList
from argosy.fleet.katalyst import NodeResources
from argosy.fleet.member import CPU, readable
from argosy.kube import quantity
from argosy.kube.objects import Identity, Metadata
from argosy.kube.podresources import InitContainer, add, aggregate
from argosy.kube.selectors import LabelSelector
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE

__all__ = [
    "FINISHED",
    "Capacity",
    "NodeView",
    "PodOwner",
    "PodSpecView",
    "PodView",
    "Requests",
    "node_counts",
    "requests_of",
]

Requests = dict[str, int]
"""Amounts by resource: cpu in thousandths, everything else in whole units."""

FINISHED = ("Succeeded", "Failed")
_BINARY = ("memory", "ephemeral-storage", "storage")
#: Slots for pods are no resource to divide.
_PODS = "pods"
_VECTORS_SHARED = 4096
#: Taints, conditions, containers, resources of one object. One with more does not come from Kubernetes; to count it would
#: hold up everybody else.
_MANY = Meta(max_length=2000)
#: Different resources that the nodes of one cluster may offer together: each is a column of the whole fleet's figures.
MOST_RESOURCES = 1000
_set = msgspec.structs.force_setattr


class TaintView(msgspec.Struct, frozen=True):
    effect: str = ""


class ConditionView(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class NodeSpecView(msgspec.Struct, frozen=True):
    unschedulable: bool = False
    taints: Annotated[tuple[TaintView, ...], _MANY] = ()


class NodeStatusView(msgspec.Struct, frozen=True):
    allocatable: Annotated[ResourceList, _MANY] = {}
    conditions: Annotated[tuple[ConditionView, ...], _MANY] = ()


class NodeView(msgspec.Struct, frozen=True):
    """What of a Node decides its capacity."""

    metadata: Metadata = Metadata()
    spec: NodeSpecView = NodeSpecView()
    status: NodeStatusView = NodeStatusView()


class ResourcesView(msgspec.Struct, frozen=True, gc=False):
    requests: Annotated[ResourceList, _MANY] = {}
    limits: Annotated[ResourceList, _MANY] = {}


class ContainerView(msgspec.Struct, frozen=True, gc=False):
    resources: ResourcesView = ResourcesView()


class PodSpecView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What of a pod spec decides its request."""

    containers: Annotated[tuple[ContainerView, ...], _MANY] = ()
    init_containers: Annotated[tuple[ContainerView, ...], _MANY] = ()
    overhead: Annotated[ResourceList, _MANY] = {}


class PodOwner(msgspec.Struct, frozen=True, gc=False):
    """An owner reference of a pod."""

    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class PodConditionView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: str | None = None


_POD_SCHEDULED = "PodScheduled"
_REPLICA_SET = "ReplicaSet"
#: Of a pod that has its node nothing else matters, and nearly all pods are such.
_SCHEDULED = (PodConditionView(_POD_SCHEDULED, "True"),)

if TYPE_CHECKING:
    Owners = tuple[PodOwner, ...]
    Conditions = tuple[PodConditionView, ...]
else:
    Owners = Annotated[tuple[PodOwner, ...], _MANY] | None
    Conditions = Annotated[tuple[PodConditionView, ...], _MANY] | None


class PodMetadata(Identity, frozen=True, gc=False):
    """Which pod it is, whether it is on its way out, and the ReplicaSet that made it, if one did."""

    deletion_timestamp: str | None = None
    owner_references: Owners = ()

    # Runs for every event of every pod of the fleet: plain loops, and what many pods share is held once.
    def __post_init__(self) -> None:
        Identity.__post_init__(self)
        kept: Owners = ()
        for owner in self.owner_references or ():
            if owner.controller and owner.kind == _REPLICA_SET:
                _set(owner, "uid", sys.intern(owner.uid))
                kept = (owner,)
        if kept != self.owner_references:
            _set(self, "owner_references", kept)

    @property
    def replica_set(self) -> PodOwner | None:
        return self.owner_references[0] if self.owner_references else None


class PodStatusView(msgspec.Struct, frozen=True, gc=False):
    """Of the conditions only whether the pod has a node is kept."""

    phase: str = ""
    conditions: Conditions = ()

    def __post_init__(self) -> None:
        kept: Conditions = ()
        for condition in self.conditions or ():
            if condition.type == _POD_SCHEDULED:
                kept = _SCHEDULED if condition.status == "True" else (condition,)
                break
        _set(self, "conditions", kept)

    @property
    def scheduling(self) -> PodConditionView | None:
        return self.conditions[0] if self.conditions else None


class PodView(msgspec.Struct, frozen=True, gc=False):
    """What of a Pod decides what it takes away, and whether it waits for a node."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()


def node_counts(node: NodeView, excluded: Iterable[LabelSelector] = ()) -> bool:
    """Whether new pods could run there; a node that reports no Ready condition yet is given the benefit."""
    if node.spec.unschedulable or any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in node.spec.taints):
        return False
    if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        return False
    return not any(selector.matches(node.metadata.labels) for selector in excluded)


def requests_of(spec: PodSpecView) -> Requests:
    """What one pod asks for, as KubeAdmiral counts it: what it stored must compare equal with what we find.

    This is Kubernetes' sum but for three things. A side-car counts as any other init container, alone; what a pod asks for as
    a whole does not count; and a container that names only a limit requests as much, while an init container does not.
    """
    requests = aggregate(
        [readable(each.resources.limits | each.resources.requests) for each in spec.containers],
        [InitContainer(readable(each.resources.requests), sidecar=False) for each in spec.init_containers],
    )
    add(requests, readable(spec.overhead))
    return requests


class Capacity:
    """Running totals of one cluster, fed with every node and pod event of its watches.

    Setting the same object again replaces it; `None` removes it. Events may come in any order.
    """

    def __init__(self, excluded_nodes: Iterable[LabelSelector] = ()) -> None:
        self._excluded = tuple(excluded_nodes)
        self._nodes: dict[str, Requests] = {}
        self._pods: dict[str, Requests] = {}
        self._allocatable = _Totals()
        self._requested = _Totals()
        self._shared: dict[tuple[tuple[str, int], ...], Requests] = {}

    def set_node(self, name: str, node: NodeView | None) -> None:
        counted = None if node is None or not node_counts(node, self._excluded) else readable(node.status.allocatable)
        if counted is not None:
            counted.pop(_PODS, None)
        self._allocatable.replace(self._nodes, name, counted)

    def set_pod(self, key: str, pod: PodView | None) -> None:
        finished = pod is None or pod.status.phase in FINISHED
        self._requested.replace(self._pods, key, None if finished or pod is None else self._request_vector(pod.spec))

    def resources(self, further: NodeResources | None = None) -> ClusterResources:
        """The totals as a FederatedCluster's status shows them; the same totals give the same text.

        `further` is what its nodes offer besides their own allocatable. Raises ValueError where that is of too many kinds.
        """
        allocatable = self._allocatable.amounts
        if further is not None:
            allocatable = allocatable | further.allocatable(self._nodes)
        if len(allocatable) > MOST_RESOURCES:
            raise ValueError(
                f"the nodes offer {len(allocatable)} different resources; at most {MOST_RESOURCES} are read"
            )
        return ClusterResources(
            schedulable_nodes=len(self._nodes),
            allocatable={name: _text(name, allocatable[name]) for name in sorted(allocatable)},
            available={
                name: _text(name, allocatable[name] - self._requested.amounts.get(name, 0))
                for name in sorted(allocatable)
            },
        )

    def _request_vector(self, spec: PodSpecView) -> Requests:
        requests = requests_of(spec)
        if len(self._shared) >= _VECTORS_SHARED:  # forget those of pods long gone; the living share anew
            self._shared.clear()
        return self._shared.setdefault(tuple(sorted(requests.items())), requests)


class _Totals:
    """Sums per resource, with how many items name it: a resource nobody names any more is not reported as 0."""

    __slots__ = ("_named_by", "amounts")

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self._named_by: dict[str, int] = {}

    def replace(self, items: dict[str, Requests], key: str, amounts: Requests | None) -> None:
        """Put `amounts` in the place of what `items` holds under `key`, and keep the sums right."""
        before = items.pop(key, None)
        if amounts is not None:
            items[key] = amounts
        if before is amounts:
            return
        for resource, amount in (before or {}).items():
            self.amounts[resource] -= amount
            self._named_by[resource] -= 1
        for resource, amount in (amounts or {}).items():
            self.amounts[resource] = self.amounts.get(resource, 0) + amount
            self._named_by[resource] = self._named_by.get(resource, 0) + 1
        for resource in before or {}:
            if not self._named_by[resource]:
                del self.amounts[resource], self._named_by[resource]


def _text(resource: str, amount: int) -> str:
    if resource == CPU:
        return quantity.Quantity.from_milli(amount).canonical()
    binary = resource in _BINARY or resource.startswith("hugepages-")
    return quantity.Quantity.from_value(amount, quantity.BINARY_SI if binary else quantity.DECIMAL_SI).canonical()
