"""Record: everything that happens to the objects of one namespace of one member, as its watches tell it, in order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import orjson

from argosy.kube.client import Client
from argosy.kube.resource import Resource

Object = dict[str, Any]
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
RECORDED = (
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    DAEMONSETS,
    REVISIONS,
    JOBS,
    CRONJOBS,
    BUDGETS,
    CLAIMS,
    PODS,
    EVENTS,
)
BY_KIND = {resource.kind: resource for resource in (*RECORDED, NODES)}


class Entry(NamedTuple):
    """One change. Versions order changes of different kinds, too, as both members count one revision for all."""

    version: int
    type: str
    kind: str
    name: str
    object: Object


class Record:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.objects: dict[str, dict[str, Object]] = {resource.kind: {} for resource in RECORDED}
        #: The number of each ReplicaSet among those that had the same controller, in order of appearance, by uid.
        self.numbers: dict[str, int] = {}
        self.changed = asyncio.Event()
        self._latest: dict[tuple[str, str], int] = {}

    def has_seen(self, kind: str, name: str, version: int) -> bool:
        """Whether the object of this name was told of at that version or a later one."""
        return self._latest.get((kind, name), 0) >= version

    def take(self, type: str, kind: str, obj: Object) -> None:
        metadata = obj["metadata"]
        self.entries.append(Entry(int(metadata["resourceVersion"]), type, kind, metadata["name"], obj))
        self._latest[kind, metadata["name"]] = int(metadata["resourceVersion"])
        if type == "DELETED":
            self.objects[kind].pop(metadata["name"], None)
        else:
            self.objects[kind][metadata["name"]] = obj
        if kind == "ReplicaSet" and metadata["uid"] not in self.numbers:
            self.numbers[metadata["uid"]] = len(self.numbers) + 1
        self.changed.set()

    def ordered(self) -> list[Entry]:
        return sorted(self.entries, key=lambda entry: entry.version)


class Watcher:
    """Watches all namespaces of a member and gives each change to the record of its namespace."""

    def __init__(self, client: Client, on_pod: Callable[[Object], None]):
        self._client = client
        self._on_pod = on_pod
        self._records: dict[str, Record] = {}
        self.failures: list[BaseException] = []

    def record(self, namespace: str) -> Record:
        """The record of a namespace, from before it exists."""
        return self._records.setdefault(namespace, Record())

    async def _follow(self, resource: Resource, started: asyncio.Event) -> None:
        version = (await self._client.list(resource)).resource_version
        try:
            while True:
                async with self._client.watch(resource, resource_version=version) as events:
                    started.set()
                    async for event in events:
                        obj = orjson.loads(event.object)
                        version = obj["metadata"]["resourceVersion"]
                        record = self._records.get(obj["metadata"].get("namespace", ""))
                        if record is not None and event.type != "BOOKMARK":
                            record.take(event.type, resource.kind, obj)
                        if resource is PODS and event.type == "MODIFIED":
                            self._on_pod(obj)
        except Exception as error:
            self.failures.append(error)
            raise


@asynccontextmanager
async def watching(client: Client, on_pod: Callable[[Object], None] = lambda pod: None) -> AsyncIterator[Watcher]:
    """`on_pod` hears of every pod that changes."""
    watcher = Watcher(client, on_pod)
    starts = [asyncio.Event() for _ in RECORDED]
    tasks = [
        asyncio.create_task(watcher._follow(resource, start)) for resource, start in zip(RECORDED, starts, strict=True)
    ]
    try:
        for start in starts:
            await asyncio.wait_for(start.wait(), 60)
        yield watcher
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
