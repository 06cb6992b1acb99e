"""Disk: what a server has stored survives it. Of what it was about to store, some is there and some is not."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from argosy.server.storage.base import Change, Encode, OnBatch, OnCommit, Record, StorageFull
from argosy.server.storage.memory import MemoryStorage

__all__ = ["Disk", "DiskStorage"]

#: Seconds that a write takes.
_SYNC = (0.0002, 0.004)
#: A server that starts anew skips this many versions: some may have been given out and lost.
_SKIPPED = 1000


class Disk(MemoryStorage):
    """The durable part, which outlives the process whose it is."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        #: From a backup: what was deleted since then is there again.
        self.restored = False
        #: Called with each change, as it is written.
        self.observers: list[Callable[[Change], None]] = []

    def skip(self) -> None:
        self._version += _SKIPPED

    def copy(self, under: str = "") -> "Disk":
        """A backup, of this moment: of everything, or of what is under a key."""
        other = Disk()
        other._version = other._compacted = self._version
        other._keys = [key for key in self._keys if key.startswith(under)]
        other._records = {key: self._records[key] for key in other._keys}
        return other

    def become(self, backup: "Disk") -> None:
        """Hold what the backup holds. Versions go on from here, and nobody resumes from before."""
        self._records, self._keys = dict(backup._records), list(backup._keys)
        self.restored = True
        self._changes.clear()
        self._version += _SKIPPED
        self._compacted = self._version

    def _commit(self, key: str, previous: Record | None, encode: Encode, *, deleted: bool) -> Record:
        record = super()._commit(key, previous, encode, deleted=deleted)
        for observe in self.observers:
            observe(Change(key, record.version, record.value, deleted, previous))
        return record

    @property
    def records(self) -> dict[str, Record]:
        return self._records


class DiskStorage:
    """A Storage for one process. A crash in the middle of a write leaves it done or not done, and nobody was told."""

    def __init__(self, disk: Disk, chance: Random):
        self._disk = disk
        self._chance = chance
        self._turn = asyncio.Lock()
        self._changes: list[Change] = []
        self._on_commit: OnCommit | None = None

    @property
    def version(self) -> int:
        return self._disk.version

    @property
    def compacted(self) -> int:
        return self._disk.compacted

    async def open(self, on_commit: OnCommit, on_batch: OnBatch) -> Sequence[Record]:
        self._on_commit = on_commit
        self._disk.skip()
        return await self._disk.open(self._changes.extend, on_batch)

    async def close(self) -> None:
        async with self._turn:
            self._on_commit = None

    async def create(self, key: str, encode: Encode) -> Record:
        return await self._write(lambda: self._disk.create(key, encode))

    async def replace(self, key: str, expected: int, encode: Encode) -> Record:
        return await self._write(lambda: self._disk.replace(key, expected, encode))

    async def delete(self, key: str, expected: int, encode: Encode) -> Record:
        return await self._write(lambda: self._disk.delete(key, expected, encode))

    async def _write(self, write: Callable[[], Awaitable[Record]]) -> Record:
        # Who loses interest does not stop it half way.
        return await asyncio.shield(asyncio.ensure_future(self._synced(write)))

    async def _synced(self, write: Callable[[], Awaitable[Record]]) -> Record:
        async with self._turn:
            if self._disk.full:
                raise StorageFull("the disk is full")
            early, seconds = self._chance.random() < 0.5, self._chance.uniform(*_SYNC)
            if not early:
                await asyncio.sleep(seconds)
            record = await write()
            if early:
                await asyncio.sleep(seconds)
            changes = tuple(self._changes)
            self._changes.clear()
            if self._on_commit is not None:
                self._on_commit(changes)
            return record

    async def get(self, key: str) -> Record | None:
        return await self._disk.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int | None = None) -> Sequence[Record]:
        return await self._disk.range(prefix, after=after, limit=limit, at=at)

    async def history(self, prefix: str, since: int, until: int, *, most: int = 0, size: int = 0) -> Sequence[Change]:
        return await self._disk.history(prefix, since, until, most=most, size=size)

    async def compact(self, version: int) -> None:
        await self._disk.compact(version)

    @property
    def scarce(self) -> bool:
        return False

    async def give_up_reserve(self) -> bool:
        return False

    async def relieve(self) -> bool:
        return not self._disk.full
