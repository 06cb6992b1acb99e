"""Times as Kubernetes writes and reads them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.timestamps import micro_timestamp, now, parse, timestamp

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)


def test_whole_seconds_or_microseconds_in_utc():
    assert timestamp(NOON) == "2026-01-31T12:00:00Z"
    assert micro_timestamp(NOON) == "2026-01-31T12:00:00.123456Z"
    assert micro_timestamp(NOON.replace(microsecond=0)) == "2026-01-31T12:00:00.000000Z"
    assert timestamp(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-01-31T12:00:00Z"
    assert timestamp(datetime(7, 1, 1, tzinfo=UTC)) == "0007-01-01T00:00:00Z"


def test_now_is_now():
    moment = parse(now())
    assert moment is not None
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00.123456Z",
        "2026-01-31T14:00:00.123456+02:00",
        "2026-01-31T12:00:00.123456789Z",
    ],
)
def test_any_zone_reads_as_utc(text):
    assert parse(text) == NOON


@pytest.mark.parametrize(
    "text",
    [None, "", "soon", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "0001-01-01T00:00:00+14:00"],
)
def test_what_is_no_time_with_its_zone_is_none(text):
    assert parse(text) is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_was_written_reads_back(moment):
    assert parse(micro_timestamp(moment)) == moment
    assert parse(timestamp(moment)) == moment.replace(microsecond=0)
