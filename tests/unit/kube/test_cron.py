"""Cron schedules: when they are due, by the clocks of their zone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.cron import ScheduleError, Times, parse

MONDAY = datetime(2026, 3, 2, 10, 20, 30, tzinfo=UTC)


def due(schedule: str, after: datetime = MONDAY, zone: str = "", count: int = 1) -> list[str]:
    found, moment = [], after
    for _ in range(count):
        moment = parse(schedule, zone).after(moment)  # type: ignore[assignment]
        found.append(moment.isoformat(timespec="minutes").removesuffix("+00:00"))
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", ["2026-03-02T10:21", "2026-03-02T10:22"]),
        ("*/15 * * * *", ["2026-03-02T10:30", "2026-03-02T10:45"]),
        ("20 10 * * *", ["2026-03-03T10:20", "2026-03-04T10:20"]),
        ("0 2-4/2 * * *", ["2026-03-03T02:00", "2026-03-03T04:00"]),
        ("5/20 10 * * *", ["2026-03-02T10:25", "2026-03-02T10:45"]),
        ("0 0 1 JAN,feb *", ["2027-01-01T00:00", "2027-02-01T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00"]),
        ("@hourly", ["2026-03-02T11:00", "2026-03-02T12:00"]),
        ("@weekly", ["2026-03-08T00:00", "2026-03-15T00:00"]),
        ("@yearly", ["2027-01-01T00:00"]),
        # A day of the month and one of the week: either suffices; with a star both must match.
        ("0 0 4 * wed,fri", ["2026-03-04T00:00", "2026-03-06T00:00", "2026-03-11T00:00"]),
        ("0 0 5 * 1", ["2026-03-05T00:00", "2026-03-09T00:00"]),
        ("0 0 */1 * sun", ["2026-03-08T00:00"]),
        ("@every 90s", ["2026-03-02T10:22", "2026-03-02T10:23"]),
    ],
)
def test_schedules_are_due_at(schedule: str, expected: list[str]) -> None:
    assert due(schedule, count=len(expected)) == expected


def test_times_are_those_of_the_zone() -> None:
    assert due("0 9 * * *", zone="Asia/Kolkata") == ["2026-03-03T03:30"]
    assert due("TZ=Asia/Tokyo 0 9 * * *") == ["2026-03-03T00:00"]


def test_a_zone_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ScheduleError, match="provided bad location Nowhere"):
        parse("TZ=Nowhere 0 0 * * *")


def test_a_field_without_numbers_is_never_due() -> None:
    assert parse(", * * * *").after(MONDAY) is None


def test_a_time_that_clocks_skip_does_not_occur_and_one_they_repeat_occurs_twice() -> None:
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert due("30 2 * * *", spring, "Europe/Berlin", 2) == ["2026-03-30T00:30", "2026-03-31T00:30"]
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert due("30 2 * * *", autumn, "Europe/Berlin", 3) == [
        "2026-10-25T00:30",
        "2026-10-25T01:30",
        "2026-10-26T01:30",
    ]


def test_what_is_never_due_is_none() -> None:
    assert parse("0 0 31 2 *").after(MONDAY) is None


@pytest.mark.parametrize("schedule", ["", "* * * *", "60 * * * *", "* * 0 * *", "@never", "5-1 * * * *", "*/0 * * * *"])
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ScheduleError):
        parse(schedule)


FIELD = st.sampled_from(["*", "*/7", "3", "1,5", "2-6"])


@given(
    st.tuples(FIELD, FIELD, FIELD, FIELD, FIELD),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    st.sampled_from(["", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_the_next_time_matches_and_none_in_between_does(fields: tuple[str, ...], naive: datetime, zone: str) -> None:
    schedule, start = parse(" ".join(fields), zone), naive.replace(tzinfo=UTC)
    assert isinstance(schedule, Times)

    def matches(moment: datetime) -> bool:
        local = moment.astimezone(schedule.zone)
        of_month, of_week = local.day in schedule.days, local.isoweekday() % 7 in schedule.weekdays
        day = of_month and of_week if schedule.any_day else of_month or of_week
        return (
            local.minute in schedule.minutes and local.hour in schedule.hours and local.month in schedule.months and day
        )

    found = schedule.after(start)
    assert found is not None
    assert found > start
    assert matches(found)
    before = [found - timedelta(minutes=each) for each in range(1, 600)]
    assert not any(matches(each) for each in before if each > start)
