"""From a finished object to its stored bytes and back to the answer."""

import orjson

from argosy.server import numbers
from argosy.server.entry import Entry, served
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Encode, Record
from argosy.server.verbs.base import to_stored

__all__ = ["encoded", "encoder", "reply"]


def encoded(kind: Kind, obj: Object) -> bytes:
    """The object as it is stored and answered."""
    return numbers.encoded(obj) if kind.strategy.untyped else orjson.dumps(obj)


def encoder(kind: Kind, obj: Object) -> Encode:
    """Called once with the version the write got. The object belongs to the write from now on."""

    def encode(version: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(version)
        # The bytes orjson returns keep the spare room of their buffer (16 KiB for 2 KB); what is stored is copied to size.
        return bytes(memoryview(encoded(kind, to_stored(kind, obj))))

    return encode


def reply(kind: Kind, record: Record) -> bytes:
    """The stored bytes themselves, except where another version than the stored one was asked for."""
    if (kind.storage_version or kind.version) == kind.version and kind.storage_group is None:
        return record.value
    return served(kind, Entry(record))
