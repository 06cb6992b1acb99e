"""The clock of a process: everything in `kube`, `server`, `control` and `sim` takes its time from here.

Which clock that is belongs to the process that asks, as the running event loop does: a context variable, which every task
inherits. A real process has the system's clock. Simulated processes (`tests/world`) have clocks of their own, on virtual time.
"""

import time as system
from contextvars import ContextVar
from datetime import UTC, datetime

__all__ = ["SYSTEM", "Clock", "elapsed", "monotonic", "now", "set_clock", "thread_time", "time"]


class Clock:
    """The system's. Others inherit from it."""

    def monotonic(self) -> float:
        """Seconds since some moment. It never goes back."""
        return system.monotonic()

    def elapsed(self) -> float:
        """Seconds since some moment, those included in which the whole machine slept (where the system counts them)."""
        if hasattr(system, "CLOCK_BOOTTIME"):
            return system.clock_gettime(system.CLOCK_BOOTTIME)
        return system.monotonic()

    def time(self) -> float:
        """The time of day: seconds since 1970. It may go back when somebody sets it."""
        return system.time()

    def thread_time(self) -> float:
        """Seconds that this thread has been computing."""
        return system.thread_time()


SYSTEM = Clock()
_clock: ContextVar[Clock] = ContextVar("clock", default=SYSTEM)


def set_clock(clock: Clock) -> None:
    """What is started in this context from now on goes by that clock."""
    _clock.set(clock)


def monotonic() -> float:
    return _clock.get().monotonic()


def elapsed() -> float:
    return _clock.get().elapsed()


def time() -> float:
    return _clock.get().time()


def thread_time() -> float:
    return _clock.get().thread_time()


def now() -> datetime:
    """The time of day, in UTC."""
    return datetime.fromtimestamp(_clock.get().time(), UTC)
