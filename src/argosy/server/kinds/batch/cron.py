"""Cron schedules as Kubernetes reads them: five fields, names of months and days, `@daily` and its kin, `@every`.

Only checks whether a schedule is valid, with the parser's own message if not; it does not compute when it fires.
"""

import re
from typing import Final

from argosy.kube import duration

__all__ = ["ScheduleError", "check"]


class ScheduleError(ValueError):
    """The error in a schedule, with kube-apiserver's message."""


class _Field:
    def __init__(self, low: int, high: int, names: tuple[str, ...] = ()) -> None:
        self.low, self.high = low, high
        self.names = {name: low + i for i, name in enumerate(names)}


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY: Final = "@every "


def check(schedule: str) -> None:
    """Raise ScheduleError if the schedule cannot be parsed. A leading TZ= or CRON_TZ= is skipped."""
    spec = schedule
    if spec.startswith(("TZ=", "CRON_TZ=")):
        spec = spec.partition(" ")[2].strip()
    if spec.startswith("@"):
        return _descriptor(spec)
    fields = spec.split()
    if len(fields) != len(_FIELDS):
        listed = " ".join(fields)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{listed}]")
    for text, field in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if part:
                _range(part, field)
    return None


def _descriptor(spec: str) -> None:
    if spec in _DESCRIPTORS:
        return
    if not spec.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {spec}")
    try:
        duration.parse(spec[len(_EVERY) :])
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration {spec}: {error}") from error


def _range(expression: str, field: _Field) -> None:
    """One of: number, number-number, *, ?, each with an optional /step."""
    range_and_step = expression.split("/")
    low_and_high = range_and_step[0].split("-")
    single = len(low_and_high) == 1
    if low_and_high[0] in ("*", "?"):
        start, end = field.low, field.high
    else:
        start = _number_or_name(low_and_high[0], field)
        if len(low_and_high) > 2:
            raise ScheduleError(f"too many hyphens: {expression}")
        end = start if single else _number_or_name(low_and_high[1], field)
    if len(range_and_step) > 2:
        raise ScheduleError(f"too many slashes: {expression}")
    step = 1
    if len(range_and_step) == 2:
        step = _number(range_and_step[1])
        if single:
            end = field.high
    if start < field.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({field.low}): {expression}")
    if end > field.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({field.high}): {expression}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {expression}")


def _number_or_name(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if not re.fullmatch("[+-]?[0-9]{1,18}", text, re.ASCII):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
