"""Garbage collection: dependents go when their last owner is gone, wait for each other in foreground deletion, and are
released in orphan deletion.

An owner counts as gone only when its kind is served here and no object of that uid is there; an owner of a kind nobody
serves is unknown, and unknown deletes nothing.
"""

from enum import Enum, auto
from typing import Any

from argosy.kube.client import Client, Patch
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.entry import Entry, object_key
from argosy.server.lifecycle.loop import Loop
from argosy.server.metadata import FOREGROUND, ORPHAN
from argosy.server.registry import Kind
from argosy.server.store import StoreEvent

__all__ = ["GarbageCollector"]

Object = dict[str, Any]


class _Owner(Enum):
    SOLID = auto()
    GONE = auto()
    #: Being deleted in the foreground: it waits for those of its dependents that block it.
    WAITING = auto()
    UNKNOWN = auto()


class GarbageCollector(Loop):
    name = "garbage collection"

    def observe(self, event: StoreEvent) -> None:
        entry = event.entry
        if event.deleted:
            for dependent in self.store.dependents(entry.uid):
                self.queue.add(dependent.key)
            for uid in entry.owners:  # an owner may be waiting for this one
                self._wake_waiting_owner(uid, entry)
            return
        before = event.previous
        if before is not None and before.owners == entry.owners and not entry.deleting:
            return  # most changes are of status
        if entry.owners or entry.deleting:
            self.queue.add(entry.key)
            if entry.deleting:
                for dependent in self.store.dependents(entry.uid):
                    self.queue.add(dependent.key)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.store.get(key)
        if entry is None:
            return None
        kind = self._kind_of(entry)
        if kind is None:
            return None
        obj = entry.decode()
        finalizers = obj["metadata"].get("finalizers") or []
        if entry.deleting and ORPHAN in finalizers:
            await self._orphan_dependents(kind, entry, finalizers)
        elif entry.deleting and FOREGROUND in finalizers:
            await self._finish_foreground(kind, entry, finalizers)
        elif entry.owners and not entry.deleting:
            await self._follow_owners(kind, entry, obj)
        return None

    async def _follow_owners(self, kind: Kind, entry: Entry, obj: Object) -> None:
        references: list[Object] = obj["metadata"].get("ownerReferences") or []
        states = [(reference, self._state(reference, entry.namespace)) for reference in references]
        found = {state for _, state in states}
        if _Owner.UNKNOWN in found:
            return
        if _Owner.SOLID in found:
            kept = [reference for reference, state in states if state is _Owner.SOLID]
            if len(kept) < len(references):
                await self._patch(kind, entry, {"ownerReferences": kept})
            return
        if _Owner.WAITING in found and self.store.dependents(entry.uid):
            policy = "Foreground"
        else:
            finalizers = obj["metadata"].get("finalizers") or []
            policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        await self._delete(kind, entry, policy)

    async def _finish_foreground(self, kind: Kind, entry: Entry, finalizers: list[str]) -> None:
        """Delete the dependents; the finalizer goes when none that blocks its owner is left."""
        dependents = self.store.dependents(entry.uid)
        for dependent in dependents:
            self.queue.add(dependent.key)
        if any(_blocks(dependent, entry.uid) for dependent in dependents):
            return  # each one's deletion wakes this object again
        await self._patch(kind, entry, {"finalizers": [name for name in finalizers if name != FOREGROUND]})

    async def _orphan_dependents(self, kind: Kind, entry: Entry, finalizers: list[str]) -> None:
        for dependent in self.store.dependents(entry.uid):
            dependent_kind = self._kind_of(dependent)
            if dependent_kind is None:
                continue
            references = dependent.decode()["metadata"].get("ownerReferences") or []
            kept = [reference for reference in references if reference.get("uid") != entry.uid]
            await self._patch(dependent_kind, dependent, {"ownerReferences": kept})
        await self._patch(kind, entry, {"finalizers": [name for name in finalizers if name != ORPHAN]})

    def _state(self, reference: Object, namespace: str) -> _Owner:
        kind = self._kind_named(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
        if kind is None:
            return _Owner.UNKNOWN
        owner = self.store.get(object_key(kind, namespace, str(reference.get("name", ""))))
        if owner is None or owner.uid != reference.get("uid"):
            return _Owner.GONE
        if owner.deleting and FOREGROUND in (owner.decode()["metadata"].get("finalizers") or ()):
            return _Owner.WAITING
        return _Owner.SOLID

    def _wake_waiting_owner(self, uid: str, dependent: Entry) -> None:
        for reference in dependent.decode()["metadata"].get("ownerReferences") or ():
            kind = self._kind_named(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
            if kind is None or reference.get("uid") != uid:
                continue
            owner = self.store.get(object_key(kind, dependent.namespace, str(reference.get("name", ""))))
            if owner is not None and owner.uid == uid and owner.deleting:
                self.queue.add(owner.key)

    def _kind_named(self, api_version: str, kind_name: str) -> Kind | None:
        group = api_version.rpartition("/")[0]
        for kind in self.server.registry:
            if kind.group == group and kind.kind == kind_name:
                return kind
        return None

    def _kind_of(self, entry: Entry) -> Kind | None:
        group, plural = entry.key.split("/", 2)[:2]
        for kind in self.server.registry:
            if kind.storage_key == f"{group}/{plural}" and kind.api_version == entry.api_version:
                return kind
        return None

    async def _patch(self, kind: Kind, entry: Entry, metadata: Object) -> None:
        """Conditional on the version that was looked at: who changed it meanwhile has the say."""
        body = {"metadata": {**metadata, "resourceVersion": str(entry.version), "uid": entry.uid}}
        await self.client.patch(_resource(kind), entry.name, body, entry.namespace or None, kind=Patch.MERGE)

    async def _delete(self, kind: Kind, entry: Entry, policy: str) -> None:
        client: Client = self.client
        await client.delete(
            _resource(kind),
            entry.name,
            entry.namespace or None,
            uid=entry.uid,
            resource_version=str(entry.version),
            propagation=policy,
        )


def _blocks(dependent: Entry, owner_uid: str) -> bool:
    references = dependent.decode()["metadata"].get("ownerReferences") or ()
    return any(reference.get("uid") == owner_uid and reference.get("blockOwnerDeletion") for reference in references)


def _resource(kind: Kind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
