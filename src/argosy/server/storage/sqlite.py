"""Storage in SQLite: durable on one machine, with group commit.

Writes that wait while a commit runs go into the next one together. A batch is assembled on the event loop (versions compared
and assigned, values encoded) and committed by one thread with three statements: a thread with many short statements would wait
for the interpreter lock after each of them. Only one batch is in progress at a time, so a failed one is simply dropped, and its
versions are skipped.

Before a store is opened, `examine` checks whether everything acknowledged is still there; `epoch` records the progress with
each commit.

Owns two threads, one that writes and one that reads history; `close` ends both.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from argosy.kube import clock
from argosy.server.storage.base import (
    Change,
    Changed,
    Compacted,
    Encode,
    Exists,
    OnBatch,
    OnCommit,
    Record,
    StorageDamaged,
    StorageError,
    StorageFull,
)
from argosy.server.storage.epoch import Epoch
from argosy.server.storage.examine import examine, keep_aside
from argosy.server.storage.folder import FolderLock, is_full
from argosy.server.storage.reserve import Reserve
from argosy.server.storage.schema import jump_ahead, newest_version, open_file, storage_error

__all__ = ["SqliteStorage"]

log = logging.getLogger(__name__)

T = TypeVar("T")
#: Largest number of writes in one commit; more wait for the next.
BATCH = 1024
#: Rows in one INSERT: large enough to count as one statement, below SQLite's limit of variables.
ROWS = 128
#: Approximate number of pages in the log after which it is checkpointed.
MERGE_AFTER = 1000
PAGE = 4096
#: History rows processed in one slice of a compaction, so that writes come through in between.
SLICE = 500

_AT = """
SELECT log.key, log.version, log.value FROM log JOIN (
    SELECT max(version) AS newest FROM log WHERE key >= ? AND key < ? AND version <= ? GROUP BY key
) ON log.version = newest WHERE NOT log.deleted ORDER BY log.key
"""
_HISTORY = """
SELECT log.key, log.version, log.value, log.deleted, before.version, before.value
FROM log LEFT JOIN log AS before ON before.version = log.previous AND NOT before.deleted
WHERE log.version > ? AND log.version <= ? AND log.key >= ? AND log.key < ? ORDER BY log.version
"""


class _Write(msgspec.Struct):
    key: str
    #: The version the key must have; None: it must be absent.
    expected: int | None
    encode: Encode
    done: asyncio.Future[Record]
    deleted: bool = False

    def conflict(self, head: Record | None) -> Exception | None:
        """Why it cannot be written onto this head."""
        if self.expected is None:
            return Exists(self.key) if head is not None else None
        if head is None or head.version != self.expected:
            return Changed(head.version if head else None)
        return None


class SqliteStorage:
    def __init__(self, folder: Path, *, accept_data_loss: bool = False):
        """With `accept_data_loss` a store that lacks acknowledged writes is opened nevertheless."""
        self._folder = folder
        self._accept_data_loss = accept_data_loss
        self._reserve = Reserve(folder)
        self._version = 0
        self._given = 0
        self._compacted = 0
        #: The current record of each key, as of the last commit.
        self._heads: dict[str, Record] = {}
        self._waiting: list[_Write] = []
        self._committing = False
        #: Pages written since the last checkpoint.
        self._unmerged = 0
        #: As of the last commit.
        self._scarce = False
        self._compacting = asyncio.Lock()
        self._idle: asyncio.Future[None] | None = None
        self._closed = True

    @property
    def version(self) -> int:
        return self._version

    @property
    def compacted(self) -> int:
        return self._compacted

    @property
    def scarce(self) -> bool:
        return self._scarce

    async def open(self, on_commit: OnCommit, on_batch: OnBatch) -> Sequence[Record]:
        self._on_commit, self._on_batch = on_commit, on_batch
        self._lock = FolderLock(self._folder)
        self._writing = ThreadPoolExecutor(1, "sqlite-writer")
        self._reading = ThreadPoolExecutor(1, "sqlite-reader")
        try:
            if is_full(self._folder):
                # So that it starts, and something can be deleted.
                await self.give_up_reserve()
            await self._in(self._writing, self._open)
            await self._in(self._writing, self._reserve.keep)
        except BaseException:
            self._end_threads()
            raise
        self._closed = False
        return list(self._heads.values())

    def _open(self) -> None:
        path = self._folder / "store.db"
        found = examine(self._folder)
        if found.problems:
            told = f"{path}: {'; '.join(found.problems)}"
            if not self._accept_data_loss:
                raise StorageDamaged(told)
            log.error("acknowledged writes are lost, as was accepted: %s", told)
            keep_aside(self._folder, found)
        first = found.first
        self._writer = open_file(path)
        try:
            if found.problems:
                self._writer.execute("REINDEX")
                jump_ahead(self._writer, first)
            self._reader = open_file(path)
            # Read before the first write: a store that cannot be read is not changed.
            self._read_heads()
            self._epoch = Epoch(self._folder, self._writer, found.record, first)
        except sqlite3.Error as error:
            self._abandon()
            raise storage_error(path, "read as a store", error) from error
        except BaseException:
            self._abandon()
            raise
        self._given = max(self._version, first)
        if found.problems:
            log.error("the store goes on with %d objects from version %d on", len(self._heads), self._given)

    def _abandon(self) -> None:
        """After a failed start: SQLite first, so that its locks are held to the end."""
        for part in ("_reader", "_writer"):
            if hasattr(self, part):
                getattr(self, part).close()
        if hasattr(self, "_epoch"):
            self._epoch.end(None)

    def _read_heads(self) -> None:
        (self._compacted,) = self._writer.execute("SELECT value FROM state WHERE name = 'compacted'").fetchone()
        self._version = newest_version(self._writer)
        for row in self._writer.execute(_AT, ("", "\U0010ffff", self._version)):
            self._heads[row[0]] = Record(*row)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._committing:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        await self._in(self._reading, self._reader.close)
        await self._in(self._writing, self._finish)
        self._end_threads()

    def _finish(self) -> None:
        self._epoch.merge(self._writer)
        self._writer.close()
        self._epoch.end(self._given)

    def _end_threads(self) -> None:
        self._writing.shutdown(wait=False)
        self._reading.shutdown(wait=False)
        self._lock.release()

    async def _in(self, executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    # Writes.

    async def create(self, key: str, encode: Encode) -> Record:
        return await self._write(key, None, encode, deleted=False)

    async def replace(self, key: str, expected: int, encode: Encode) -> Record:
        return await self._write(key, expected, encode, deleted=False)

    async def delete(self, key: str, expected: int, encode: Encode) -> Record:
        return await self._write(key, expected, encode, deleted=True)

    async def _write(self, key: str, expected: int | None, encode: Encode, *, deleted: bool) -> Record:
        if self._closed:
            raise StorageError("the store is closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Record] = loop.create_future()
        self._waiting.append(_Write(key, expected, encode, done, deleted))
        if not self._committing:
            self._committing = True
            # In the next iteration of the event loop: all writes of this one go together.
            loop.call_soon(self._next_batch)
        try:
            return await done
        finally:
            del done  # it refers to the error, which refers to this frame

    def _next_batch(self) -> None:
        changes: list[Change] = []
        writes: list[_Write] = []
        # Writes that lost against another of the same batch: they fail when that one is durable and can be read.
        losers: list[tuple[_Write, Exception]] = []
        staged: dict[str, Record | None] = {}
        taken, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        for write in taken:
            if write.done.done():  # The writer was cancelled before its turn.
                continue
            head = staged[write.key] if write.key in staged else self._heads.get(write.key)
            conflict = write.conflict(head)
            if conflict is not None:
                if write.key in staged:
                    losers.append((write, conflict))
                else:
                    write.done.set_exception(conflict)
                continue
            try:
                change = self._stage(write, head)
            except Exception as error:
                write.done.set_exception(error)
                continue
            staged[write.key] = None if write.deleted else Record(change.key, change.version, change.value)
            changes.append(change)
            writes.append(write)
        if not changes:
            self._go_on()
            return
        started = clock.monotonic()
        rows = [self._row(change) for change in changes]
        commit = asyncio.get_running_loop().run_in_executor(self._writing, self._commit, rows)
        commit.add_done_callback(lambda result: self._committed(result, changes, writes, losers, started))

    def _row(self, change: Change) -> tuple[int, str, int, int, bytes]:
        previous = change.previous.version if change.previous else 0
        # If room is scarce, the last state of deleted objects is not kept as history, which is dropped soon anyway.
        value = b"" if self._scarce and change.deleted else change.value
        return change.version, change.key, previous, int(change.deleted), value

    def _stage(self, write: _Write, head: Record | None) -> Change:
        self._given += 1
        return Change(write.key, self._given, write.encode(self._given), write.deleted, head)

    def _commit(self, rows: list[tuple[int, str, int, int, bytes]]) -> None:
        self._epoch.reserve(rows[-1][0])
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for start in range(0, len(rows), ROWS):
                part = rows[start : start + ROWS]
                values = ",".join(("(?,?,?,?,?)",) * len(part))
                self._writer.execute(f"INSERT INTO log VALUES {values}", [value for row in part for value in row])
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._failed(error) from error
        self._epoch.acknowledge(rows[-1][0])
        # A row changes its own page and one of the index.
        self._unmerged += sum(2 + len(row[4]) // PAGE for row in rows)
        self._scarce = not self._has_room(self._reserve.wanted // 2)

    def _merge(self) -> bool:
        """Bring the log into the file, after which it begins anew; whether all of it could be."""
        self._unmerged = 0
        return self._epoch.merge(self._writer)

    def _failed(self, error: sqlite3.Error) -> StorageError:
        return storage_error(self._folder / "store.db", "written", error)

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        if self._writer.in_transaction:
            # A connection that cannot even roll back is useless.
            with contextlib.suppress(sqlite3.Error, StorageError):
                self._writer.close()
                self._writer = open_file(self._folder / "store.db")

    def _committed(
        self,
        result: "asyncio.Future[None]",
        changes: list[Change],
        writes: list[_Write],
        losers: list[tuple[_Write, Exception]],
        started: float,
    ) -> None:
        error = result.exception()
        self._scarce = self._scarce or isinstance(error, StorageFull)
        if error is not None:
            for write in (*writes, *(write for write, _ in losers)):
                if not write.done.done():
                    write.done.set_exception(error)
            self._go_on()
            return
        self._version = changes[-1].version
        records = [Record(change.key, change.version, change.value) for change in changes]
        for change, record in zip(changes, records, strict=True):
            if change.deleted:
                del self._heads[change.key]
            else:
                self._heads[change.key] = record
        self._on_batch(len(changes), clock.monotonic() - started)
        self._on_commit(changes)
        for write, record in zip(writes, records, strict=True):
            if not write.done.done():
                write.done.set_result(record)
        for write, lost in losers:
            if not write.done.done():
                write.done.set_exception(lost)
        if self._unmerged >= MERGE_AFTER:
            # Before the next batch, and after this one was acknowledged.
            self._writing.submit(self._merge)
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next_batch)
            return
        self._committing = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    # Reads.

    async def get(self, key: str) -> Record | None:
        return self._heads.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int | None = None) -> Sequence[Record]:
        version = self._version if at is None else at
        self._check_kept(version)
        start = after + "\0" if after else prefix

        def read() -> list[tuple[Any, ...]]:
            return self._reader.execute(f"{_AT} LIMIT ?", (start, _end(prefix), version, limit or -1)).fetchall()

        rows = await self._in(self._reading, read)
        # Compaction may have progressed while the rows were read.
        self._check_kept(version)
        return [Record(*row) for row in rows]

    async def history(self, prefix: str, since: int, until: int, *, most: int = 0, size: int = 0) -> Sequence[Change]:
        self._check_kept(since)

        def read() -> list[Change]:
            found: list[Change] = []
            taken = 0
            rows = self._reader.execute(_HISTORY, (since, until, prefix, _end(prefix)))
            for key, version, value, deleted, before, old in rows:
                previous = Record(key, before, old) if before is not None else None
                found.append(Change(key, version, value or old, bool(deleted), previous))
                taken += found[-1].size
                if (most and len(found) > most) or (size and taken > size):
                    rows.close()
                    raise Compacted(since)
            return found

        changes = await self._in(self._reading, read)
        self._check_kept(since)
        return changes

    def _check_kept(self, version: int) -> None:
        if version < self._compacted:
            raise Compacted(version)

    async def compact(self, version: int) -> None:
        target = min(version, self._version)
        async with self._compacting:
            while self._compacted < target and not self._closed:
                # Set first: a read that overlaps the slice fails rather than sees half of it.
                reached, dead = await self._in(self._writing, partial(self._slice, self._compacted, target))
                self._compacted = reached
                await self._in(self._writing, partial(self._forget, reached, dead))

    async def give_up_reserve(self) -> bool:
        return await self._in(self._writing, self._reserve.give_up)

    async def relieve(self) -> bool:
        # Checkpoint first: then the log takes no more space.
        if not await self._in(self._writing, self._merge) and await self.give_up_reserve():
            await self._in(self._writing, self._merge)
        # Overwriting deleted content would take the space that deleting should free.
        await self._in(self._writing, partial(self._writer.execute, "PRAGMA secure_delete = FAST"))
        await self.compact(self._version)
        # Twice the threshold: otherwise the next few writes would reach it again.
        return await self._in(self._writing, partial(self._regained, self._reserve.wanted))

    def _regained(self, size: int) -> bool:
        self._scarce = not self._merge() or not self._has_room(size)
        if not self._scarce:
            self._reserve.keep()
        return not self._scarce

    def _has_room(self, size: int) -> bool:
        """On the disk, or inside the file, which does not shrink: its deleted content is free space as well."""
        missing = size - self._reserve.free()
        if missing <= 0:
            return True
        try:
            (pages,) = self._writer.execute("PRAGMA freelist_count").fetchone()
            (page,) = self._writer.execute("PRAGMA page_size").fetchone()
        except sqlite3.Error:
            return False
        return bool(pages * page >= missing)

    def _slice(self, since: int, target: int) -> tuple[int, list[int]]:
        rows = self._writer.execute(
            "SELECT version, previous, deleted FROM log WHERE version > ? AND version <= ? ORDER BY version LIMIT ?",
            (since, target, SLICE),
        ).fetchall()
        dead = [previous for _, previous, _ in rows if previous]
        dead += [version for version, _, deleted in rows if deleted]
        return (rows[-1][0] if len(rows) == SLICE else target), dead

    def _forget(self, reached: int, dead: list[int]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            if dead:
                marks = ",".join("?" * len(dead))
                self._writer.execute(f"DELETE FROM log WHERE version IN ({marks})", dead)
            self._writer.execute("UPDATE state SET value = ? WHERE name = 'compacted'", (reached,))
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._failed(error) from error
        self._unmerged += 2 + 2 * len(dead)


def _end(prefix: str) -> str:
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\U0010ffff"
