"""Fields of plain JSON objects by path: read, set and removed without changing the original.

A path is a dotted text as type configs have it (`spec.replicas`), or a tuple of keys where keys may hold dots.
Parts that are not touched are shared with the original.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from argosy.kube.mergepatch import same

__all__ = ["ABSENT", "Json", "equal", "get", "keys_of", "number", "pointer", "put", "without"]

Json = dict[str, Any]
Path = str | tuple[str, ...]

#: What `get` answers for a field that is not there; a field may well be null.
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
    """The number of replicas or the like at the path; None where there is nothing that can be one."""
    value = get(obj, path, None) if path else None
    if not isinstance(value, int) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
        return None
    return value


def put(obj: Mapping[str, Any], path: Path, value: Any) -> Json:
    """The object with the value at the path; whatever stands in the way of the path gives way to objects."""
    key, *rest = keys_of(path)
    if not rest:
        return {**obj, key: value}
    child = obj.get(key)
    return {**obj, key: put(child if isinstance(child, dict) else {}, tuple(rest), value)}


def without(obj: Json, path: Path) -> Json:
    """The object without the field; the same object where it has none."""
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


#: Objects of more fields are data rather than structure: to walk them takes long, and they are equal or not as a whole.
_WIDE = 64


def equal(a: Any, b: Any, depth: int = 3) -> bool:
    """Equality of JSON values. The top is walked, since what two versions of an object share they share as it is; below,
    encoding both is several times faster than walking them where they are alike."""
    if a is b:
        return True
    if isinstance(a, str):
        return bool(a == b)
    if isinstance(a, dict) and isinstance(b, dict) and len(a) > _WIDE:
        if a != b:
            return False
        # Python takes 1 and true and 1.0 for the same; of texts there is nothing more to ask.
        if set(map(type, a.values())) == {str}:
            return True
    elif depth and isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(value, b[key], depth - 1) for key, value in a.items())
    encoded = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in (a, b)]
    return encoded[0] == encoded[1] or same(a, b)
