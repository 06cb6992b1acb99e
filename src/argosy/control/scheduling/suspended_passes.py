"""Suspended passes: a pass that needs a remote plugin's answer is given up and started anew when the answer is there.

The question goes out in a task of its own; the next pass works on what is true by that time, and takes the answers it has. So
a plugin that hangs holds no worker, and an object that is changed or deleted meanwhile does not wait for it. Answers are kept
until a pass came to its end.

Owns one task an object with a question; `close` ends them.
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

#: Answers kept about one object: more than one decision has questions, and few where the object changes all the time.
_KEPT = 64


class Pass(NamedTuple, Generic[T]):
    """A pass that came to its end. `unanswered` says that some plugin could not tell all it was asked: ask again later."""

    result: T
    unanswered: bool


class _Questions:
    """What was asked about one object, and answered."""

    def __init__(self) -> None:
        self.answers: list[tuple[Question, Reply]] = []
        self.pending: Question | None = None
        self.task: asyncio.Task[None] | None = None

    def ask(self, question: Question, task: "asyncio.Task[None]") -> None:
        """This question is out, in place of an earlier one."""
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
        """Objects that have a question out, or an answer they have not used yet."""
        return len(self._questions)

    def run(self, key: K, steps: Generator[Ask, Reply, T]) -> Pass[T] | None:
        """The pass, or None where it waits for an answer: the key is woken when that is there."""
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
        """Nobody wants to know any more."""
        asked = self._questions.pop(key, None)
        if asked is not None and asked.task is not None:
            asked.task.cancel()

    def plugin_changed(self, plugin: str) -> list[K]:
        """What it said counts no more, and what it is being asked it need not say. The keys are to be passed over anew."""
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
