"""How the work of a function grows with the size of what it is given."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["assert_linear"]

T = TypeVar("T")
#: Four times the size is four times the work when linear, sixteen times when quadratic.
_STEP = 4
_BOUND = 10


def assert_linear(work: Callable[[T], object], make: Callable[[int], T], size: int) -> None:
    """Fails where `work` takes much more than four times the processor's time for `make(4 * size)` than for `make(size)`."""
    small, large = make(size), make(_STEP * size)
    for _ in range(4):  # a busy machine may spoil a measurement, never make a slow one fast four times
        before, after = _seconds(work, small), _seconds(work, large)
        if after < _BOUND * max(before, 0.002):
            return
    raise AssertionError(
        f"{_STEP} times the size took {after / before:.1f} times as long ({before:.4f} s, {after:.4f} s)"
    )


def _seconds(work: Callable[[T], object], value: T) -> float:
    gc.disable()  # what it takes depends on everything else that is in memory
    try:
        start = time.thread_time()
        work(value)
        return time.thread_time() - start
    finally:
        gc.enable()
