"""Defaulting: absent fields get the schema's defaults, from the outside inwards, so that a default may itself be completed."""

from typing import Any

import orjson

from argosy.server.crd.structure import Structure

__all__ = ["apply_defaults"]


def apply_defaults(value: Any, structure: Structure | None) -> None:
    """Fill in place; a null counts as absent where the schema does not allow it."""
    if structure is None or not structure.defaults_below:
        return
    if type(value) is dict:
        for name, encoded in structure.defaulted:
            if value.get(name) is None and (name not in value or not structure.properties[name].nullable):
                value[name] = orjson.loads(encoded)
        for name, item in value.items():
            if type(item) is dict or type(item) is list:
                apply_defaults(item, structure.child(name))
    elif type(value) is list:
        for item in value:
            if type(item) is dict or type(item) is list:
                apply_defaults(item, structure.items)
