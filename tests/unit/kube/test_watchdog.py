"""An event loop that does not turn is noticed from outside, with the place where it is held."""

import asyncio
import logging
import threading
import time

import pytest

from argosy.kube.watchdog import Watchdog
from tests.harness.eventually import eventually


def hold_the_loop(seconds: float) -> None:
    password = "hunter2"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert password


async def test_a_loop_that_is_held_is_told_with_its_stack_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    held: list[float] = []
    with caplog.at_level(logging.ERROR), Watchdog(held.append, patience=0.5):
        hold_the_loop(1.5)
        await eventually(lambda: held)
    assert held[0] > 0.5
    stacks = [record.getMessage() for record in caplog.records if "has been blocked" in record.getMessage()]
    assert len(stacks) == 1, "once for each time"
    assert "hold_the_loop" in stacks[0]
    assert "hunter2" not in stacks[0].replace('password = "hunter2"', ""), "where it is, not what it holds"


async def test_a_loop_that_turns_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    held: list[float] = []
    threads = threading.active_count()
    with caplog.at_level(logging.ERROR), Watchdog(held.append, patience=2.0):
        for _ in range(20):
            await asyncio.sleep(0.01)
    assert not held
    assert not caplog.records
    assert threading.active_count() == threads
