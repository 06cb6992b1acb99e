"""The clock of one process: the world's time, and a time of day that may be wrong, run fast, and be set."""

import asyncio

from argosy.kube.clock import Clock

__all__ = ["MIDNIGHT", "ProcessClock"]

#: When the world begins: 2026-01-01T00:00:00Z.
MIDNIGHT = 1_767_225_600.0


class ProcessClock(Clock):
    def __init__(self, loop: asyncio.AbstractEventLoop, ahead: float = 0.0, drift: float = 0.0):
        """`ahead` is in seconds, `drift` in seconds a second."""
        self._loop = loop
        self.ahead = ahead
        self.drift = drift
        #: Seconds that the machine has slept, and since when it does now.
        self._slept = 0.0
        self._asleep: float | None = None

    def fall_asleep(self) -> None:
        """The whole machine: only `elapsed` and the time of day go on."""
        if self._asleep is None:
            self._asleep = self._loop.time()

    def wake_up(self) -> None:
        if self._asleep is not None:
            self._slept += self._loop.time() - self._asleep
            self._asleep = None

    def monotonic(self) -> float:
        return self._loop.time() - self._slept

    def elapsed(self) -> float:
        return self._loop.time()

    def time(self) -> float:
        return MIDNIGHT + self._loop.time() * (1 + self.drift) + self.ahead

    def thread_time(self) -> float:
        """Computing takes no time here."""
        return 0.0
