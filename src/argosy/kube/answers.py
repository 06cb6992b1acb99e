"""Answers: how much of a server's answer is read, and how long a server that asks for it (429) is left alone. No I/O.

A server is not trusted to stop: whatever it sends is cut off where no honest answer reaches, before it is held in memory.
"""

import random
import time
from collections.abc import Callable

import msgspec

__all__ = ["DEFAULT", "AnswerLimits", "Hold"]

MiB = 1024 * 1024


class AnswerLimits(msgspec.Struct, frozen=True):
    """In bytes. Above what etcd takes (1.5 MiB by default, an object as JSON being a few times that), below what hurts."""

    #: One object, one event of a watch, and every other answer that is no list.
    object: int = 8 * MiB
    #: One page of a list. To read it holds the event loop: some 15 ms for so much.
    page: int = 32 * MiB


DEFAULT = AnswerLimits()


class Hold:
    """One server's wish to be left alone: while it lasts, nobody who shares this asks for anything."""

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`longest` is what a wish counts for at most, in seconds; 0 heeds none."""
        self._longest = longest
        self._clock = clock
        self._until = 0.0

    @property
    def heeded(self) -> bool:
        return self._longest > 0

    def ask(self, seconds: float) -> None:
        # Not all of those who wait come back at the same moment.
        wanted = min(seconds, self._longest) * (1 + 0.1 * random.random())
        self._until = max(self._until, self._clock() + wanted)

    def remaining(self) -> float:
        """Seconds until it may be asked again."""
        return max(0.0, self._until - self._clock())
