"""Expiry: events that nobody wrote to for an hour are deleted, as kube-apiserver lets them expire.

When an object was last written is told by its version: once a minute the store's version is noted with the time. After a restart
nothing is known of the time before, so events then live an hour longer. Runs one task, ended with the server.
"""

import asyncio
import time
from collections import deque

from argosy.server.app import Server
from argosy.server.watchcache.store import Store

__all__ = ["EventExpiry", "start_event_expiry"]

EVENT_SECONDS = 3600.0
PERIOD = 60.0


class EventExpiry:
    def __init__(self, store: Store, seconds: float = EVENT_SECONDS):
        self._store = store
        self._seconds = seconds
        self._marks: deque[tuple[float, int]] = deque()

    async def sweep(self, now: float) -> int:
        """Delete what has expired at `now` (on the monotonic clock); how many that were."""
        self._marks.append((now, self._store.version))
        limit = 0
        while self._marks and self._marks[0][0] <= now - self._seconds:
            limit = self._marks.popleft()[1]
        expired = [e for e in self._store.table("core/events").entries.values() if e.version <= limit]
        for entry in expired:
            await self._store.discard(entry)
        return len(expired)

    async def run(self) -> None:
        while True:
            await self.sweep(time.monotonic())
            await asyncio.sleep(PERIOD)


def start_event_expiry(server: Server) -> None:
    server.run("event expiry", EventExpiry(server.store).run())
