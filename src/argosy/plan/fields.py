"""Fields of plain JSON objects by path: read, set and removed without changing the original.

A path is a dotted text as type configs have it (`spec.replicas`), or a tuple of keys where keys may hold dots.
Parts that are not touched are shared with the original.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from argosy.kube.mergepatch import same

__all__ = ["ABSENT", "MISSHAPEN", "Json", "equal", "get", "keys_of", "number", "pointer", "put", "without"]

Json = dict[str, Any]
Path = str | tuple[str, ...]

#: What working with JSON of the wrong shape raises.
MISSHAPEN: Final = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)

#: What `get` returns for a missing field; a field may be null.
ABSENT: Final = object()


def keys_of(path: Path) -> tuple[str, ...]:
    return tuple(path.split(".")) if isinstance(path, str) else path


def pointer(path: str) -> str:
    """A dotted path as a JSON pointer."""
    return "/" + path.replace(".", "/")


def get(obj: Mapping[str, Any], path: Path, default: Any = ABSENT) -> Any:
    """The value at the path; lists are not entered."""
    node: Any = obj
    for key in keys_of(path):
        if not isinstance(node, dict) or key not in node:
            return default
        node = node[key]
    return node


#: Replicas are 32-bit numbers.
_LARGEST: Final = 2**31 - 1


def number(obj: Mapping[str, Any], path: Path) -> int | None:
    """A number such as replicas at the path; None if there is none, or it is out of range."""
    value = get(obj, path, None) if path else None
    if not isinstance(value, int) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
        return None
    return value


def put(obj: Mapping[str, Any], path: Path, value: Any) -> Json:
    """The object with the value at the path; values on the way that are not objects are replaced by objects."""
    key, *rest = keys_of(path)
    if not rest:
        return {**obj, key: value}
    child = obj.get(key)
    return {**obj, key: put(child if isinstance(child, dict) else {}, tuple(rest), value)}


def without(obj: Json, path: Path) -> Json:
    """The object without the field; the same object if it has none."""
    key, *rest = keys_of(path)
    if key not in obj:
        return obj
    if not rest:
        return {name: value for name, value in obj.items() if name != key}
    child = obj[key]
    if not isinstance(child, dict):
        return obj
    smaller = without(child, tuple(rest))
    return obj if smaller is child else {**obj, key: smaller}


#: Objects of more fields are data rather than structure: they are compared as a whole, since walking them takes long.
_WIDE = 64


def equal(a: Any, b: Any, depth: int = 3) -> bool:
    """Equality of JSON values. The top levels are walked, since two versions of an object share their unchanged parts. Below,
    encoding both is several times faster than walking them if they are equal."""
    if a is b:
        return True
    if isinstance(a, str):
        return bool(a == b)
    if isinstance(a, dict) and isinstance(b, dict) and len(a) > _WIDE:
        if a != b:
            return False
        # To Python 1, true and 1.0 are equal. Maps of strings need no further check.
        if set(map(type, a.values())) == {str}:
            return True
    elif depth and isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(value, b[key], depth - 1) for key, value in a.items())
    encoded = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in (a, b)]
    return encoded[0] == encoded[1] or same(a, b)
