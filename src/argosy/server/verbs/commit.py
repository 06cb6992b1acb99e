"""From a finished object to its stored bytes and back to the answer."""

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

#: Fields of a large object that were encoded beforehand, with what they were made from.
Parts = Mapping[str, tuple[Any, bytes]]
_NONE: Parts = {}


def encoded(kind: Kind, obj: Any) -> bytes:
    """The object, or a part of it, as it is stored and answered."""
    return numbers.encoded(obj) if kind.strategy.untyped else orjson.dumps(obj)


def parts(kind: Kind, obj: Object) -> Parts:
    """Encode the fields that do not change any more, so that little is left to do for `encoder`."""
    return {
        key: (value, encoded(kind, value))
        for key, value in to_stored(kind, obj).items()
        if key != "metadata" and isinstance(value, dict | list)
    }


def encoder(kind: Kind, obj: Object, made: Parts = _NONE) -> Encode:
    """Called on the loop with the version a try to write it got. The object belongs to the write from now on.

    Of what is in `made`, fields that were not replaced since are taken from there.
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
        # The bytes orjson returns keep the spare room of their buffer (16 KiB for 2 KB); what is stored is copied to size.
        return bytes(memoryview(encoded(kind, whole)))

    return encode


async def reply(api: Api, call: Call, record: Record) -> bytes:
    """The stored bytes themselves, except where another version than the stored one was asked for."""
    kind = call.kind
    if (kind.storage_version or kind.version) == kind.version and kind.storage_group is None:
        return record.value
    return await api.run(call, len(record.value), served, kind, Entry.of(record))
