"""Storage in memory: for tests, simulated members and throw-away control planes. Nothing survives the process.

Versions start from the clock (microseconds), so that a restarted server never repeats a version that a client may still
remember.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from itertools import islice

from argosy.kube import clock
from argosy.server.storage.base import Change, Changed, Compacted, Encode, Exists, OnBatch, OnCommit, Record
from argosy.server.storage.past import undo

__all__ = ["MemoryStorage"]


class MemoryStorage:
    def __init__(self, *, history: int = 20_000):
        self._version = int(clock.time() * 1_000_000)
        self._compacted = self._version
        self._records: dict[str, Record] = {}
        self._keys: list[str] = []
        self._changes: deque[Change] = deque()
        self._history = history
        #: Of an open store.
        self._on_commit: OnCommit | None = None

    @property
    def version(self) -> int:
        return self._version

    @property
    def compacted(self) -> int:
        return self._compacted

    async def open(self, on_commit: OnCommit, on_batch: OnBatch) -> Sequence[Record]:
        self._on_commit = on_commit
        return [self._records[key] for key in self._keys]

    async def close(self) -> None:
        self._on_commit = None

    async def create(self, key: str, encode: Encode) -> Record:
        if key in self._records:
            raise Exists(key)
        return self._commit(key, None, encode, deleted=False)

    async def replace(self, key: str, expected: int, encode: Encode) -> Record:
        return self._commit(key, self._expect(key, expected), encode, deleted=False)

    async def delete(self, key: str, expected: int, encode: Encode) -> Record:
        return self._commit(key, self._expect(key, expected), encode, deleted=True)

    @property
    def scarce(self) -> bool:
        return False

    async def give_up_reserve(self) -> bool:
        return False

    async def relieve(self) -> bool:
        return True

    def _expect(self, key: str, expected: int) -> Record:
        record = self._records.get(key)
        if record is None or record.version != expected:
            raise Changed(record.version if record else None)
        return record

    def _commit(self, key: str, previous: Record | None, encode: Encode, *, deleted: bool) -> Record:
        version = self._version + 1
        value = encode(version)
        self._version = version
        record = Record(key, version, value)
        if deleted:
            del self._records[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            self._records[key] = record
            if previous is None:
                insort(self._keys, key)
        change = Change(key, version, value, deleted, previous)
        self._changes.append(change)
        if len(self._changes) > self._history:
            self._compacted = self._changes.popleft().version
        if self._on_commit is not None:
            self._on_commit((change,))
        return record

    async def get(self, key: str) -> Record | None:
        return self._records.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int | None = None) -> Sequence[Record]:
        start = bisect_right(self._keys, after) if after else bisect_left(self._keys, prefix)
        stop = bisect_left(self._keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(self._keys)
        if at is None or at >= self._version:
            stop = min(stop, start + limit) if limit else stop
            return [self._records[key] for key in self._keys[start:stop]]
        self._check_kept(at)
        state: dict[str, Record | None] = {key: self._records[key] for key in self._keys[start:stop]}
        state |= undo(c for c in self._changes if c.version > at and c.key.startswith(prefix) and c.key > after)
        found = (record for _, record in sorted(state.items()) if record is not None)
        return list(islice(found, limit) if limit else found)

    async def history(self, prefix: str, since: int, until: int, *, most: int = 0, size: int = 0) -> Sequence[Change]:
        self._check_kept(since)
        found = [c for c in self._changes if since < c.version <= until and c.key.startswith(prefix)]
        if (most and len(found) > most) or (size and sum(change.size for change in found) > size):
            raise Compacted(since)
        return found

    def _check_kept(self, version: int) -> None:
        if version < self._compacted:
            raise Compacted(version)

    async def compact(self, version: int) -> None:
        while self._changes and self._changes[0].version <= version:
            self._changes.popleft()
        self._compacted = max(self._compacted, min(version, self._version))
