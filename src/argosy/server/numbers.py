"""Numbers in objects that no type stands behind, as Kubernetes keeps them: custom resources, above all.

Its decoder tells 5 from 5.0, and either from true, so to write one over the other is a change; its encoder writes a whole
number without a fraction, so both are stored as 5. Python holds the three to be equal and keeps the fraction. Where a type
says what a field is, neither can be seen, and kinds with types do not pay for this.
"""

import re
from typing import Any

import orjson

__all__ = ["encoded", "same"]

#: A float as orjson writes it that is whole. What matches inside a string costs a look at the object, nothing else.
_FRACTIONLESS = re.compile(rb"\.0[,}\]]").search
_LARGE = re.compile(rb"e\+1\d[,}\]]").search
_INT64 = 2.0**63


def encoded(obj: dict[str, Any] | list[Any]) -> bytes:
    """An object or array as JSON. Changes the numbers of `obj` that are written in another form than they were read in."""
    body = orjson.dumps(obj)
    if _FRACTIONLESS(body) is None and _LARGE(body) is None:
        return body
    _make_whole(obj)
    return orjson.dumps(obj)


def _make_whole(value: Any) -> None:
    # Depth is bounded where bodies are read.
    for key, item in value.items() if type(value) is dict else enumerate(value):
        if type(item) is float and item.is_integer() and -_INT64 <= item < _INT64:
            value[key] = int(item)
        elif type(item) is dict or type(item) is list:
            _make_whole(item)


def same(new: Any, old: Any) -> bool:
    """Whether a value is what it was; `old` comes from the store."""
    return bool(new == old) and _sorted(new) == _sorted(old)


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
