"""Zero values: fields of built-in kinds that Kubernetes leaves out of an object when they are false, 0, "" or empty.

Which ones they are follows from Go's types (a pointer keeps its zero), so there is a table, made by
`scripts/distill_zero_values.py`. Scalars are dropped when an object is read, since Kubernetes does not see them. Empty lists
and maps are dropped only when the object is stored.
"""

from functools import lru_cache
from importlib import resources
from typing import Any

import orjson

from argosy.kube.schema import Type

__all__ = ["drop_empties", "drop_zeros"]


@lru_cache(maxsize=1)
def _table() -> dict[str, frozenset[str]]:
    text = resources.files(__package__).joinpath("zero_values.json").read_bytes()
    return {definition: frozenset(fields) for definition, fields in orjson.loads(text).items()}


_NONE: frozenset[str] = frozenset()


def drop_zeros(type: Type, value: Any) -> None:
    """Remove such scalars from a value of this type, in place."""
    _drop(type, value, _table(), (bool, int, float, str))


def drop_empties(type: Type, value: Any) -> None:
    """Remove such lists and maps."""
    _drop(type, value, _table(), (list, dict))


def _drop(type: Type, value: Any, table: dict[str, frozenset[str]], which: tuple[Any, ...]) -> None:
    # The values are as orjson reads them, so that their classes can be compared: several times faster than isinstance.
    if value.__class__ is dict:
        dropped = table.get(type.definition or "", _NONE)
        empty: list[str] = []
        for key, item in value.items():
            if not item:
                if key in dropped and isinstance(item, which):
                    empty.append(key)
            elif item.__class__ is dict or item.__class__ is list:
                child = type.child(key)
                if child is not None:
                    _drop(child, item, table, which)
        for key in empty:
            del value[key]
    elif value.__class__ is list and type.item is not None and isinstance(value[0], (dict, list)):
        for item in value:
            _drop(type.item, item, table, which)
