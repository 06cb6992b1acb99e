"""Tasks: background loops that run as long as the server. One that ends earlier fails /livez."""

import asyncio
import contextlib
from collections.abc import Awaitable

from argosy.server.health import Check, Health

__all__ = ["Tasks"]


class Tasks:
    def __init__(self, health: Health):
        self._health = health
        self._tasks: list[asyncio.Task[None]] = []

    def run(self, name: str, work: Awaitable[None], problem: Check = lambda: None) -> None:
        """Run a loop until `stop`. If it dies or reports a problem, /livez fails."""
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        task.set_name(name)
        self._tasks.append(task)
        self._health.add(name, live=lambda: f"{name} ended" if task.done() else problem())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
