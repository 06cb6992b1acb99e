"""Workload: a controller whose objects own pods directly, and the changes that wake it."""

import msgspec

from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.trusted import Entry, StoreEvent
from argosy.sim.cluster import Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.podcontrol import PodControl
from argosy.sim.pods import Pod

__all__ = ["Workload"]


class _Metadata(msgspec.Struct, rename="camel"):
    generation: int = 0


class _Head(msgspec.Struct):
    metadata: _Metadata


_head = msgspec.json.Decoder(_Head).decode


class Workload(Controller):
    """Subclasses name their resource; keys are storage keys."""

    resource: Resource
    component = "workload-controller"
    #: As events call it, where that is not the same.
    event_source = ""

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self.client = cluster.client(self.component)
        self.events = cluster.recorder(self.event_source or self.component)
        self.control = PodControl(cluster, self.client, self.events)
        self.table = f"{self.resource.group or 'core'}/{self.resource.plural}/"

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.access.get(key)
        return await self.sync(entry, entry.decode()) if entry is not None else None

    async def sync(self, entry: Entry, obj: Object) -> Result | None:
        """Reconcile one of the objects; `obj` is a copy to work with."""
        raise NotImplementedError

    def observe(self, event: StoreEvent) -> None:
        entry, before = event.entry, event.previous
        if not entry.key.startswith(self.table) or event.deleted:
            return
        # Status writes, most of them its own, do not change the generation and need no reconcile.
        if before is None or before.deleting != entry.deleting or _head(before.value) != _head(entry.value):
            self.queue.add(entry.key)

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        # A new pod was counted by the reconcile that created it, and bindings are not counted.
        if pod.owner_kind == self.resource.kind and (event.deleted or (pod.moved and event.previous is not None)):
            # Wait for the end of a burst of changes: it then costs one status write.
            self.queue.add(f"{self.table}{pod.namespace}/{pod.owner_name}", after=self.cluster.timings.settle)
