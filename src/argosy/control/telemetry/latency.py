"""Latency marks: when a user's write of an object was seen, to measure how long its propagation takes.

Kept only while a write is in progress. Propagation and status return have separate marks.
"""

from collections.abc import Callable, Hashable

from prometheus_client import Histogram

from argosy.kube import clock

__all__ = ["LatencyMarks"]

#: Objects that never finish (paused, no policy) must not fill the memory.
_MOST = 100_000


class LatencyMarks:
    def __init__(self, histogram: Histogram, clock: Callable[[], float] = clock.monotonic):
        self._histogram = histogram
        self._clock = clock
        self._since: dict[Hashable, tuple[int, float]] = {}

    def started(self, key: Hashable, generation: int) -> None:
        """A write of this generation was seen; an older one in progress is no longer measured."""
        known = self._since.get(key)
        if known is not None and known[0] >= generation:
            return
        if len(self._since) < _MOST:
            self._since[key] = (generation, self._clock())

    def finished(self, key: Hashable, generation: int, label: str) -> None:
        """This generation has arrived."""
        known = self._since.get(key)
        if known is not None and known[0] <= generation:
            del self._since[key]
            self._histogram.labels(label).observe(self._clock() - known[1])

    def drop(self, key: Hashable) -> None:
        self._since.pop(key, None)
