"""Gauge: one page of memory shared by a test and the process it kills.

What the process wrote there stays when it is killed, so the test knows for certain what was under way; what the test wrote there
tells the process when to die. Killing itself at the very moment is the one way to hit a commit of a millisecond.
"""

import mmap
import os
import signal
import threading
import time
from pathlib import Path

__all__ = ["COMMIT", "COMPACT", "MERGE", "SEND", "START", "Gauge"]

#: What can be under way.
COMMIT, SEND, MERGE, COMPACT, START = range(5)
_ARMED, _COUNTDOWN, _FRACTION, _HOLD = 0, 1, 2, 3
#: The first of a row of cells, one for each of them.
_BEGUN, _ENDED, _MICROSECONDS = 8, 16, 24
_CELLS = 32


class Gauge:
    def __init__(self, path: Path):
        if not path.exists():
            path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("r+b") as file:
            self._cells = memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast("q")
        self._dying: int | None = None

    # The test's side.

    def reset(self) -> None:
        for cell in range(_CELLS):
            self._cells[cell] = 0

    def arm(self, what: int, countdown: int, fraction: float) -> None:
        """Die in the countdown-th of these from now, when this fraction of its usual time is over."""
        self._cells[_FRACTION] = int(fraction * 1000)
        self._cells[_COUNTDOWN] = countdown
        self._cells[_ARMED] = what + 1

    def usual(self, what: int, seconds: float) -> None:
        """Say how long it takes, of something that happens once in a process."""
        self._cells[_MICROSECONDS + what] = int(seconds * 1e6)

    def under_way(self, what: int) -> int:
        return self._cells[_BEGUN + what] - self._cells[_ENDED + what]

    @property
    def longest_hold(self) -> float:
        """Seconds the event loop was held at worst."""
        return self._cells[_HOLD] / 1e6

    # The process's side.

    def held(self, seconds: float) -> None:
        self._cells[_HOLD] = max(self._cells[_HOLD], int(seconds * 1e6))

    def begin(self, what: int) -> float:
        self._cells[_BEGUN + what] += 1
        if self._cells[_ARMED] == what + 1:
            self._cells[_COUNTDOWN] -= 1
            if self._cells[_COUNTDOWN] <= 0:
                self._cells[_ARMED] = 0
                self._dying = what
                usual = self._cells[_MICROSECONDS + what] / 1e6
                threading.Thread(target=_die, args=(usual * self._cells[_FRACTION] / 1000,), daemon=True).start()
        return time.perf_counter()

    def end(self, what: int, begun: float) -> None:
        if self._dying == what:
            # The thread that kills may have to wait for the interpreter; until it comes, this has not ended.
            time.sleep(60)
        took = int((time.perf_counter() - begun) * 1e6)
        usual = self._cells[_MICROSECONDS + what]
        self._cells[_MICROSECONDS + what] = (usual * 7 + took) // 8 if usual else took
        self._cells[_ENDED + what] += 1


def _die(after: float) -> None:
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGKILL)
