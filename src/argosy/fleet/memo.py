"""Memo: a bounded cache of answers, by question."""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

__all__ = ["Memo"]

T = TypeVar("T")

_UNKNOWN: Final = object()


class Memo:
    """Drops everything when it is full: frequent questions are soon cached again."""

    __slots__ = ("_answers", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: dict[Hashable, Any] = {}

    def recall(self, question: Hashable, answer: Callable[[], T]) -> T:
        known: Any = self._answers.get(question, _UNKNOWN)
        if known is _UNKNOWN:
            known = answer()
            if len(self._answers) >= self._most:
                self._answers.clear()
            self._answers[question] = known
        found: T = known
        return found
