"""TrustedAccess: access for controllers in the server's process that the server trusts.

Used by the server's own loops (`lifecycle`) and by simulated controllers. Objects are read from the watch cache as stored; a
reader sees its own writes. A key is `group/plural/namespace/name` (`core` for the core group, no namespace for cluster-scoped
kinds), a table is `group/plural`.

Observers are called within the commit, before the write is acknowledged: they queue a key and do their work elsewhere.

Writes go through `client`, with the usual rules. For objects without external content there are shorter ways: `create` skips
parsing JSON and checking types, `update`, `change` and `bind` also skip admission and validation.
"""

from collections.abc import Awaitable, Callable, Sequence

from argosy.kube.client import Client
from argosy.kube.resource import Resource
from argosy.kube.timestamps import now
from argosy.kube.transport import Request
from argosy.server import status
from argosy.server.admission.resource_quotas import usage as quota_usage
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.health import Check
from argosy.server.http.request import Call, parse_target
from argosy.server.kinds.pods.pods import BindRefused, bind
from argosy.server.local import LocalTransport
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Changed
from argosy.server.tasks import Tasks
from argosy.server.verbs.commit import encoder
from argosy.server.verbs.create import insert
from argosy.server.watchcache.entry import Entry, object_key
from argosy.server.watchcache.store import Observer, StoreEvent

__all__ = ["Entry", "Object", "StoreEvent", "TrustedAccess", "quota_usage"]

#: Retries of a write while others change the same object.
TRIES = 16
_PODS = Resource("", "v1", "pods", "Pod")


class TrustedAccess:
    def __init__(self, server: Server, tasks: Tasks):
        self._server = server
        self._store = server.store
        self._tasks = tasks

    @property
    def git_version(self) -> str:
        """The Kubernetes version that is served."""
        return self._server.git_version

    # Reading.

    def get(self, key: str) -> Entry | None:
        return self._store.get(key)

    def entries(self, table: str, namespace: str = "") -> list[Entry]:
        """All objects of a table, or those in a namespace, in the order of their keys."""
        return self._store.table(table).under(f"{table}/{namespace}/" if namespace else f"{table}/")

    def dependents(self, uid: str) -> Sequence[Entry]:
        """The objects that name this uid among their owners."""
        return self._store.dependents(uid)

    # Changes.

    def follow(self, observe: Observer, *first: str) -> None:
        """Call `observe` for each stored object, those of the tables `first` before the others, then for each change."""
        self._store.follow_all(observe, *first)

    def run(self, name: str, work: Awaitable[None], problem: Check = lambda: None) -> None:
        """Run a loop until the server stops. If it dies or reports a problem, /livez fails."""
        self._tasks.run(name, work, problem)

    # Writing.

    def client(self, component: str) -> Client:
        """The API as `system:<component>`, which may do everything."""
        return Client(LocalTransport(self._server, _user(component)), field_manager=component)

    async def create(self, component: str, resource: Resource, obj: Object) -> None:
        """Create an object, which belongs to the server from now on. Raises ApiError."""
        request = Request("POST", resource.path(obj["metadata"].get("namespace")))
        target = parse_target(request)
        assert target is not None
        call = Call.of(target, self._server.registry, request, _user(component))
        await insert(self._server.api, call, obj, dry_run=False)

    async def update(self, resource: Resource, obj: Object) -> None:
        """Store an object that was read here, with the component's own changes. Raises Conflict."""
        kind, metadata = self._kind(resource), obj["metadata"]
        key = object_key(kind, metadata.get("namespace", ""), metadata["name"])
        try:
            await self._store.replace(key, int(metadata["resourceVersion"]), encoder(kind, obj))
        except Changed:
            raise status.conflict(kind, metadata["name"]) from None

    async def change(self, resource: Resource, key: str, uid: str, change: Callable[[Object], bool]) -> bool:
        """Store what `change` makes of the newest state of an object. Raises Conflict if it changes too often.

        False if it is gone, or `change` returns nothing.
        """
        kind = self._kind(resource)
        for _ in range(TRIES):
            entry = self.get(key)
            if entry is None or entry.uid != uid:
                return False
            obj = entry.decode()
            if not change(obj):
                return False
            try:
                await self._store.replace(key, entry.version, encoder(kind, obj))
                return True
            except Changed:
                continue
        raise status.conflict(kind, key.rpartition("/")[2])

    async def bind(self, key: str, uid: str, node: str) -> bool:
        """Assign a pod to a node; False if it is gone, or must not be assigned any more."""

        def assign(pod: Object) -> bool:
            try:
                bind(pod, {"target": {"name": node}}, now())
            except BindRefused:
                return False
            return True

        return await self.change(_PODS, key, uid, assign)

    def _kind(self, resource: Resource) -> Kind:
        kind = self._server.registry.find(resource.group, resource.version, resource.plural)
        if kind is None:
            raise status.not_served()
        return kind


def _user(component: str) -> User:
    return User(f"system:{component}", ("system:masters", "system:authenticated"))
