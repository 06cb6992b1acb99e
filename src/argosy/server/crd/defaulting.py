"""Defaulting: absent fields get the schema's defaults, from the outside inwards, so that a default may itself be completed."""

from typing import Any

import orjson

from argosy.server import status
from argosy.server.crd.structure import Structure

__all__ = ["apply_defaults"]


#: Bytes of defaults that one object may get. Each list item gets its own, so a small body could become huge.
MOST = 3 * 1024 * 1024


def apply_defaults(value: Any, structure: Structure | None) -> None:
    """Fill in place; a null counts as absent if the schema does not allow it. Raises 413 if it would be too large."""
    _fill(value, structure, MOST)


def _fill(value: Any, structure: Structure | None, room: int) -> int:
    """What is left of the room."""
    if structure is None or not structure.defaults_below:
        return room
    if type(value) is dict:
        for name, encoded in structure.defaulted:
            if value.get(name) is None and (name not in value or not structure.properties[name].nullable):
                room -= len(encoded)
                if room < 0:
                    raise status.too_large(MOST)
                value[name] = orjson.loads(encoded)
        for name, item in value.items():
            if type(item) is dict or type(item) is list:
                room = _fill(item, structure.child(name), room)
    elif type(value) is list:
        for item in value:
            if type(item) is dict or type(item) is list:
                room = _fill(item, structure.items, room)
    return room
