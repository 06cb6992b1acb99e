"""Durations as Go writes them ("1m30s", "1.5h"), held as whole nanoseconds.

Kubernetes' metav1.Duration fields are such strings. Not for clocks or dates.
"""

import re
from typing import Final

__all__ = ["DurationError", "format", "parse", "seconds"]

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5 micro sign
    "μs": 10**3,  # U+03BC Greek letter mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MAX: Final = 2**63 - 1
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)


class DurationError(ValueError):
    """The text is no Go duration; the message is Go's own."""


def parse(text: str) -> int:
    """Nanoseconds of a Go duration such as "1h", "-1.5s" or "1m0.5s"."""
    sign, rest = 1, text
    if rest[:1] in ("+", "-"):
        sign = -1 if rest[0] == "-" else 1
        rest = rest[1:]
    if rest == "0":
        return 0
    if not rest or len(rest) > 256:
        raise _invalid(text)
    total = 0
    while rest:
        part = _PART.match(rest)
        assert part is not None  # every piece of the pattern may be empty
        whole, fraction, unit = part.group(1), part.group(2) or "", part.group(3)
        if not whole and not fraction:
            raise _invalid(text)
        if not unit:
            raise DurationError(f'time: missing unit in duration "{text}"')
        scale = _UNITS.get(unit)
        if scale is None:
            raise DurationError(f'time: unknown unit "{unit}" in duration "{text}"')
        total += int(whole or "0") * scale
        if fraction:
            total += int(fraction) * scale // 10 ** len(fraction)
        rest = rest[part.end() :]
    if total > _MAX + (sign < 0):
        raise _invalid(text)
    return sign * total


def seconds(text: str) -> float:
    """A Go duration as seconds, for the places where Python wants a float."""
    return parse(text) / 1e9


def format(nanoseconds: int) -> str:
    """The text Go's Duration.String() gives: "0s", "1.5ms", "1m30s", "72h3m0.5s"."""
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    amount = abs(nanoseconds)
    if amount < 10**3:
        return f"{sign}{amount}ns"
    if amount < 10**6:
        return f"{sign}{_decimal(amount, 10**3)}µs"
    if amount < 10**9:
        return f"{sign}{_decimal(amount, 10**6)}ms"
    minutes, rest = divmod(amount, 60 * 10**9)
    text = f"{_decimal(rest, 10**9)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{minutes}m{text}"
        if hours:
            text = f"{hours}h{text}"
    return sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    width = len(str(unit)) - 1
    return f"{whole}.{rest:0{width}d}".rstrip("0")


def _invalid(text: str) -> DurationError:
    return DurationError(f'time: invalid duration "{text}"')
