"""Expiry: events not written to for an hour are deleted, as kube-apiserver lets them expire.

After a restart earlier times are unknown (`ages`), so events then live an hour longer. Runs one task, ended with the
server.
"""

import asyncio

from argosy.kube import clock
from argosy.server.lifecycle.ages import Ages
from argosy.server.watchcache.store import Store

__all__ = ["EventExpiry"]

EVENT_SECONDS = 3600.0
PERIOD = 60.0


class EventExpiry:
    def __init__(self, store: Store, seconds: float = EVENT_SECONDS):
        self._store = store
        self._ages = Ages(seconds)

    async def sweep(self, now: float) -> int:
        """Delete what has expired at `now` (on the monotonic clock); returns how many."""
        limit = self._ages.note(now, self._store.version)
        expired = [e for e in self._store.table("core/events").entries.values() if e.version <= limit]
        for entry in expired:
            await self._store.discard(entry)
        return len(expired)

    async def run(self) -> None:
        while True:
            await self.sweep(clock.monotonic())
            await asyncio.sleep(PERIOD)
