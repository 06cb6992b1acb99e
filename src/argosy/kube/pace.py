"""Pace: slows down a loop's keys that are reconciled again and again, and notices a reconcile that does not end.

A reconcile that wakes itself, by its own writes or through other keys of its loop, would use a whole core unnoticed. A key
whose next reconcile is due right after its last one, many times in a row, is *spinning*: from then on it waits in between,
longer each time, until it stops by itself. It does not matter whether the reconciles changed anything: alternating between two
states is no progress either. Reconciling is level-triggered, so a later run loses nothing.

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

#: So many runs in a row, each due within `GAP` seconds of the last one's end, count as spinning. A busy key may come this far,
#: too (a roll-out of thousands of pods), so it is slowed down only to a harmless rate: two runs a second.
RUNS = 1000
GAP = 0.1
SLOWER = Backoff(base=0.01, cap=0.5, jitter=0.0)
#: Longer than any reconcile takes that waits with timeouts.
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
        """`on_spin` is called for each run that was delayed."""
        self._loop = loop
        self._on_spin = on_spin
        self._limit = runs
        self._slower = slower
        self._patience = patience
        #: The runs in progress, and when they began, oldest first.
        self._running: dict[K, float] = {}
        #: Key -> the end of its last run, the number of runs in a row, and when it may run again. The latest is last.
        self._rested: dict[K, tuple[float, int, float]] = {}
        self._told: set[K] = set()

    def begin(self, key: K, waited: float = 0.0) -> float:
        """A run has been due for `waited` seconds: 0 if it may begin now, else the seconds it must wait."""
        now = clock.monotonic()
        ended, row, allowed = self._rested.get(key, (now, 0, 0.0))
        if now < allowed:
            return allowed - now
        # The time a key waited for other keys does not count as rest: many spinning keys are no rest for each other.
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
        """The problem for the health check: a run that has not ended for too long."""
        for key, began in self._running.items():
            seconds = clock.monotonic() - began
            return f"{self._loop} has been at {key} for {seconds:.0f} s" if seconds > self._patience else None
        return None

    def _spins(self, key: K) -> None:
        self._on_spin()
        if key not in self._told:
            self._told.add(key)
            log.error("%s: %s was reconciled %d times in a row; it is slowed down", self._loop, key, self._limit)

    def _rest(self, key: K) -> None:
        self._rested.pop(key, None)
        if key in self._told:
            self._told.discard(key)
            log.info("%s: %s is no longer spinning", self._loop, key)
