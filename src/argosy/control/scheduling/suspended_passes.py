"""Suspended passes: a pass that needs a remote plugin's answer is aborted, and started again when the answer is there.

The question is asked in a task of its own. The next pass sees the state of that time and uses the answers it has. So a plugin
that hangs blocks no worker, and an object that is changed or deleted meanwhile does not wait for it. Answers are kept until a
pass is completed.

Owns one task per object with a question; `close` ends them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Hashable
from typing import Generic, NamedTuple, TypeVar

from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.package_plugins import Question, failed, question_of

__all__ = ["Pass", "SuspendedPasses"]

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
log = logging.getLogger(__name__)

#: Answers kept per object: more than one decision has questions, and few even if the object changes all the time.
_KEPT = 64


class Pass(NamedTuple, Generic[T]):
    """A completed pass. `unanswered` says that some plugin did not answer for all clusters: ask again later."""

    result: T
    unanswered: bool


class _Questions:
    """The questions about one object, and their answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[Question, Reply]] = []
        self.pending: Question | None = None
        self.task: asyncio.Task[None] | None = None

    def ask(self, question: Question, task: "asyncio.Task[None]") -> None:
        """Replaces the pending question."""
        if self.task is not None:
            self.task.cancel()
        self.pending, self.task = question, task

    def answered(self, question: Question, reply: Reply) -> None:
        self.answers.append((question, reply))
        del self.answers[:-_KEPT]
        self.pending = self.task = None

    def answer_to(self, question: Question) -> Reply | None:
        return next((reply for asked, reply in self.answers if asked.covers(question)), None)


class SuspendedPasses(Generic[K]):
    def __init__(self, answer: Callable[[Question], Awaitable[Reply]], wake: Callable[[K], None]):
        self._answer = answer
        self._wake = wake
        self._questions: dict[K, _Questions] = {}

    def __len__(self) -> int:
        """Objects that have a pending question, or an answer not used yet."""
        return len(self._questions)

    def run(self, key: K, steps: Generator[Ask, Reply, T]) -> Pass[T] | None:
        """The completed pass, or None if it waits for an answer, which wakes the key."""
        asked = self._questions.get(key)
        unanswered = False
        try:
            ask = next(steps)
            while True:
                question = question_of(ask)
                reply = asked.answer_to(question) if asked is not None else None
                if reply is None:
                    steps.close()
                    self._ask(key, question)
                    return None
                unanswered = unanswered or bool(reply.error or reply.errors)
                ask = steps.send(reply)
        except StopIteration as done:
            self.forget(key)
            return Pass(done.value, unanswered)

    def forget(self, key: K) -> None:
        """The answers are not needed any more."""
        asked = self._questions.pop(key, None)
        if asked is not None and asked.task is not None:
            asked.task.cancel()

    def plugin_changed(self, plugin: str) -> list[K]:
        """Drops the plugin's answers and its pending questions. Returns the keys that need another pass."""
        concerned = [
            key
            for key, asked in self._questions.items()
            if any(question.plugin == plugin for question, _ in asked.answers)
            or (asked.pending and asked.pending.plugin == plugin)
        ]
        for key in concerned:
            self.forget(key)
        return concerned

    async def close(self) -> None:
        tasks = [asked.task for asked in self._questions.values() if asked.task is not None]
        for key in list(self._questions):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, key: K, question: Question) -> None:
        asked = self._questions.setdefault(key, _Questions())
        if asked.task is not None and asked.pending is not None and asked.pending.covers(question):
            return
        asked.ask(
            question, asyncio.create_task(self._ask_and_wake(key, asked, question), name=f"ask {question.plugin}")
        )

    async def _ask_and_wake(self, key: K, asked: _Questions, question: Question) -> None:
        try:
            reply = await self._answer(question)
        except Exception as error:
            log.exception("asking %s failed", question.plugin)
            reply = failed(question, f"asking it failed: {type(error).__name__}")
        asked.answered(question, reply)
        self._wake(key)
