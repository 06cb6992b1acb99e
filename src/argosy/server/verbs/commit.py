"""From a final object to its stored bytes and to the response."""

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.server import numbers
from argosy.server.http.request import Call
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Encode, Record
from argosy.server.verbs.base import Api, to_stored
from argosy.server.watchcache.entry import Entry, served

__all__ = ["Parts", "encoded", "encoder", "parts", "reply"]

#: Encoded fields of a large object, with their values.
Parts = Mapping[str, tuple[Any, bytes]]
_NONE: Parts = {}


def encoded(kind: Kind, obj: Any) -> bytes:
    """The object, or a part of it, in its stored and returned form."""
    return numbers.encoded(obj) if kind.strategy.untyped else orjson.dumps(obj)


def parts(kind: Kind, obj: Object) -> Parts:
    """Encode the fields that do not change any more, so that `encoder` has little left to do."""
    return {
        key: (value, encoded(kind, value))
        for key, value in to_stored(kind, obj).items()
        if key != "metadata" and isinstance(value, dict | list)
    }


def encoder(kind: Kind, obj: Object, made: Parts = _NONE) -> Encode:
    """Called on the event loop with the version that an attempt to write it got. The object belongs to the write from now on.

    Fields in `made` that were not replaced since are taken from there.
    """
    stored: Object | None = None

    def encode(version: int) -> bytes:
        nonlocal stored
        obj["metadata"]["resourceVersion"] = str(version)
        whole = stored = stored or to_stored(kind, obj)
        if made:
            whole = {
                key: orjson.Fragment(made[key][1]) if key in made and made[key][0] is value else value
                for key, value in whole.items()
            }
        # orjson's bytes keep the spare room of their buffer (16 KiB for 2 KB); stored bytes are copied to size.
        return bytes(memoryview(encoded(kind, whole)))

    return encode


async def reply(api: Api, call: Call, record: Record) -> bytes:
    """The stored bytes themselves, unless another version than the stored one was requested."""
    kind = call.kind
    if (kind.storage_version or kind.version) == kind.version and kind.storage_group is None:
        return record.value
    return await api.run(call, len(record.value), served, kind, Entry.of(record))
