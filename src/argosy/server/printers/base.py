"""What a printer of a kind is: columns, and the cells of one object. Formatting shared by all of them is here too."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

__all__ = ["AGE", "NAME", "UNSET", "Column", "Printer", "age", "human_duration", "seconds", "since"]

Object = dict[str, Any]

#: What kubectl shows where a time is unknown.
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


def seconds(timestamp: Any) -> float | None:
    """A Kubernetes time as seconds since 1970; None when it is missing or unreadable."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


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
