"""Supervision: the tasks of a process by name, so that a task that dies is noticed.

`async with Supervisor() as tasks` owns every task started through it: leaving cancels them all and waits for them. A task that
ends by itself is a failure unless it was started as one that may end; one with `restart` is started again after a back-off.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any

from argosy.kube.backoff import Backoff

__all__ = ["Supervisor"]

log = logging.getLogger(__name__)

BACKOFF = Backoff(base=1.0, cap=60.0)


class Supervisor:
    def __init__(self, *, backoff: Backoff = BACKOFF, recovery: float = 10.0) -> None:
        #: Name of each task that is dead or waiting for its restart -> why it died.
        self.failures: dict[str, str] = {}
        #: How often each task was started again.
        self.restarts: dict[str, int] = {}
        self._backoff = backoff
        #: A restarted task that has run this long counts as healthy, and its back-off starts over.
        self._recovery = recovery
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Cancelled by name and not ended yet; leaving waits for them too.
        self._ending: set[asyncio.Task[None]] = set()

    def start(self, name: str, run: Callable[[], Awaitable[None]], *, restart: bool = False) -> asyncio.Task[None]:
        """Run a task that is meant to run until it is cancelled. `restart` runs it again when it dies."""
        return self._add(name, self._forever(name, run) if restart else self._watched(name, run))

    def start_once(self, name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run a task that may end; only an exception is a failure."""
        return self._add(name, self._finite(name, run))

    def _add(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if name in self._tasks:
            coroutine.close()
            raise ValueError(f"a task named {name!r} is already running")
        task = asyncio.create_task(coroutine, name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._tasks.pop(name, None) if self._tasks.get(name) is done else None)
        return task

    async def stop(self, name: str) -> None:
        """Cancel one task and wait for its end; its failure, if any, is forgotten."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self.failures.pop(name, None)
        self.restarts.pop(name, None)

    def cancel(self, name: str) -> None:
        """Cancel one task without waiting for its end; another of that name may start at once."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self.failures.pop(name, None)
        self.restarts.pop(name, None)

    def healthy(self) -> bool:
        """Whether every task runs."""
        return not self.failures

    def names(self) -> list[str]:
        return sorted(self._tasks)

    async def _watched(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
            self._died(name, "it ended by itself")
        except Exception as error:
            self._died(name, f"{type(error).__name__}: {error}", error)

    async def _finite(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except Exception as error:
            self._died(name, f"{type(error).__name__}: {error}", error)

    async def _forever(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        died = 0
        while True:
            started = loop.time()
            # A task that has run for a while is healthy again; until then its last failure stands.
            recovered = loop.call_later(self._recovery, self.failures.pop, name, None)
            try:
                await self._watched(name, run)
            finally:
                recovered.cancel()
            died = 1 if loop.time() - started >= self._recovery else died + 1
            await asyncio.sleep(self._backoff.delay(died))
            self.restarts[name] = self.restarts.get(name, 0) + 1

    def _died(self, name: str, why: str, error: Exception | None = None) -> None:
        log.error("the task %s died: %s", name, why, exc_info=error)
        self.failures[name] = why

    async def __aenter__(self) -> "Supervisor":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel everything and wait for its end."""
        # A task may start another while it is being cancelled.
        while tasks := list(self._tasks.values()):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            # The callbacks that remove ended tasks run in the next iteration of the event loop.
            await asyncio.sleep(0)
