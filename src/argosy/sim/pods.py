"""Pods as the simulation holds them: light records kept current from the store's change feed, indexed by owner and by node.

What all pods of a template share (requests, selectors, containers) is one `Shape`. Nothing is written here.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import orjson

from argosy.kube.podresources import pod_requests
from argosy.kube.references import object_reference
from argosy.kube.timestamps import parse
from argosy.server.trusted import StoreEvent
from argosy.sim.podaffinity import terms_of
from argosy.sim.podneeds import needs_of
from argosy.sim.volumes import claims_of

__all__ = ["TERMINAL", "TRACKING", "Pod", "PodBook", "Shape", "timestamp"]

TERMINAL = ("Succeeded", "Failed")
#: The finalizer that keeps a Job's pod until it was counted.
TRACKING = "batch.kubernetes.io/job-tracking"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_NANO = 10**9
_Raw = msgspec.Raw


class Shape:
    """The part of a pod's spec that decides where and how it runs, shared by all pods that have the same."""

    __slots__ = ("__weakref__", "claims", "key", "needs", "requests", "spec", "terms")

    def __init__(self, key: tuple[bytes, ...], spec: dict[str, Any]):
        self.key = key
        #: The fields named in `_SHAPE_FIELDS`; must not be changed.
        self.spec = spec
        #: What must be there before its containers can start.
        self.needs = needs_of(spec)
        #: What must have volumes before it can be placed.
        self.claims = claims_of(spec)
        #: Near which pods it belongs, and from which it stays away.
        self.terms = terms_of(spec)
        needed = {name: amount.nanos for name, amount in pod_requests(spec).items() if amount.nanos}
        #: Nano-units by resource; every pod takes one of "pods".
        self.requests: dict[str, int] = {**needed, "pods": _NANO}


class Pod:
    """One pod. `node` is where it is bound; `claimed` where its requests are counted, from the decision on."""

    __slots__ = (
        "bound_at",
        "claimed",
        "cost",
        "created",
        "deleted_at",
        "gated",
        "generation",
        "grace",
        "held",
        "host",
        "key",
        "moved",
        "name",
        "namespace",
        "node",
        "owner",
        "owner_kind",
        "owner_name",
        "phase",
        "ready",
        "ready_since",
        "scheduled_message",
        "shape",
        "tracked",
        "uid",
        "waiting",
    )

    def __init__(self, key: str, namespace: str, name: str, uid: str, shape: Shape):
        self.key = key
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.shape = shape
        self.generation = 0
        self.owner = self.owner_kind = self.owner_name = ""
        self.node = self.claimed = ""
        self.phase = "Pending"
        self.ready = False
        self.ready_since = 0.0
        self.created = 0.0
        self.cost = 0
        self.gated = False
        #: When the simulation saw it bound and saw it deleted, on the loop's clock; 0 when not yet.
        self.bound_at = self.deleted_at = 0.0
        self.grace = 0
        #: Whether its Job has not counted it yet.
        self.tracked = False
        #: Whether some readiness gate keeps it from being ready.
        self.held = False
        #: The last part of its address on its node; 0 when it has none.
        self.host = 0
        #: Whether its last change was one its controller counts: phase, readiness, deletion, owner, tracking.
        self.moved = True
        #: Why it is unschedulable, and why a container waits; as last written to its status.
        self.scheduled_message = self.waiting = ""

    def claim(self, node: str) -> None:
        """Count its requests on this node from now on; "" is none."""
        self.claimed = node

    def update(self, seen: "_Projection", shape: Shape, now: float) -> None:
        """Update it from the stored object."""
        counted = self._counted()
        metadata, status = seen.metadata, seen.status
        self.shape = shape
        self.generation = metadata.generation
        self.created = self.created or timestamp(metadata.creation_timestamp)
        owner = next((one for one in metadata.owner_references or () if one.controller), None)
        self.owner, self.owner_kind, self.owner_name = (owner.uid, owner.kind, owner.name) if owner else ("", "", "")
        self.gated = bool(seen.spec.scheduling_gates)
        if seen.spec.node_name and not self.node:
            self.node = seen.spec.node_name
            self.bound_at = now
        if metadata.deletion_timestamp is not None and not self.deleted_at:
            self.deleted_at = now
        self.tracked = TRACKING in (metadata.finalizers or ())
        self.grace = metadata.deletion_grace_period_seconds or 0
        cost = (metadata.annotations or {}).get(_DELETION_COST, "0")
        self.cost = int(cost) if cost.removeprefix("-").isdecimal() else 0
        self.phase = status.phase
        self.host = int(status.pod_ip.rpartition(".")[2] or 0) if "." in status.pod_ip else 0
        self.waiting = next(
            (one.state.waiting.reason or "" for one in status.container_statuses or () if one.state.waiting), ""
        )
        self.held = False
        if seen.spec.readiness_gates:
            met = {condition.type for condition in status.conditions or () if condition.status == "True"}
            self.held = any(gate.condition_type not in met for gate in seen.spec.readiness_gates)
        self.ready = False
        for condition in status.conditions or ():
            if condition.type == "Ready":
                self.ready = condition.status == "True"
                self.ready_since = timestamp(condition.last_transition_time)
            elif condition.type == "PodScheduled":
                self.scheduled_message = "" if condition.status == "True" else condition.message or ""
        self.moved = self._counted() != counted

    def _counted(self) -> tuple[str, bool, bool, str, bool]:
        return self.phase, self.ready, self.deleting, self.owner, self.tracked

    @property
    def reference(self) -> dict[str, str]:
        """What events name it by."""
        return object_reference("v1", "Pod", self.name, self.uid, self.namespace)

    @property
    def deleting(self) -> bool:
        return self.deleted_at > 0

    @property
    def active(self) -> bool:
        """Whether it counts for its controller: neither ended nor terminating."""
        return not self.deleting and self.phase not in TERMINAL


