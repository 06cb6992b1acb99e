import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import duration
from argosy.kube.duration import DurationError


@pytest.mark.parametrize(
    ("text", "formatted", "nanoseconds"),
    [
        ("1m30s", "1m30s", 90 * 10**9),
        ("1.5h", "1h30m0s", 5400 * 10**9),
        ("0", "0s", 0),
        ("-1s", "-1s", -(10**9)),
        ("1h1h", "2h0m0s", 7200 * 10**9),
        (".5s", "500ms", 5 * 10**8),
        ("5.s", "5s", 5 * 10**9),
        ("1µs", "1µs", 1000),
        ("1500ns", "1.5µs", 1500),
        ("1ms500us", "1.5ms", 1_500_000),
        ("72h3m0.5s", "72h3m0.5s", 259_380_500_000_000),
        ("2562047h47m16.854775807s", "2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_reads_and_writes_what_go_does(text: str, formatted: str, nanoseconds: int) -> None:
    assert duration.parse(text) == nanoseconds
    assert duration.format(nanoseconds) == formatted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("1", 'time: missing unit in duration "1"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("-", 'time: invalid duration "-"'),
        ("1m-1s", 'time: unknown unit "m-" in duration "1m-1s"'),
        ("9999999999999h", 'time: invalid duration "9999999999999h"'),
        ("2562047h47m16.854775808s", 'time: invalid duration "2562047h47m16.854775808s"'),
    ],
)
def test_errors_are_gos(text: str, message: str) -> None:
    with pytest.raises(DurationError) as error:
        duration.parse(text)
    assert str(error.value) == message


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_every_duration_survives_writing_and_reading(nanoseconds: int) -> None:
    assert duration.parse(duration.format(nanoseconds)) == nanoseconds


def test_seconds_are_for_python() -> None:
    assert duration.seconds("1m0.25s") == 60.25
