"""Capacity of one member: what its nodes offer and what its pods leave free, updated event by event.

Only sums are kept: a pod counts by its request vector, which pods with the same requests share, so 20,000 pods cost a
dictionary of references. The watch that feeds this owns the objects.

Which nodes and pods count follows KubeAdmiral: cordoned, unready and NoSchedule/NoExecute-tainted nodes do not count; every
pod that has not finished counts, on any node or none.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from argosy.api.clusters import ClusterResources, ResourceList
from argosy.fleet.katalyst import NodeResources
from argosy.fleet.member import CPU, readable
from argosy.fleet.pods.troubles import ContainerStatus, Trouble, unready, unschedulable, unstarted
from argosy.kube import quantity
from argosy.kube.objects import Identity, Metadata, OwnerReference
from argosy.kube.podresources import InitContainer, add, aggregate
from argosy.kube.selectors import LabelSelector
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE

__all__ = [
    "FINISHED",
    "Capacity",
    "NodeView",
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
#: Pod slots are not a resource to divide.
_PODS = "pods"
_VECTORS_SHARED = 4096
#: Largest number of taints, conditions, containers or resources of one object. An object with more is not from Kubernetes, and
#: counting it would block everything else.
_MANY = Meta(max_length=2000)
#: Largest number of different resources on the nodes of one cluster: each is a column of the whole fleet's figures.
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
    """The parts of a Node that decide its capacity."""

    metadata: Metadata = Metadata()
    spec: NodeSpecView = NodeSpecView()
    status: NodeStatusView = NodeStatusView()


class ResourcesView(msgspec.Struct, frozen=True, gc=False):
    requests: Annotated[ResourceList, _MANY] = {}
    limits: Annotated[ResourceList, _MANY] = {}


class ContainerView(msgspec.Struct, frozen=True, gc=False):
    resources: ResourcesView = ResourcesView()


class PodSpecView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of a pod spec that decide its request."""

    containers: Annotated[tuple[ContainerView, ...], _MANY] = ()
    init_containers: Annotated[tuple[ContainerView, ...], _MANY] = ()
    overhead: Annotated[ResourceList, _MANY] = {}


class PodConditionView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = None
    #: Read for `PodView.trouble` and not kept: it changes with every attempt to schedule.
    message: str | None = None
    last_transition_time: str | None = None


_POD_SCHEDULED = "PodScheduled"
_READY = "Ready"
_REPLICA_SET = "ReplicaSet"
#: For a scheduled pod nothing else matters; nearly all pods are scheduled.
_SCHEDULED = (PodConditionView(_POD_SCHEDULED, "True"),)

if TYPE_CHECKING:
    Owners = tuple[OwnerReference, ...]
    Conditions = tuple[PodConditionView, ...]
    Containers = tuple[ContainerStatus, ...]
else:
    Owners = Annotated[tuple[OwnerReference, ...], _MANY] | None
    Conditions = Annotated[tuple[PodConditionView, ...], _MANY] | None
    Containers = Annotated[tuple[ContainerStatus, ...], _MANY] | None


class PodLabels(msgspec.Struct, frozen=True, gc=False):
    #: Set by the controller of Deployments; the name of the ReplicaSet ends with it.
    template_hash: str | None = msgspec.field(default=None, name="pod-template-hash")


class PodMetadata(Identity, frozen=True, gc=False):
    """The pod's identity, whether it is terminating, and the uid of the ReplicaSet that controls it, if any."""

    deletion_timestamp: str | None = None
    replica_set: str = ""
    #: Read for the others and not kept.
    owner_references: Owners = ()
    labels: PodLabels | None = None


class PodStatusView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Keeps only the condition that tells whether the pod has a node."""

    phase: str = ""
    conditions: Conditions = ()
    #: Read for `PodView.trouble` and not kept.
    init_container_statuses: Containers = ()
    container_statuses: Containers = ()

    @property
    def scheduling(self) -> PodConditionView | None:
        return self.conditions[0] if self.conditions else None


#: The status that nearly all pods have: stored once.
_RUNNING = PodStatusView("Running", _SCHEDULED)


class PodView(msgspec.Struct, frozen=True, gc=False):
    """The parts of a Pod that decide what it uses, whether it waits for a node, and why it does not start."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()
    #: None for a pod that nothing is wrong with, as far as its status tells.
    trouble: Trouble | None = None

    # Runs for every event of every pod of the fleet: plain loops, and values shared by many pods are stored once.
    def __post_init__(self) -> None:
        metadata, status = self.metadata, self.status
        scheduling = None
        for condition in status.conditions or ():
            if condition.type == _POD_SCHEDULED:
                scheduling = condition
                break
        controller = None
        for owner in metadata.owner_references or ():
            if owner.controller:
                controller = owner
        found = None
        if controller is not None and status.phase not in FINISHED and metadata.deletion_timestamp is None:
            if scheduling is not None and scheduling.status == "False":
                found = unschedulable(scheduling.reason, scheduling.message)
            else:
                containers = status.container_statuses or ()
                found = unstarted(status.init_container_statuses or ()) or unstarted(containers)
                if found is None and status.phase == "Running":
                    for condition in status.conditions or ():
                        if condition.type == _READY and condition.status == "False":
                            since = condition.last_transition_time
                            found = unready(condition.reason, condition.message, since, containers)
            if found is not None:
                template_hash = metadata.labels.template_hash if metadata.labels is not None else None
                found = found.of(controller, metadata.namespace, template_hash)
        _set(self, "trouble", found)
        is_set = controller is not None and controller.kind == _REPLICA_SET
        _set(metadata, "replica_set", sys.intern(controller.uid) if controller is not None and is_set else "")
        _set(metadata, "owner_references", ())
        _set(metadata, "labels", None)
        scheduled = scheduling is not None and scheduling.status == "True"
        if scheduled and status.phase == "Running":
            _set(self, "status", _RUNNING)
            return
        if scheduling is not None:
            _set(scheduling, "message", None)
        _set(status, "conditions", _SCHEDULED if scheduled else (scheduling,) if scheduling is not None else ())
        _set(status, "init_container_statuses", ())
        _set(status, "container_statuses", ())


def node_counts(node: NodeView, excluded: Iterable[LabelSelector] = ()) -> bool:
    """Whether new pods could run there; a node without a Ready condition counts as ready."""
    if node.spec.unschedulable or any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in node.spec.taints):
        return False
    if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        return False
    return not any(selector.matches(node.metadata.labels) for selector in excluded)


def requests_of(spec: PodSpecView) -> Requests:
    """The requests of one pod as KubeAdmiral counts them, so that records it stored compare equal with ours.

    This is Kubernetes' sum except for three things. A side-car counts like any other init container. Pod-level resources do not
    count. A container that has only a limit requests as much; an init container does not.
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
        """The totals as in a FederatedCluster's status; the same totals give the same text.

        `further` is what its nodes offer besides their own allocatable. Raises ValueError if there are too many resources.
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
        if len(self._shared) >= _VECTORS_SHARED:  # drop those of pods long gone
            self._shared.clear()
        return self._shared.setdefault(tuple(sorted(requests.items())), requests)


class _Totals:
    """Sums per resource, and how many items name it: a resource that no item names is not reported as 0."""

    __slots__ = ("_named_by", "amounts")

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self._named_by: dict[str, int] = {}

    def replace(self, items: dict[str, Requests], key: str, amounts: Requests | None) -> None:
        """Replace the entry of `items` under `key` by `amounts`, and update the sums."""
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
