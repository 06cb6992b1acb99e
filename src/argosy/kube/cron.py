"""Cron schedules as Kubernetes reads them: five fields, names of months and days, `@daily` and its kin, `@every`.

If a day of the month and a day of the week are both given, either suffices. Times that a clock skips in spring do not occur,
and those that it repeats in autumn occur twice. Errors are worded as the parser of Kubernetes words them.
"""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from argosy.kube import duration

__all__ = ["Every", "Schedule", "ScheduleError", "Times", "parse"]


class ScheduleError(ValueError):
    """The error in a schedule, with kube-apiserver's message."""


class _Field:
    def __init__(self, low: int, high: int, names: tuple[str, ...] = ()) -> None:
        self.low, self.high = low, high
        self.names = {name: low + i for i, name in enumerate(names)}


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
#: How far ahead a time is looked for: February 29th may be eight years away, but Kubernetes gives up after five, too.
_YEARS: Final = 5


class Times(msgspec.Struct, frozen=True):
    """Minutes at which something is due, by the clocks of a zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: Whether the day of the month, or that of the week, is a star: then both have to match.
    any_day: bool
    zone: tzinfo = UTC

    def after(self, moment: datetime) -> datetime | None:
        """The first one later than this moment; None if there is none in the next years."""
        if not all((self.minutes, self.hours, self.days, self.months, self.weekdays)):
            return None  # an empty list is a schedule, which never comes
        start = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = start.astimezone(self.zone).date()
        last = date(day.year + _YEARS, 12, 31)
        while day <= last:
            if day.month not in self.months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
                continue
            if self._is_on(day):
                found = self._on(day, start)
                if found is not None:
                    return found
            day += timedelta(days=1)
        return None

    def _is_on(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month and of_week if self.any_day else of_month or of_week

    def _on(self, day: date, start: datetime) -> datetime | None:
        """The first one of a day that is not before `start`: by absolute time, so that clocks may jump."""
        # Around midnight, so that no day is cut short by a jump.
        first = datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC) - timedelta(hours=2)
        moment = max(first, start)
        while (local := moment.astimezone(self.zone)).date() <= day:
            if local.date() < day or local.hour not in self.hours:
                moment += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                moment += timedelta(minutes=1)
            else:
                return moment
        return None


class Every(msgspec.Struct, frozen=True):
    """`@every`: so long after the time before."""

    seconds: int

    def after(self, moment: datetime) -> datetime | None:
        return moment.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)


Schedule = Times | Every


def parse(schedule: str, zone: str = "") -> Schedule:
    """Raises ScheduleError if the schedule cannot be parsed. A leading TZ= or CRON_TZ= counts before `zone`."""
    spec, where = schedule, zone
    if spec.startswith(("TZ=", "CRON_TZ=")):
        named, _, spec = spec.partition(" ")
        where, spec = named.partition("=")[2], spec.strip()
    if spec.startswith(_EVERY):
        return _every(spec)
    if spec.startswith("@"):
        if spec not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {spec}")
        spec = _DESCRIPTORS[spec]
    fields = spec.split()
    if len(fields) != len(_FIELDS):
        listed = " ".join(fields)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{listed}]")
    sets, stars = [], []
    for text, field in zip(fields, _FIELDS, strict=True):
        parts = [_range(part, field) for part in text.split(",") if part]
        sets.append(frozenset(number for numbers, _ in parts for number in numbers))
        stars.append(any(star for _, star in parts))
    minutes, hours, days, months, weekdays = sets
    return Times(minutes, hours, days, months, weekdays, any_day=stars[2] or stars[4], zone=_zone(where))


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        raise ScheduleError(f"provided bad location {name}: unknown time zone {name}") from None


def _every(spec: str) -> Every:
    try:
        length = duration.parse(spec[len(_EVERY) :])
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration {spec}: {error}") from error
    return Every(max(1, length // 10**9))


def _range(expression: str, field: _Field) -> tuple[range, bool]:
    """One of: number, number-number, *, ?, each with an optional /step. Also whether it is a star for every value."""
    range_and_step = expression.split("/")
    low_and_high = range_and_step[0].split("-")
    single = len(low_and_high) == 1
    star = low_and_high[0] in ("*", "?")
    if star:
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
    return range(start, end + 1, step), star and step == 1


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
