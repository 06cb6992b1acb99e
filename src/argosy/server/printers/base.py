"""The printer of a kind: columns, and the cells of one object. Also formatting shared by all printers."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from argosy.kube.conditions import find
from argosy.kube.selectors import SelectorError, from_label_selector
from argosy.kube.timestamps import parse

__all__ = [
    "AGE",
    "NAME",
    "NONE",
    "UNKNOWN",
    "UNSET",
    "Column",
    "Object",
    "Printer",
    "age",
    "at",
    "columns",
    "condition",
    "human_duration",
    "labels",
    "limited",
    "name",
    "printer",
    "seconds",
    "selector",
    "since",
]

Object = dict[str, Any]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"


class Column(msgspec.Struct, frozen=True):
    """A column definition of a Table; priority 1 is shown with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


NAME = Column("Name", format="name", description="Name of the object; unique within its namespace.")
AGE = Column("Age", description="Time since the object was created.")


class Printer(msgspec.Struct, frozen=True):
    """`cells(object, now)` gives one value a column; `now` is in seconds since 1970."""

    columns: Sequence[Column]
    cells: Callable[[Object, float], list[Any]]
    #: Conditions of the row, for clients that grey out finished objects.
    conditions: Callable[[Object], list[Object]] | None = None


def columns(*names: str, wide: Sequence[str] = ()) -> list[Column]:
    """Column definitions by name; `Desired:integer` says a type other than string."""
    return [_column(text, 0) for text in names] + [_column(text, 1) for text in wide]


def _column(text: str, priority: int) -> Column:
    title, _, kind = text.partition(":")
    if title == "Name":
        return msgspec.structs.replace(NAME, priority=priority)
    return AGE if title == "Age" else Column(title, kind or "string", priority=priority)


def printer(shown: Sequence[str], cells: Callable[[Object], list[Any]], *, wide: Sequence[str] = ()) -> Printer:
    """A printer of `Name`, what `cells` gives, with `Age` filled in where it is among the columns."""
    definitions = columns(*shown, wide=wide)
    aged = [index for index, column in enumerate(definitions) if column is AGE]

    def row(obj: Object, now: float) -> list[Any]:
        values = [name(obj), *cells(obj)]
        for index in aged:
            values.insert(index, age(obj, now))
        return values

    return Printer(definitions, row)


def name(obj: Object) -> str:
    return str(at(obj, "metadata", "name") or "")


def at(obj: Any, *path: str) -> Any:
    """The value at a path; None where anything on the way is missing."""
    for step in path:
        if type(obj) is not dict:
            return None
        obj = obj.get(step)
    return obj


def condition(obj: Object, kind: str) -> Object | None:
    """The status condition of a type."""
    return find(at(obj, "status", "conditions"), kind)


def labels(mapping: Any) -> str:
    """Labels as `a=b,c=d`, sorted."""
    if not mapping:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(mapping.items()))


def selector(value: Any) -> str:
    """A LabelSelector object as text."""
    try:
        return str(from_label_selector(value)) or NONE
    except SelectorError:
        return "<error>"


def limited(items: Sequence[str], most: int, *, empty: str) -> str:
    """The first few, and how many more there are."""
    if not items:
        return empty
    text = ",".join(items[:most])
    return f"{text} + {len(items) - most} more..." if len(items) > most else text


def seconds(timestamp: Any) -> float | None:
    """A Kubernetes time as seconds since 1970; None when it is missing or unreadable."""
    moment = parse(timestamp) if isinstance(timestamp, str) else None
    return None if moment is None else moment.timestamp()


def since(timestamp: Any, now: float) -> str:
    """How long ago, as kubectl writes it: `35s`, `4m10s`, `3d2h`."""
    then = seconds(timestamp)
    return UNKNOWN if then is None else human_duration(now - then)


def age(obj: Object, now: float) -> str:
    return since((obj.get("metadata") or {}).get("creationTimestamp"), now)


def human_duration(length: float) -> str:
    """A length of time in at most two units, coarser the longer it is."""
    total = int(length)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 120:
        return f"{total}s"
    minutes, hours = total // 60, total // 3600
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