class _Owner(msgspec.Struct, rename="camel"):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_Owner] | None = None


class _Gate(msgspec.Struct, rename="camel"):
    condition_type: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[Any] | None = None
    readiness_gates: list[_Gate] | None = None
    containers: _Raw = _Raw(b"[]")
    init_containers: _Raw = _Raw(b"[]")
    node_selector: _Raw = _Raw(b"{}")
    tolerations: _Raw = _Raw(b"[]")
    resources: _Raw = _Raw(b"{}")
    overhead: _Raw = _Raw(b"{}")
    affinity: _Raw = _Raw(b"{}")
    volumes: _Raw = _Raw(b"[]")
    restart_policy: _Raw = _Raw(b'"Always"')


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    message: str | None = None
    last_transition_time: str | None = None


class _Waiting(msgspec.Struct):
    reason: str | None = None


class _State(msgspec.Struct):
    waiting: _Waiting | None = None


class _ContainerStatus(msgspec.Struct):
    state: _State = msgspec.field(default_factory=_State)


class _Status(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")


class _Projection(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Projection).decode
_SHAPE_FIELDS = (
    ("containers", "containers"),
    ("initContainers", "init_containers"),
    ("nodeSelector", "node_selector"),
    ("tolerations", "tolerations"),
    ("resources", "resources"),
    ("overhead", "overhead"),
    ("affinity", "affinity"),
    ("volumes", "volumes"),
    ("restartPolicy", "restart_policy"),
)


def timestamp(text: str | None) -> float:
    """Seconds since the epoch of a Kubernetes time; 0 when there is none."""
    moment = parse(text)
    return 0.0 if moment is None else moment.timestamp()


class PodBook:
    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._by_owner: dict[str, dict[str, Pod]] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._shapes: WeakValueDictionary[tuple[bytes, ...], Shape] = WeakValueDictionary()
        #: Pods without a controller, which a workload may adopt.
        self.orphans: dict[str, Pod] = {}
        #: Pods that keep others away.
        self.repelling: dict[str, Pod] = {}

    def get(self, key: str) -> Pod | None:
        return self._pods.get(key)

    def of_owner(self, uid: str) -> Iterable[Pod]:
        return self._by_owner.get(uid, {}).values()

    def on_node(self, name: str) -> Iterable[Pod]:
        """Pods bound there, ended ones included."""
        return self._by_node.get(name, {}).values()

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def apply(self, event: StoreEvent, now: float) -> Pod:
        """Apply a change of a pod; for a deletion, returns the removed record."""
        entry = event.entry
        if event.deleted:
            gone = self._pods.pop(entry.key, None)
            if gone is not None:
                self._unlink(gone)
                return gone
        seen, shape = _decode(entry.value), None
        pod = self._pods.get(entry.key)
        if pod is None or pod.uid != entry.uid:
            if pod is not None:
                self._unlink(pod)
            pod = Pod(entry.key, entry.namespace, entry.name, entry.uid, self._shape(seen.spec))
        elif pod.generation != seen.metadata.generation:
            shape = self._shape(seen.spec)
        owner = pod.owner
        pod.update(seen, shape or pod.shape, now)
        if owner != pod.owner:
            _discard(self._by_owner, owner, pod.key)
        if not event.deleted:
            self._pods[entry.key] = pod
            self._link(pod)
        return pod

    def _shape(self, spec: _Spec) -> Shape:
        raw = [(field, getattr(spec, attribute)) for field, attribute in _SHAPE_FIELDS]
        key = tuple(bytes(value) for _, value in raw)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(key, {field: orjson.loads(bytes(value)) for field, value in raw})
        return shape

    def _link(self, pod: Pod) -> None:
        if pod.owner:
            self._by_owner.setdefault(pod.owner, {})[pod.key] = pod
            self.orphans.pop(pod.key, None)
        else:
            self.orphans[pod.key] = pod
        if pod.node:
            self._by_node.setdefault(pod.node, {})[pod.key] = pod
        if pod.shape.terms.apart:
            self.repelling[pod.key] = pod

    def _unlink(self, pod: Pod) -> None:
        _discard(self._by_owner, pod.owner, pod.key)
        _discard(self._by_node, pod.node, pod.key)
        self.orphans.pop(pod.key, None)
        self.repelling.pop(pod.key, None)


def _discard(index: dict[str, dict[str, Pod]], name: str, key: str) -> None:
    pods = index.get(name)
    if pods is not None:
        pods.pop(key, None)
        if not pods:
            del index[name]
