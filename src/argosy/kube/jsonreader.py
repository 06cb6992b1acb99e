"""JSON as Kubernetes reads it: untrusted bytes to values, with bounds.

Like Go's decoder it accepts text that is not UTF-8 and unpaired surrogates (each becomes U+FFFD), and integers beyond 64 bits
become floats; numbers beyond those are errors. The time is linear in the size of the text.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import orjson

__all__ = [
    "MAX_CONTAINERS",
    "MAX_DEPTH",
    "MAX_DUPLICATES",
    "TOO_DEEP",
    "TOO_MANY",
    "JsonError",
    "duplicates",
    "is_deep",
    "may_be_deep",
    "read",
]

#: Deep enough for any real object (a CRD with deeply nested schemas has about 60 levels), far from any recursion limit.
MAX_DEPTH: Final = 200
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
#: Objects and arrays in one text. Parsing and freeing a million of them blocks everything else for a tenth of a second; the
#: largest existing CRDs have 20,000.
MAX_CONTAINERS: Final = 200_000
TOO_MANY: Final = f"more than {MAX_CONTAINERS} objects and arrays"
#: Duplicate fields that are reported; Kubernetes stops at as many.
MAX_DUPLICATES: Final = 100

_STRING: Final = re.compile(rb'"[^"]*"')
_FIELD: Final = re.compile(rb'"\s*:')
#: Texts of no more bytes are read at once.
_SHORT: Final = 64 * 1024
_LARGE: Final = re.compile(rb"[0-9]{19}")
#: An escape: a pair of surrogates, half of one, or any other.
_ESCAPE: Final = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_INT64: Final = 2**63


class JsonError(ValueError):
    """The text is not JSON, is too deep, or has too many parts."""


def read(text: bytes) -> Any:
    """The value in a text. Raises JsonError."""
    if _has_too_many(text):
        raise JsonError(TOO_MANY)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        value = _forgiven(text, error)
    if may_be_deep(text) and is_deep(value):
        raise JsonError(TOO_DEEP)
    if _LARGE.search(text):
        value = _with_floats(value)
    return value


def _has_too_many(text: bytes) -> bool:
    if text.count(b"{") + text.count(b"[") <= MAX_CONTAINERS:
        return False
    # Brackets inside strings do not count. Pairs of backslashes are removed first: an odd one left escapes the next character.
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    found = at = 0
    for string in _STRING.finditer(bare):
        found += bare.count(b"{", at, string.start()) + bare.count(b"[", at, string.start())
        at = string.end()
    return found + bare.count(b"{", at) + bare.count(b"[", at) > MAX_CONTAINERS


def _forgiven(text: bytes, error: ValueError) -> Any:
    """The value of a text with invalid characters but valid structure."""
    mended = text.decode(errors="replace").encode()
    mended = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], mended)
    if mended != text:
        try:
            return orjson.loads(mended)
        except orjson.JSONDecodeError:
            pass
    raise JsonError(str(error)) from None


def may_be_deep(text: bytes) -> bool:
    """Whether `is_deep` need be called."""
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH


def is_deep(value: Any) -> bool:
    """Whether anything lies deeper than MAX_DEPTH."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _with_floats(value: Any) -> Any:
    """With integers beyond 64 bits as floats; changes the value."""
    root = [value]
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if inner.__class__ is int and inner >= _INT64:
                node[key] = float(inner)
            elif isinstance(inner, dict | list):
                waiting.append(inner)
    return root[0]


class _Pairs(list[tuple[str, Any]]):
    """An object's fields as they were written, repetitions included."""


def duplicates(text: bytes, value: Any) -> list[str]:
    """The paths of fields that occur twice in this value's text, the first ones of many. Raises JsonError."""
    # Encoded again, the value has one quote and colon per field: if the text has no more, no field occurs twice.
    if _fields(text) == _fields(orjson.dumps(value)) and b"\\u0022" not in text:
        return []
    try:
        tree = json.loads(text.decode(errors="replace"), object_pairs_hook=_Pairs)
    except RecursionError:  # in a field that a later one replaced
        raise JsonError(TOO_DEEP) from None
    return list(dict.fromkeys(islice(_repeated(tree), MAX_DUPLICATES)))


def _fields(text: bytes) -> int:
    if len(text) <= _SHORT:
        return len(_FIELD.findall(text))
    return sum(1 for _ in _FIELD.finditer(text))  # one by one: finding all at once would block the interpreter


def _repeated(tree: Any) -> Iterator[str]:
    """Paths of duplicates in the order of the text. Only these paths are formatted."""
    path: list[str] = []
    #: The state of each level: its remaining children, and the names seen.
    levels = [_children(tree)]
    names: list[dict[str, int]] = [{}]
    while levels:
        for piece, key, child in levels[-1]:
            if key is not None:
                names[-1][key] = times = names[-1].get(key, 0) + 1
                if times == 2:
                    yield "".join([*path, piece]).removeprefix(".")
            if isinstance(child, list) and child:
                path.append(piece)
                levels.append(_children(child))
                names.append({})
                break
        else:
            levels.pop()
            names.pop()
            if path:
                path.pop()


def _children(node: Any) -> Iterator[tuple[str, str | None, Any]]:
    """The path pieces, keys and values of a list or an object; a list has no keys."""
    if isinstance(node, _Pairs):
        return ((f".{key}", key, child) for key, child in node)
    if isinstance(node, list):
        return ((f"[{index}]", None, child) for index, child in enumerate(node))
    return iter(())
