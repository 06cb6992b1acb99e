"""Waiting for a condition, never for a time."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds until something that must come true counts as failed: for a busy machine, and free where it comes true.
PATIENCE = 60.0
#: No patience is longer; for runs in which something is expected to fail.
LONGEST = math.inf


async def eventually(probe: Callable[[], T | Awaitable[T]], timeout: float = PATIENCE, why: str = "") -> T:
    """The probe's first true value. An error in the probe counts as "not yet"; the last one is shown on failure."""
    timeout = min(timeout, LONGEST)
    deadline = _now() + timeout
    last: Any = None
    while True:
        try:
            value = probe()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            last = value
        except Exception as error:
            last = error
        if _now() > deadline:
            raise AssertionError(f"{why or 'the condition'} did not come true within {timeout} s; last seen: {last!r}")
        await asyncio.sleep(0.01)


async def holds(probe: Callable[[], bool | Awaitable[bool]], seconds: float) -> None:
    """The probe stays true for a while: for what must *not* happen."""
    deadline = _now() + seconds
    while _now() < deadline:
        value = probe()
        if inspect.isawaitable(value):
            value = await value
        assert value, "it happened although it must not"
        await asyncio.sleep(0.02)


def _now() -> float:
    """The loop's time, which is virtual in some tests."""
    return asyncio.get_running_loop().time()
