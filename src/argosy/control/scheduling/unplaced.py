"""Unplaced: objects that found no cluster, or not enough room. They are tried again when there may be more room.

Room changes with every pod of a busy fleet. So an object is woken once for all changes until it is decided again.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Unplaced"]

K = TypeVar("K", bound=Hashable)


class Unplaced(Generic[K]):
    def __init__(self) -> None:
        self._waiting: dict[K, None] = {}
        #: Those of them that were not woken since their last decision began.
        self._asleep: dict[K, None] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._waiting

    def begin(self, key: K) -> None:
        """A decision begins. It sees all changes so far, and may miss later ones."""
        if key in self._waiting:
            self._asleep[key] = None

    def add(self, key: K) -> None:
        """It was decided, and waits."""
        if key not in self._waiting:
            self._waiting[key] = self._asleep[key] = None

    def discard(self, key: K) -> None:
        """It is placed, or gone."""
        self._waiting.pop(key, None)
        self._asleep.pop(key, None)

    def wake(self) -> list[K]:
        """Those to try again: a change may have made room."""
        woken, self._asleep = list(self._asleep), {}
        return woken
