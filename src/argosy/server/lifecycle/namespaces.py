"""Namespaces: the base ones exist from the start; a deleted one goes when everything in it is gone."""

import collections

from prometheus_client import Counter

from argosy.kube.client import Patch
from argosy.kube.conditions import set_condition
from argosy.kube.errors import AlreadyExists, MethodNotAllowed, NotFound
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.kube.timestamps import now
from argosy.server.lifecycle.loop import Loop
from argosy.server.registry import Registry
from argosy.server.trusted import Entry, StoreEvent, TrustedAccess

__all__ = ["BASE_NAMESPACES", "NamespaceLifecycle"]

BASE_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_TABLE = "core/namespaces/"
_FINALIZER = "kubernetes"
_NOTHING_FAILED = (
    ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)

#: Resources (`plural.group`) and what is left of them.
Remaining = dict[str, list[Entry]]


class NamespaceLifecycle(Loop):
    name = "namespace life cycle"

    def __init__(self, access: TrustedAccess, spinning: Counter, registry: Registry):
        super().__init__(access, spinning)
        self._registry = registry

    async def create_base(self) -> None:
        """Called before the server is ready."""
        for name in BASE_NAMESPACES:
            if self.access.get(_TABLE + name) is None:
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
            namespace = self.access.get(_TABLE + entry.namespace)
            if namespace is not None and namespace.deleting:
                self.queue.add(entry.namespace)

    async def reconcile(self, key: str) -> Result | None:
        namespace = self.access.get(_TABLE + key)
        if namespace is None or not namespace.deleting:
            return None
        left = await self._empty(key)
        if left:
            await self._tell(namespace, left)
        else:
            obj = namespace.decode()
            finalizers = (obj.get("spec") or {}).get("finalizers") or []
            obj["spec"] = {**(obj.get("spec") or {}), "finalizers": [f for f in finalizers if f != _FINALIZER]}
            await self.client.update(_NAMESPACES, obj, subresource="finalize")
        return None  # the deletion of what is left brings the namespace back here

    async def _tell(self, namespace: Entry, left: Remaining) -> None:
        """Reports in its conditions why the namespace is still there."""
        current = (namespace.decode().get("status") or {}).get("conditions") or []
        conditions = current
        for type, status, reason, message in _conditions(left):
            conditions = set_condition(conditions, type, status, reason, message, now())
        if conditions != current:
            patch = {"status": {"conditions": conditions}}
            await self.client.patch(_NAMESPACES, namespace.name, patch, kind=Patch.MERGE, subresource="status")

    async def _empty(self, namespace: str) -> Remaining:
        """Delete all objects; returns those that finalizers still keep."""
        seen: set[str] = set()
        left: Remaining = {}
        for kind in self._registry:
            if not kind.namespaced or kind.storage_key in seen:
                continue
            seen.add(kind.storage_key)
            entries = self.access.entries(kind.storage_key, namespace)
            resource = Resource(kind.group, kind.version, kind.plural, kind.kind)
            for entry in entries:
                if entry.deleting:
                    continue
                try:
                    # Nothing should outlive the namespace, so there is no grace period.
                    await self.client.delete(
                        resource, entry.name, namespace, uid=entry.uid, propagation="Background", grace_period=0
                    )
                except (NotFound, MethodNotAllowed):
                    continue
            kept = [entry for entry in (self.access.get(entry.key) for entry in entries) if entry is not None]
            if kept:
                left[f"{kind.plural}.{kind.group}"] = kept
        return left


def _conditions(left: Remaining) -> list[tuple[str, str, str, str]]:
    resources = ", ".join(f"{name} has {len(entries)} resource instances" for name, entries in sorted(left.items()))
    finalizers = collections.Counter(
        name
        for entries in left.values()
        for entry in entries
        for name in entry.decode()["metadata"].get("finalizers") or ()
    )
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    told = [
        *_NOTHING_FAILED,
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {resources}"),
    ]
    if not held:
        text = "All content-preserving finalizers finished"
        return [*told, ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", text)]
    text = f"Some content in the namespace has finalizers remaining: {held}"
    return [*told, ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", text)]
