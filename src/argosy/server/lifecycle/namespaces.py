"""Namespaces: the base ones exist from the start; one that is deleted goes when everything in it has gone."""

from argosy.kube.errors import AlreadyExists, MethodNotAllowed, NotFound
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.lifecycle.loop import Loop
from argosy.server.store import StoreEvent

__all__ = ["BASE_NAMESPACES", "NamespaceLifecycle"]

BASE_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_TABLE = "core/namespaces/"
_FINALIZER = "kubernetes"


class NamespaceLifecycle(Loop):
    name = "namespace life cycle"

    async def create_base(self) -> None:
        """Before the server is ready."""
        for name in BASE_NAMESPACES:
            if self.store.get(_TABLE + name) is None:
                manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                try:
                    await self.client.create(_NAMESPACES, manifest)
                except AlreadyExists:
                    continue

    def observe(self, event: StoreEvent) -> None:
        entry = event.entry
        if entry.key.startswith(_TABLE):
            if entry.deleting and not event.deleted:
                self.queue.add(entry.name)
        elif event.deleted and entry.namespace:
            namespace = self.store.get(_TABLE + entry.namespace)
            if namespace is not None and namespace.deleting:
                self.queue.add(entry.namespace)

    async def reconcile(self, key: str) -> Result | None:
        namespace = self.store.get(_TABLE + key)
        if namespace is None or not namespace.deleting:
            return None
        if await self._empty(key):
            obj = namespace.decode()
            finalizers = (obj.get("spec") or {}).get("finalizers") or []
            obj["spec"] = {**(obj.get("spec") or {}), "finalizers": [f for f in finalizers if f != _FINALIZER]}
            await self.client.update(_NAMESPACES, obj, subresource="finalize")
        return None  # the deletion of what is left brings the namespace back here

    async def _empty(self, namespace: str) -> bool:
        """Delete whatever is there; true when nothing is left at all."""
        seen: set[str] = set()
        left = False
        for kind in self.server.registry:
            if not kind.namespaced or kind.storage_key in seen:
                continue
            seen.add(kind.storage_key)
            table = self.store.table(kind.storage_key)
            prefix = f"{kind.storage_key}/{namespace}/"
            entries = [entry for key, entry in table.entries.items() if key.startswith(prefix)]
            resource = Resource(kind.group, kind.version, kind.plural, kind.kind)
            for entry in entries:
                left = True
                if entry.deleting:
                    continue
                try:
                    # Nothing in here is to outlive the namespace, so nobody is given time to stop.
                    await self.client.delete(
                        resource, entry.name, namespace, uid=entry.uid, propagation="Background", grace_period=0
                    )
                except (NotFound, MethodNotAllowed):
                    continue
        return not left
