"""Room: how a server behaves on a full disk.

When hardly any space is left, only those writes are accepted that free some (deletions, and what lets one finish) or that are
small and keep others alive (leases). Meanwhile /readyz fails, and history is dropped at once instead of after ten minutes, so
that deletions really free space. When there is room again, on the disk or inside the store's file, all writes are accepted
again.

Runs one task, ended with the server.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from argosy.server.storage.base import Storage, StorageError, StorageFull

__all__ = ["Room"]

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Seconds between checks for room.
PERIOD = 1.0
_SCARCE = "hardly any room is left on the disk"


class Room:
    def __init__(self, storage: Storage):
        self._storage = storage
        self._full = asyncio.Event()

    @property
    def full(self) -> bool:
        """Also if no write was refused yet: leases are still renewed, and others could not write for long."""
        return self._full.is_set() or self._storage.scarce

    def problem(self) -> str | None:
        """For /readyz."""
        return "the disk is full: only deletions are accepted until there is room" if self.full else None

    async def write(self, write: Callable[[], Awaitable[T]], *, urgent: bool) -> T:
        """Do a write. Raises StorageFull, without trying if the disk is known to be full and the write is not urgent."""
        if not urgent and self.full:
            self._ran_out(_SCARCE)
            raise StorageFull("the disk is full")
        try:
            return await write()
        except StorageFull as error:
            self._ran_out(str(error))
            if not urgent:
                raise
        if await self._storage.give_up_reserve():
            log.warning("the store's reserve was given up for a deletion")
            try:
                return await write()
            except StorageFull:
                pass  # others took it
        await self._storage.relieve()
        return await write()

    def _ran_out(self, why: str) -> None:
        if not self._full.is_set():
            log.error("%s; until there is more only deletions are accepted", why)
            self._full.set()

    async def run(self) -> None:
        """Notice when room becomes scarce, free some, and notice when there is enough."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PERIOD):
                    await self._full.wait()
            if not self.full:
                continue
            self._ran_out(_SCARCE)
            try:
                if await self._storage.relieve():
                    log.info("there is room again: all writes are accepted")
                    self._full.clear()
                    continue
            except StorageError as error:
                log.debug("history could not be forgotten: %s", error)
            await asyncio.sleep(PERIOD)
