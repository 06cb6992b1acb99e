"""Pace: a loop's keys that come round again and again are slowed down, and a run that does not end is noticed.

A reconcile that wakes itself, by its own writes or over others of its loop, would take a core for itself and never say so. A key
whose next run is due right after its last one, many times in a row, is *spinning*: from then on it waits in between, longer each
time, until it comes to rest by itself. Whether its runs changed anything makes no difference: two states that take turns are no
progress either. Runs are ordered by level, not by event, so one that comes later loses nothing.

Belongs to one loop (`run_workers`), on one event loop; runs no task.
"""

import logging
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from argosy.kube import clock
from argosy.kube.backoff import Backoff

__all__ = ["Pace"]

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

#: So many runs in a row, each due within `GAP` seconds of the last one's end, are no coincidence. A busy key may come so far, too
#: (a roll-out of thousands of pods), so that it is slowed down to no more than what costs nothing: two runs a second.
RUNS = 1000
GAP = 0.1
SLOWER = Backoff(base=0.01, cap=0.5, jitter=0.0)
#: Longer than any reconcile takes that waits for others with time-outs.
PATIENCE = 300.0
#: Keys are remembered for so long after their last run.
_MEMORY = 5.0


class Pace(Generic[K]):
    def __init__(
        self,
        loop: str = "a loop",
        on_spin: Callable[[], None] = lambda: None,
        *,
        runs: int = RUNS,
        slower: Backoff = SLOWER,
        patience: float = PATIENCE,
    ):
        """`on_spin` is called for each run that was put off."""
        self._loop = loop
        self._on_spin = on_spin
        self._limit = runs
        self._slower = slower
        self._patience = patience
        #: The runs under way, and when they began, oldest first.
        self._running: dict[K, float] = {}
        #: Key -> when its last run ended, how many there were in a row, and when it may run again. The latest is last.
        self._rested: dict[K, tuple[float, int, float]] = {}
        self._told: set[K] = set()

    def begin(self, key: K, waited: float = 0.0) -> float:
        """A run has been due for `waited` seconds: 0 when it begins now, else the seconds it has to wait first."""
        now = clock.monotonic()
        ended, row, allowed = self._rested.get(key, (now, 0, 0.0))
        if now < allowed:
            return allowed - now
        # A key that had to wait for others was due all the while: many that spin are no rest for each other.
        if row and now - waited - max(ended, allowed) > GAP:
            self._rest(key)
        self._running[key] = now
        return 0.0

    def end(self, key: K) -> None:
        self._running.pop(key, None)
        now = clock.monotonic()
        _, row, _ = self._rested.pop(key, (0.0, 0, 0.0))
        row += 1
        wait = self._slower.delay(row - self._limit)
        self._rested[key] = now, row, now + wait
        if wait:
            self._spins(key)
        while (oldest := next(iter(self._rested))) != key and now - self._rested[oldest][0] > _MEMORY:
            self._rest(oldest)

    def problem(self) -> str | None:
        """What a health check is to say: the run that has not ended for too long."""
        for key, began in self._running.items():
            seconds = clock.monotonic() - began
            return f"{self._loop} has been at {key} for {seconds:.0f} s" if seconds > self._patience else None
        return None

    def _spins(self, key: K) -> None:
        self._on_spin()
        if key not in self._told:
            self._told.add(key)
            log.error("%s: %s came up %d times without a rest; it is slowed down", self._loop, key, self._limit)

    def _rest(self, key: K) -> None:
        self._rested.pop(key, None)
        if key in self._told:
            self._told.discard(key)
            log.info("%s: %s has come to rest", self._loop, key)
