"""Back-off and token bucket: bounds, growth, order."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.backoff import Backoff
from argosy.kube.ratelimit import TokenBucket


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_delay_stays_between_the_jittered_base_and_the_cap(failures: int, drawn: float) -> None:
    backoff = Backoff(base=0.5, cap=30.0, jitter=0.4)
    assert 0.5 * 0.6 <= backoff.delay(failures, lambda: drawn) <= 30.0


def test_delay_doubles_until_the_cap_and_nothing_failed_means_no_delay() -> None:
    backoff = Backoff(base=1.0, cap=10.0, jitter=0.0)
    assert [backoff.delay(n) for n in range(7)] == [0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_bucket_gives_its_burst_and_then_its_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=2.0, burst=3, clock=clock)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]
    clock.now = 1.0
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]
    clock.now = 100.0
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]


def test_reservations_queue_up_behind_each_other() -> None:
    bucket = TokenBucket(rate=10.0, burst=1, clock=Clock())
    assert [round(bucket.reserve(), 6) for _ in range(3)] == [0.0, 0.1, 0.2]


async def test_a_cancelled_waiter_gives_its_place_back() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=1.0, burst=1, clock=clock)
    await bucket.acquire()
    waiter = asyncio.create_task(bucket.acquire())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert bucket.reserve() == pytest.approx(1.0)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_never_fills_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="token bucket"):
        TokenBucket(rate, burst)
