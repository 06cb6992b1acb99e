"""Memory: answers to questions that were asked before, so many of them."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

__all__ = ["Memory"]

T = TypeVar("T")


class Memory:
    """Begins anew when it is full: what is asked often is soon there again."""

    __slots__ = ("_answers", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: dict[Hashable, Any] = {}

    def recall(self, question: Hashable, answer: Callable[[], T]) -> T:
        if question in self._answers:
            known: T = self._answers[question]
            return known
        found = answer()
        if len(self._answers) >= self._most:
            self._answers.clear()
        self._answers[question] = found
        return found
