"""Predicates: what may be said of an object's fields, to be evaluated here or written as CEL for an admission policy.

Both forms answer alike for any object of its kind's schema. A field that is null counts as absent.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any as Value
from typing import Final

import msgspec

__all__ = [
    "EACH",
    "All",
    "Any",
    "Below",
    "Has",
    "Is",
    "Lacks",
    "Like",
    "Not",
    "Other",
    "Path",
    "Predicate",
    "Unlike",
    "annotation",
    "at",
    "cel",
    "holds",
    "label",
    "literal",
]

#: A step to all items of a list.
EACH: Final = "[]"
Path = tuple[str, ...]
Json = dict[str, Value]


def at(text: str) -> Path:
    """A path as it is written in documents, such as `spec.tolerations[].key`."""
    return tuple(text.replace(EACH, f".{EACH}").split("."))


def annotation(key: str) -> Path:
    return ("metadata", "annotations", key)


def label(key: str) -> Path:
    return ("metadata", "labels", key)


class Has(msgspec.Struct, frozen=True):
    """There is something at the path."""

    path: Path


class Lacks(msgspec.Struct, frozen=True):
    """Something at the path has no such field."""

    path: Path
    field: str


class Is(msgspec.Struct, frozen=True):
    """Something at the path is one of these values."""

    path: Path
    values: tuple[str | bool, ...]


class Other(msgspec.Struct, frozen=True):
    """Something at the path is none of these values."""

    path: Path
    values: tuple[str | bool, ...]


class Like(msgspec.Struct, frozen=True):
    """A text at the path is as the pattern says from its beginning to its end (RE2, and the same in Python)."""

    path: Path
    pattern: str


class Unlike(msgspec.Struct, frozen=True):
    """A text at the path is not as the pattern says."""

    path: Path
    pattern: str


class Below(msgspec.Struct, frozen=True):
    """A number at the path is less than this one."""

    path: Path
    number: int


class Not(msgspec.Struct, frozen=True):
    what: "Predicate"


class All(msgspec.Struct, frozen=True):
    parts: tuple["Predicate", ...]


class Any(msgspec.Struct, frozen=True):
    parts: tuple["Predicate", ...]


Predicate = Has | Lacks | Is | Other | Like | Unlike | Below | Not | All | Any


# Evaluated.


def holds(predicate: Predicate, obj: Json) -> bool:
    match predicate:
        case All(parts):
            return all(holds(part, obj) for part in parts)
        case Any(parts):
            return any(holds(part, obj) for part in parts)
        case Not(what):
            return not holds(what, obj)
        case Has(path):
            return any(True for _ in _values(obj, path))
        case Lacks(path, field):
            return any(isinstance(value, dict) and value.get(field) is None for value in _values(obj, path))
        case Is(path, values):
            return any(_among(value, values) for value in _values(obj, path))
        case Other(path, values):
            return any(not _among(value, values) for value in _values(obj, path))
        case Like(path, pattern):
            texts = (value for value in _values(obj, path) if isinstance(value, str))
            return any(re.fullmatch(pattern, text, re.ASCII) is not None for text in texts)
        case Unlike(path, pattern):
            texts = (value for value in _values(obj, path) if isinstance(value, str))
            return any(re.fullmatch(pattern, text, re.ASCII) is None for text in texts)
        case Below(path, number):
            return any(isinstance(value, int) and value < number for value in _values(obj, path))


def _values(value: Value, path: Path) -> Iterator[Value]:
    if value is None:
        return
    if not path:
        yield value
    elif path[0] == EACH:
        for item in value if isinstance(value, list) else ():
            yield from _values(item, path[1:])
    elif isinstance(value, dict):
        yield from _values(value.get(path[0]), path[1:])


def _among(value: Value, values: tuple[str | bool, ...]) -> bool:
    return any(value == each and type(value) is type(each) for each in values)


# Written as CEL.

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Not allowed as the name of a field in CEL.
_RESERVED: Final = frozenset(
    {"namespace", "in", "as", "import", "package", "function", "const", "true", "false", "null"}
)


def cel(predicate: Predicate) -> str:
    """The expression, on the variable `object`."""
    match predicate:
        case All(parts):
            return " && ".join(cel(part) for part in parts)
        case Any(parts):
            return "(" + " || ".join(cel(part) for part in parts) + ")"
        case Not(what):
            return f"!({cel(what)})"
        case Has(path):
            return _on("object", path, lambda value: "true")
        case Lacks(path, field):
            return _on("object", path, lambda value: f"!{value}{_select(field)}.hasValue()")
        case Is(path, values):
            return _on("object", path, lambda value: f"{value} in {_list(values)}")
        case Other(path, values):
            return _on("object", path, lambda value: f"!({value} in {_list(values)})")
        case Like(path, pattern):
            return _on("object", path, lambda value: f"{value}.matches({literal(f'^({pattern})$')})")
        case Unlike(path, pattern):
            return _on("object", path, lambda value: f"!{value}.matches({literal(f'^({pattern})$')})")
        case Below(path, number):
            return _on("object", path, lambda value: f"{value} < {number}")


def literal(value: str | bool) -> str:
    """As CEL writes it; a text may contain anything."""
    if isinstance(value, bool):
        return "true" if value else "false"
    escaped = "".join(c if c.isascii() and c.isprintable() and c not in "\\'\"" else f"\\U{ord(c):08x}" for c in value)
    return f"'{escaped}'"


def _list(values: tuple[str | bool, ...]) -> str:
    return "[" + ", ".join(literal(value) for value in values) + "]"


def _on(value: str, path: Path, test: Callable[[str], str], depth: int = 0) -> str:
    """Whether the test holds for something at the path of a value."""
    found = value
    for position, step in enumerate(path):
        if step == EACH:
            item = f"e{depth}"
            inner = _on(item, path[position + 1 :], test, depth + 1)
            return f"{_list_of(found, optional=position > 0)}.exists({item}, {inner})"
        found += _select(step)
    if not path:
        return test(value)
    tested = test(f"{found}.value()")
    return f"{found}.hasValue()" if tested == "true" else f"({found}.hasValue() && {tested})"


def _list_of(found: str, *, optional: bool) -> str:
    return f"{found}.orValue([])" if optional else found


def _select(field: str) -> str:
    return f".?{field}" if _IDENTIFIER.fullmatch(field) and field not in _RESERVED else f"[?{literal(field)}]"
