"""Compaction: keeps about ten minutes of history, enough for any client that comes back, and bounded on disk.

Runs one task, ended with the server.
"""

import asyncio
import logging

from argosy.kube import clock
from argosy.server.lifecycle.ages import Ages
from argosy.server.watchcache.store import Store

__all__ = ["HistoryCompaction"]

log = logging.getLogger(__name__)

HISTORY_SECONDS = 600.0
PERIOD = 30.0


class HistoryCompaction:
    def __init__(self, store: Store):
        self._store = store
        self._ages = Ages(HISTORY_SECONDS)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            old = self._ages.note(clock.monotonic(), self._store.version)
            if not old:
                continue
            try:
                await self._store.compact(old)
            except Exception:
                log.exception("history could not be compacted; trying again later")
