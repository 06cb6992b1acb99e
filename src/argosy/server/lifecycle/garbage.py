"""Garbage collection: dependents are deleted when their last owner is gone, block their owner in foreground deletion, and are
released in orphan deletion.

An owner counts as gone only if its kind is served here and no object has that uid. An owner of a kind that is not served, or
one that its dependent could not have, is unknown, and an unknown owner deletes nothing.

Owner references may form a cycle. In foreground deletion each object would wait for the next one forever, so one of them must
not wait: its references stop blocking. Kubernetes does that only when it deletes an object whose owner and dependent both
already wait; here also if all of a cycle wait, which Kubernetes leaves as it is.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from prometheus_client import Counter

from argosy.kube.client import Client, Patch
from argosy.kube.errors import NotFound
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.lifecycle.loop import Loop
from argosy.server.metadata import FOREGROUND, ORPHAN
from argosy.server.registry import Kind, Registry
from argosy.server.trusted import Entry, StoreEvent, TrustedAccess
from argosy.server.watchcache.entry import object_key

__all__ = ["GarbageCollector"]

Object = dict[str, Any]
#: Dependents processed before others get their turn.
SLICE = 200
AFTER_UNBLOCKING = 0.05


class _Owner(Enum):
    SOLID = auto()
    GONE = auto()
    #: Being deleted in the foreground: it waits for the dependents that block it.
    WAITING = auto()
    UNKNOWN = auto()


class GarbageCollector(Loop):
    name = "garbage collection"

    def __init__(self, access: TrustedAccess, spinning: Counter, registry: Registry):
        super().__init__(access, spinning)
        self._registry = registry
        #: The uids of all objects that wait for their dependents, and their places.
        self._waiting: dict[str, str] = {}

    def observe(self, event: StoreEvent) -> None:
        entry, before = event.entry, event.previous
        if event.deleted:
            self._waiting.pop(entry.uid, None)
            self._wake(*(dependent.key for dependent in self.access.dependents(entry.uid)))
            self._wake_waiting(before.blocks if before is not None else entry.blocks)
            return
        if before is not None:
            self._wake_waiting(uid for uid in before.blocks if uid not in entry.blocks)
        if entry.deleting:
            if _waits(entry) and not (before is not None and _waits(before)):
                self._waiting[entry.uid] = entry.key
                # Its dependents first: those that do not block it must see that it waits, too.
                self._wake(*(dependent.key for dependent in self.access.dependents(entry.uid)), entry.key)
            elif ORPHAN in entry.finalizers:
                self._wake(entry.key)
        elif entry.owners and (before is None or before.owners != entry.owners):
            self._wake(entry.key)

    def _wake(self, *keys: str) -> None:
        for key in keys:
            self.queue.add(key)

    def _wake_waiting(self, uids: Iterable[str]) -> None:
        """Owners that waited for a dependent that is gone, or no longer blocks."""
        self._wake(*(self._waiting[uid] for uid in uids if uid in self._waiting))

    async def reconcile(self, key: str) -> Result | None:
        entry = self.access.get(key)
        kind = self._kind_of(entry) if entry is not None else None
        if entry is None or kind is None:
            return None
        if entry.deleting and ORPHAN in entry.finalizers:
            await self._orphan_dependents(kind, entry)
        elif _waits(entry):
            await self._finish_foreground(kind, entry)
        elif entry.owners and not entry.deleting:
            return await self._follow_owners(kind, entry)
        return None

    async def _follow_owners(self, kind: Kind, entry: Entry) -> Result | None:
        references = _references(entry)
        states = [(reference, self._state(reference, entry.namespace)) for reference in references]
        found = {state for _, state in states}
        if _Owner.UNKNOWN in found:
            return None
        if _Owner.SOLID in found:
            kept = [reference for reference, state in states if state is _Owner.SOLID]
            if len(kept) < len(references):
                await self._patch(kind, entry, {"ownerReferences": kept})
            return None
        dependents = self.access.dependents(entry.uid)
        if _Owner.WAITING in found and dependents:
            if entry.blocks and any(map(_waits, dependents)):
                # Between an owner and a dependent that both wait, this one may close a cycle. Whether its owner still exists
                # when it need not wait any more decides how this one is deleted.
                await self._unblock(kind, entry, frozenset(entry.blocks))
                return Result(requeue_after=AFTER_UNBLOCKING)
            await self._delete(kind, entry, "Foreground")
            return None
        finalizers = entry.finalizers
        policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        await self._delete(kind, entry, policy)
        return None

    async def _finish_foreground(self, kind: Kind, entry: Entry) -> None:
        """The finalizer is removed when no blocking dependent is left; each dependent's end wakes this object again."""
        blocking = [dependent for dependent in self.access.dependents(entry.uid) if entry.uid in dependent.blocks]
        if not blocking:
            await self._patch(kind, entry, {"finalizers": [name for name in entry.finalizers if name != FOREGROUND]})
            return
        if not all(map(_waits, blocking)):
            self._wake(*(dependent.key for dependent in blocking if not dependent.deleting))
            return
        circle = frozenset(entry.blocks) & await self._waited_for(entry)
        if circle:
            await self._unblock(kind, entry, circle)

    async def _waited_for(self, entry: Entry) -> frozenset[str]:
        """The uids of all waiting objects that an object waits for, directly or indirectly."""
        seen: set[str] = set()
        stack = [entry.uid]
        looked_at = 0
        while stack:
            uid = stack.pop()
            for dependent in self.access.dependents(uid):
                looked_at += 1
                if looked_at % SLICE == 0:
                    await asyncio.sleep(0)
                if uid in dependent.blocks and _waits(dependent) and dependent.uid not in seen:
                    seen.add(dependent.uid)
                    stack.append(dependent.uid)
        return frozenset(seen)

    async def _unblock(self, kind: Kind, entry: Entry, owners: frozenset[str]) -> None:
        """Stop blocking these owners."""
        references = [
            {**reference, "blockOwnerDeletion": False} if reference.get("uid") in owners else reference
            for reference in _references(entry)
        ]
        await self._patch(kind, entry, {"ownerReferences": references})

    async def _orphan_dependents(self, kind: Kind, entry: Entry) -> None:
        for dependent in self.access.dependents(entry.uid):
            dependent_kind = self._kind_of(dependent)
            if dependent_kind is None:
                return  # released it would not be, and without its owner it would be garbage
            kept = [reference for reference in _references(dependent) if reference.get("uid") != entry.uid]
            with contextlib.suppress(NotFound):  # deleted meanwhile
                await self._patch(dependent_kind, dependent, {"ownerReferences": kept})
        if (latest := self.access.get(entry.key)) is not None and latest.uid == entry.uid:
            await self._patch(kind, latest, {"finalizers": [name for name in latest.finalizers if name != ORPHAN]})

    def _state(self, reference: Object, namespace: str) -> _Owner:
        kind = self._kind_named(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
        if kind is None or (kind.namespaced and not namespace):
            return _Owner.UNKNOWN  # the latter nobody can look up: nothing says in which namespace it would be
        owner = self.access.get(object_key(kind, namespace, str(reference.get("name", ""))))
        if owner is None or owner.uid != reference.get("uid"):
            return _Owner.GONE
        return _Owner.WAITING if _waits(owner) else _Owner.SOLID

    def _kind_named(self, api_version: str, kind_name: str) -> Kind | None:
        group = api_version.rpartition("/")[0]
        for kind in self._registry:
            if kind.group == group and kind.kind == kind_name:
                return kind
        return None

    def _kind_of(self, entry: Entry) -> Kind | None:
        """In its stored version, or in any served one if that one is not served."""
        group, plural = entry.key.split("/", 2)[:2]
        kinds = self._registry.stored_under(f"{group}/{plural}")
        return next((kind for kind in kinds if kind.api_version == entry.api_version), kinds[0] if kinds else None)

    async def _patch(self, kind: Kind, entry: Entry, metadata: Object) -> None:
        """Conditional on the version that was read: a change in between wins."""
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


def _waits(entry: Entry) -> bool:
    """Whether its dependents must be deleted first."""
    return entry.deleting and FOREGROUND in entry.finalizers


def _references(entry: Entry) -> list[Object]:
    return entry.decode()["metadata"].get("ownerReferences") or []


def _resource(kind: Kind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
