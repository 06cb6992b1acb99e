"""What a request tells of the time for which it held the loop."""

import asyncio
import time

import pytest

from argosy.server.http.holding import Steps


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_the_longest_step_is_told() -> None:
    async def work() -> str:
        compute(0.01)
        await asyncio.sleep(0)
        compute(0.05)
        await asyncio.sleep(0.05)
        return "done"

    steps = Steps(work())
    assert await steps == "done"
    assert 0.05 <= steps.longest < 0.1  # waiting is not holding


async def test_errors_and_cancellation_pass_through() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Steps(broken())
    cleaned = False

    async def slow() -> None:
        nonlocal cleaned
        try:
            await asyncio.sleep(60)
        finally:
            cleaned = True

    async def waiting() -> None:
        await Steps(slow())

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned
