"""Entry: one object in the cache: its stored bytes, and the little that selectors need.

Entries never change: a write replaces the entry, so any list of entries is a consistent snapshot for as long as it is held.
"""

from collections.abc import Mapping
from sys import intern
from typing import Any, cast

import msgspec
import orjson

from argosy.server.registry import Kind, Strategy
from argosy.server.storage.base import Record

__all__ = ["Entry", "object_key", "served", "served_as_stored"]


class _Owner(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    #: Of any type: objects stored before validation existed must be readable.
    block_owner_deletion: Any = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode_head = msgspec.json.Decoder(_Head).decode
_NO_LABELS: Mapping[str, str] = {}


class Entry(msgspec.Struct, gc=False, eq=False):
    """Made by `of`. There are as many as objects, and none is in a reference cycle: Python's garbage collector skips them."""

    key: str
    version: int
    value: bytes
    api_version: str
    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    owners: tuple[str, ...]
    #: The owners whose deletion in the foreground waits for this object.
    blocks: tuple[str, ...]
    finalizers: tuple[str, ...]
    deleting: bool
    _fields: tuple[Strategy, dict[str, str]] | None = None

    @classmethod
    def of(cls, record: Record) -> "Entry":
        head = _decode_head(record.value)
        metadata = head.metadata
        references = metadata.owner_references or ()
        return cls(
            record.key,
            record.version,
            record.value,
            intern(head.api_version),
            intern(metadata.namespace),
            metadata.name,
            metadata.uid,
            metadata.labels or _NO_LABELS,
            tuple(owner.uid for owner in references) if references else (),
            tuple(owner.uid for owner in references if owner.block_owner_deletion is True) if references else (),
            tuple(map(intern, metadata.finalizers)) if metadata.finalizers else (),
            metadata.deletion_timestamp is not None,
        )

    def decode(self) -> dict[str, Any]:
        """A copy of the stored object."""
        return cast(dict[str, Any], orjson.loads(self.value))

    def at(self, version: int) -> bytes:
        """The stored object with another resourceVersion."""
        obj = self.decode()
        obj["metadata"]["resourceVersion"] = str(version)
        return orjson.dumps(obj)

    def fields(self, kind: Kind) -> dict[str, str]:
        """The values of the kind's own field selectors, read once and shared."""
        if self._fields is None or self._fields[0] is not kind.strategy:
            obj = self.decode()
            self._fields = kind.strategy, {path: get(obj) for path, get in kind.strategy.selectable.items()}
        return self._fields[1]


def object_key(kind: Kind, namespace: str, name: str) -> str:
    """The storage key of an object; all versions of a resource share it."""
    return f"{kind.storage_key}/{namespace}/{name}" if kind.namespaced else f"{kind.storage_key}/{name}"


def served_as_stored(kind: Kind, entry: Entry) -> bool:
    """Whether `kind` serves the stored bytes unchanged."""
    return entry.api_version == kind.api_version and entry.version >= kind.rules_since


def served(kind: Kind, entry: Entry) -> bytes:
    """The object in the version `kind` serves: the stored bytes themselves wherever that is the stored version."""
    if served_as_stored(kind, entry):
        return entry.value
    obj = entry.decode()
    if kind.from_storage is not None:
        kind.from_storage(obj)
    obj["apiVersion"] = kind.api_version
    obj["kind"] = kind.kind
    return orjson.dumps(obj)
