"""Numbers in objects without a type, mainly custom resources, as Kubernetes keeps them.

Its decoder tells 5 from 5.0, and both from true, so that writing one over the other is a change; its encoder writes a whole
number without a fraction, so both are stored as 5. To Python the three are equal, and it keeps the fraction. For fields with a
type the difference is invisible, and typed kinds do not pay for this.
"""

import re
from typing import Any

import orjson

__all__ = ["encoded", "same"]

#: A float that is whole, as orjson writes it. A match inside a string only costs one check of the object.
_FRACTIONLESS = re.compile(rb"\.0[,}\]]").search
_LARGE = re.compile(rb"e\+1\d[,}\]]").search
_INT64 = 2.0**63


def encoded(obj: dict[str, Any] | list[Any]) -> bytes:
    """An object or array as JSON. Changes numbers in `obj` that are written in another form than they were read in."""
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
    """Whether a value is unchanged; `old` comes from the store."""
    return bool(new == old) and _sorted(new) == _sorted(old)


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
