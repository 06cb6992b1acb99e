"""Ages: which version the store had a while ago.

An object does not say when it was last written, but its version does: the store's version is recorded with the time again and
again. The time before the first record is unknown.
"""

from collections import deque

__all__ = ["Ages"]


class Ages:
    def __init__(self, seconds: float):
        self._seconds = seconds
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, now: float, version: int) -> int:
        """Record the current version. Returns the newest recorded one that is `seconds` old, each only once; 0: none."""
        self._marks.append((now, version))
        old = 0
        while self._marks and self._marks[0][0] <= now - self._seconds:
            old = self._marks.popleft()[1]
        return old
