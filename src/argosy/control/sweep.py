"""Sweep: looking through all objects for those a change of some clusters concerns.

A few milliseconds at a time, so that the event loop stays free; clusters that change while a sweep is under way share the
next one, so that a flapping fleet costs one sweep after the other and no more.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator

__all__ = ["Sweep"]

_SLICE = 0.005


class Sweep:
    def __init__(self, visit: Callable[[Collection[str]], Iterator[None]], pause: float):
        self._visit = visit
        self._pause = pause
        self._clusters: set[str] = set()
        self._asked = asyncio.Event()

    def ask(self, cluster: str) -> None:
        self._clusters.add(cluster)
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._asked.wait()
            self._asked.clear()
            clusters, self._clusters = self._clusters, set()
            until = loop.time() + _SLICE
            for _ in self._visit(clusters):
                if loop.time() >= until:
                    await asyncio.sleep(0)
                    until = loop.time() + _SLICE
            await asyncio.sleep(self._pause)
