"""Cluster: what the simulated controllers of one member share, and how a committed change reaches them.

One subscriber of the store keeps the books of pods and nodes current and tells the controllers; they queue keys and read the
books, so nobody holds a second copy of anything. `Controller` is the loop each of them runs: it ends with the server.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from argosy.kube.client import Client
from argosy.kube.errors import Conflict, NotFound
from argosy.kube.events import EventRecorder
from argosy.kube.queue import Result, WorkQueue, run_workers
from argosy.kube.resource import Resource
from argosy.kube.transport import Request
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.http.request import Call, Target
from argosy.server.local import LocalTransport
from argosy.server.storage.base import Changed
from argosy.server.verbs.commit import encoder
from argosy.server.verbs.create import insert
from argosy.server.watchcache.entry import object_key
from argosy.server.watchcache.store import StoreEvent
from argosy.sim.nodes import NodeBook
from argosy.sim.pods import TERMINAL, Pod, PodBook
from argosy.sim.timings import Timings

__all__ = ["NODES", "PODS", "PODS_RESOURCE", "Cluster", "Controller", "Object"]

Object = dict[str, Any]
PODS = "core/pods/"
PODS_RESOURCE = Resource("", "v1", "pods", "Pod")
NODES = "core/nodes/"
_TRIES = 16


def _component_user(component: str) -> User:
    return User(f"system:{component}", ("system:masters", "system:authenticated"))


class Controller:
    """Subclasses say which changes concern them and what to do about a key."""

    name = "controller"
    workers = 16

    def __init__(self, cluster: "Cluster"):
        self.cluster = cluster
        self.queue: WorkQueue[str] = WorkQueue()

    def observe(self, event: StoreEvent) -> None:
        """A change of anything but a pod."""

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        """A change of a pod; `pod` is up to date, or what it was when it is gone."""

    async def reconcile(self, key: str) -> Result | None:
        raise NotImplementedError

    async def run(self) -> None:
        await run_workers(self.queue, self._quietly, self.workers, conflict_delay=self.cluster.timings.settle)

    async def _quietly(self, key: str) -> Result | None:
        try:
            async with self.cluster.turns:
                return await self.reconcile(key)
        except NotFound:
            # It vanished meanwhile; its own event comes by.
            return None


class Cluster:
    #: Reconciles under way at a time, in all members of a process together: users' requests come first.
    TURNS = 24

    def __init__(self, server: Server, timings: Timings, turns: asyncio.Semaphore | None = None):
        self.turns = turns or asyncio.Semaphore(self.TURNS)
        self.server = server
        self.store = server.store
        self.timings = timings
        self.pods = PodBook()
        self.nodes = NodeBook()
        self.controllers: list[Controller] = []
        #: Called with the name of a node on which something was freed, or that changed; "" for any.
        self.on_room: Callable[[], None] = lambda: None
        self._recorders: dict[str, EventRecorder] = {}

    def client(self, component: str) -> Client:
        return Client(LocalTransport(self.server, _component_user(component)), field_manager=component)

    def recorder(self, component: str) -> EventRecorder:
        """Events of one component; written from `start` on, until the server stops."""
        return self._recorders.setdefault(component, EventRecorder(self.client(component), component))

    async def flush_events(self) -> None:
        """Wait until the events so far are written."""
        for recorder in self._recorders.values():
            await recorder.flush()

    def start(self, controllers: list[Controller]) -> None:
        """Look at everything that is stored, then follow the changes until the server stops."""
        self.controllers = controllers
        self.store.subscribe(self._observe)
        tables = self.store.tables()
        # Nodes first: what pods claim is claimed on something.
        names = sorted(tables, key=lambda name: (name != "core/nodes", name != "core/pods", name))
        for name in names:
            for entry in list(tables[name].entries.values()):
                self._observe(StoreEvent(entry, None, deleted=False))
        for controller in controllers:
            self.server.run(controller.name, controller.run())
        for component, recorder in self._recorders.items():
            self.server.run(f"events of {component}", recorder.run())

    def _observe(self, event: StoreEvent) -> None:
        key = event.entry.key
        if key.startswith(PODS):
            pod = self._observe_pod(event)
            for controller in self.controllers:
                controller.observe_pod(pod, event)
            return
        if key.startswith(NODES):
            if event.deleted:
                self.nodes.remove(event.entry.name)
            else:
                self.nodes.update(event.entry.decode())
            self.on_room()
        for controller in self.controllers:
            controller.observe(event)

    def _observe_pod(self, event: StoreEvent) -> Pod:
        known = self.pods.get(event.entry.key)
        claimed, shape = (known.claimed, known.shape) if known is not None else ("", None)
        pod = self.pods.apply(event, asyncio.get_running_loop().time())
        if pod is not known:
            claimed, shape = "", None
        running = not event.deleted and pod.phase not in TERMINAL
        wanted = (pod.node or pod.claimed) if running else ""
        if wanted == claimed and pod.shape is shape:
            return pod
        if claimed and shape is not None:
            self.nodes.release(claimed, shape)
        if wanted:
            self.nodes.claim(wanted, pod.shape)
        pod.claimed = wanted
        if claimed:
            self.on_room()
        return pod

    def claim(self, pod: Pod, node: str) -> None:
        """Count the pod on a node from the decision on, before the binding is durable."""
        pod.claimed = node
        self.nodes.claim(node, pod.shape)

    def unclaim(self, pod: Pod) -> None:
        """The binding did not happen."""
        if pod.claimed and not pod.node:
            self.nodes.release(pod.claimed, pod.shape)
            pod.claimed = ""

    async def change_pod(self, pod: Pod, change: Callable[[Object], bool]) -> bool:
        """Write what `change` makes of the newest state of a pod; False when it is gone or there was nothing to change."""
        for _ in range(_TRIES):
            entry = self.store.get(pod.key)
            if entry is None or entry.uid != pod.uid:
                return False
            obj = entry.decode()
            if not change(obj):
                return False
            try:
                await self.write_back(PODS_RESOURCE, obj)
            except Conflict:
                continue
            return True
        raise Conflict(409, "Conflict", f"the pod {pod.name} changes too often", {})

    async def create_pod(self, pod: Object, namespace: str, component: str) -> None:
        """Create a pod, which belongs to the server from now on. Raises ApiError.

        The verb's own second half: defaults, admission and validation as for anybody. Only reading it from JSON and checking
        its types is left out, since its template went through that.
        """
        request = Request("POST", PODS_RESOURCE.path(namespace))
        target = Target("", "v1", ["namespaces", namespace, "pods"], "POST", watch=False)
        call = Call.of(target, self.server.registry, request, _component_user(component))
        await insert(self.server.api, call, pod, dry_run=False)

    async def write_back(self, resource: Resource, obj: Object) -> None:
        """Store an object as it was read, with a status or a nodeName of the simulation's own making. Raises Conflict.

        Nothing of it comes from outside, so it goes past decoding, admission and validation, which cost
        more than the write itself; most writes in the life of a pod are of this kind.
        """
        kind = self.server.registry.find(resource.group, resource.version, resource.plural)
        assert kind is not None
        metadata = obj["metadata"]
        key = object_key(kind, metadata["namespace"], metadata["name"])
        try:
            await self.store.replace(key, int(metadata["resourceVersion"]), encoder(kind, obj))
        except Changed:
            raise Conflict(409, "Conflict", f"{resource} {metadata['name']} has changed", {}) from None
