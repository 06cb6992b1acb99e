"""Store: all current objects in memory in front of a storage, with the recent past that watches resume from.

One `Table` per resource holds entries in key order, a window of its last events, and its watchers. The storage calls
`_committed` on the event loop for each durable batch, in version order, before the write is acknowledged; so a reader sees its
own writes, and `version` is never ahead of what watchers were offered.
"""

import asyncio
import contextlib
import logging
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from argosy.kube.errors import ApiError
from argosy.server import status
from argosy.server.http.buffers import Buffers
from argosy.server.storage.base import (
    Change,
    Changed,
    Compacted,
    Encode,
    OnBatch,
    Record,
    Storage,
    StorageError,
    StorageFull,
)
from argosy.server.storage.room import Room
from argosy.server.watchcache.entry import Entry
from argosy.server.watchcache.selection import Selection

__all__ = ["Observer", "Store", "StoreEvent", "Table", "Watch"]

log = logging.getLogger(__name__)

#: Events kept in memory per resource; older ones are read from the storage's history.
WINDOW = 8192
WINDOW_BYTES = 32 * 1024 * 1024
#: A watch that resumes further back than this many changes must list again.
REPLAY_LIMIT = 50_000
REPLAY_BYTES = 64 * 1024 * 1024
#: Past events made between two checks of the clock.
_SLICE = 256
_LEASES = "coordination.k8s.io/leases/"
_FAILED = "a receiver of changes failed on %s"


class StoreEvent(msgspec.Struct, gc=False, eq=False):
    """One committed change of one object. Frames are made by the first watcher that needs them and freed by the last."""

    #: For a deletion the final state, carrying the version of the deletion.
    entry: Entry
    previous: Entry | None
    deleted: bool
    frames: dict[object, bytes] = msgspec.field(default_factory=dict)
    #: Watchers that have not sent it yet (`buffers`).
    waited_for: int = 0

    @property
    def version(self) -> int:
        return self.entry.version

    @property
    def size(self) -> int:
        return len(self.entry.value)

    @property
    def type(self) -> str:
        return "DELETED" if self.deleted else "ADDED" if self.previous is None else "MODIFIED"

    def hold(self) -> int:
        """One more watcher must send it; returns how many must."""
        self.waited_for += 1
        return self.waited_for

    def release(self) -> int:
        """One watcher has sent it; returns how many are left."""
        self.waited_for -= 1
        return self.waited_for


#: Called for each change, before the write is acknowledged; it must be quick.
Observer = Callable[[StoreEvent], None]


class Watch(Protocol):
    """An open watch, as the store knows it."""

    def offer(self, event: StoreEvent) -> None:
        """A change of an object of the table."""
        ...

    def close(self) -> None: ...


class Table:
    """The objects of one resource."""

    def __init__(self, version: int):
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        #: All events after `window_start` are in `window`.
        self.window: deque[StoreEvent] = deque()
        self.window_start = version
        self._window_bytes = 0
        #: Parts of the server that follow this table alone; they are called first.
        self.observers: list[Observer] = []
        self.watchers: dict[Watch, None] = {}
        #: The requirements of watchers with large selectors: each is checked with each change.
        self.requirements = 0

    def tell(self, observe: Observer) -> None:
        """Call `observe` for each object, as if it was created now."""
        for entry in tuple(self.entries.values()):
            observe(StoreEvent(entry, None, deleted=False))

    def attach(self, watch: Watch, requirements: int) -> None:
        """Offer it each change from now on; `requirements` are those of its selector, if it has many."""
        self.watchers[watch] = None
        self.requirements += requirements

    def detach(self, watch: Watch, requirements: int) -> None:
        self.watchers.pop(watch, None)
        self.requirements -= requirements

    def select(self, selection: Selection) -> Sequence[Entry]:
        """The entries of the selection's key or prefix, in key order; selectors are not applied yet."""
        if selection.key:
            entry = self.entries.get(selection.key)
            return (entry,) if entry is not None else ()
        return self.under(selection.prefix)

    def under(self, prefix: str) -> list[Entry]:
        """The entries whose keys begin with a prefix, which ends in "/", in key order."""
        start = bisect_left(self.keys, prefix)
        end = bisect_left(self.keys, prefix[:-1] + chr(ord("/") + 1), start)
        return [self.entries[key] for key in self.keys[start:end]]

    def select_at(self, selection: Selection, version: int) -> Sequence[Entry]:
        """As `select`, at a version not before `window_start`."""
        state = {entry.key: entry for entry in self.select(selection)}
        for event in reversed(self.window):
            if event.version <= version:
                break
            if not event.entry.key.startswith(selection.key or selection.prefix):
                continue
            if event.previous is None:
                state.pop(event.entry.key, None)
            else:
                state[event.entry.key] = event.previous
        return [state[key] for key in sorted(state)]

    def since(self, version: int) -> Iterable[StoreEvent]:
        """Events in the window after a version, in order."""
        if not self.window or self.window[-1].version <= version:
            return ()
        newest_first: list[StoreEvent] = []
        for event in reversed(self.window):
            if event.version <= version:
                break
            newest_first.append(event)
        return reversed(newest_first)

    def after(self, entries: Sequence[Entry], key: str) -> Sequence[Entry]:
        """The part of a key-ordered list after a key."""
        return entries[bisect_right(entries, key, key=lambda entry: entry.key) :]

    def load(self, entry: Entry) -> None:
        self.entries[entry.key] = entry
        self.keys.append(entry.key)

    def apply(self, entry: Entry, *, deleted: bool) -> StoreEvent:
        key = entry.key
        previous = self.entries.get(key)
        if deleted:
            if previous is not None:
                del self.entries[key]
                del self.keys[bisect_left(self.keys, key)]
        else:
            self.entries[key] = entry
            if previous is None:
                insort(self.keys, key)
        event = StoreEvent(entry, previous, deleted=deleted)
        self.window.append(event)
        self._window_bytes += len(entry.value)
        while len(self.window) > WINDOW or self._window_bytes > WINDOW_BYTES:
            self._drop_oldest()
        return event

    def forget(self, version: int) -> None:
        while self.window and self.window[0].version <= version:
            self._drop_oldest()
        self.window_start = max(self.window_start, version)

    def _drop_oldest(self) -> None:
        event = self.window.popleft()
        self._window_bytes -= len(event.entry.value)
        self.window_start = event.version


class Store:
    def __init__(self, storage: Storage, buffers: Buffers, on_batch: OnBatch):
        self.storage = storage
        self.buffers = buffers
        self.room = Room(storage)
        self.version = 0
        self._on_batch = on_batch
        self._tables: dict[str, Table] = {}
        self._open = False
        self._started = 0
        self._subscribers: list[Observer] = []
        self._dependents: dict[str, set[str]] = {}

    async def open(self) -> None:
        records = await self.storage.open(self._committed, self._on_batch)
        self.version = self._started = self.storage.version
        for record in records:
            entry = Entry.of(record)
            self.table(_table_name(record.key)).load(entry)
            self._index(entry)
        self._open = True

    async def close(self) -> None:
        await self.storage.close()

    def close_watches(self) -> None:
        """The server stops: /readyz says so, and every watch ends."""
        self._open = False
        for table in self._tables.values():
            for watch in tuple(table.watchers):
                watch.close()

    def problem(self) -> str | None:
        """For /readyz."""
        return self.room.problem() if self._open else "not open"

    def table(self, storage_key: str) -> Table:
        table = self._tables.get(storage_key)
        if table is None:
            # Nothing was written there since the start, so the window is complete.
            table = self._tables[storage_key] = Table(max(self._started, self.storage.compacted))
        return table

    def get(self, key: str) -> Entry | None:
        table = self._tables.get(_table_name(key))
        return None if table is None else table.entries.get(key)

    def tables(self) -> dict[str, Table]:
        return dict(self._tables)

    def watchers(self) -> set[Watch]:
        return {watch for table in self._tables.values() for watch in table.watchers}

    def subscribe(self, observe: Observer) -> Callable[[], None]:
        """Call `observe` for each change from now on. Returns a function that stops it."""
        self._subscribers.append(observe)
        return lambda: self._subscribers.remove(observe) if observe in self._subscribers else None

    def follow(self, observe: Observer, *tables: str) -> None:
        """Call `observe` for each object of these tables, then for each of their changes. The store is open."""
        for name in tables:
            table = self.table(name)
            table.tell(observe)
            table.observers.append(observe)

    def follow_all(self, observe: Observer, *first: str) -> None:
        """Call `observe` for each object, table by table and those of `first` before the others, then for each change."""
        self._subscribers.append(observe)
        for name in (*first, *sorted(self._tables.keys() - set(first))):
            self.table(name).tell(observe)

    def dependents(self, uid: str) -> Sequence[Entry]:
        """The objects that name this uid among their owners."""
        found = (self.get(key) for key in sorted(self._dependents.get(uid, ())))
        return [entry for entry in found if entry is not None]

    async def create(self, key: str, encode: Encode) -> Record:
        """Raises Exists, or the error response if the storage failed."""
        return await self._write(lambda: self.storage.create(key, encode))

    async def replace(self, key: str, expected: int, encode: Encode, *, urgent: bool = False) -> Record:
        """Raises Changed, or the error response if the storage failed. An urgent write is tried on a full disk, too."""
        urgent = urgent or key.startswith(_LEASES)
        return await self._write(lambda: self.storage.replace(key, expected, encode), urgent=urgent)

    async def delete(self, key: str, expected: int, encode: Encode) -> Record:
        """Raises Changed, or the error response if the storage failed."""
        return await self._write(lambda: self.storage.delete(key, expected, encode), urgent=True)

    async def _write(self, write: Callable[[], Awaitable[Record]], *, urgent: bool = False) -> Record:
        try:
            return await self.room.write(write, urgent=urgent)
        except StorageError as error:
            raise _failed(error) from error

    async def discard(self, entry: Entry) -> None:
        """Delete an entry unconditionally, unless it changed meanwhile."""
        with contextlib.suppress(Changed):
            await self.delete(entry.key, entry.version, entry.at)

    async def entries_at(self, selection: Selection, version: int) -> Sequence[Entry]:
        """The entries of a selection (selectors not applied) as they were at a version. Raises Compacted."""
        table = self.table(selection.kind.storage_key)
        if version >= self.version:
            return table.select(selection)
        if version >= table.window_start:
            return table.select_at(selection, version)
        records = await self.storage.range(selection.prefix, at=version)
        entries: list[Entry] = []
        for start in range(0, len(records), _SLICE):
            some = records[start : start + _SLICE]
            entries += [Entry.of(record) for record in some if not selection.key or record.key == selection.key]
            await asyncio.sleep(0)
        return entries

    async def replay(self, selection: Selection, since: int) -> list[StoreEvent]:
        """Events after `since` that are older than the table's window. Raises Compacted."""
        table = self.table(selection.kind.storage_key)
        events: list[StoreEvent] = []
        most, size = REPLAY_LIMIT, REPLAY_BYTES
        # The window may move while the history is read; what left it meanwhile is read as well.
        while since < table.window_start:
            until = table.window_start
            if most <= 0 or size <= 0:
                raise Compacted(since)
            changes = await self.storage.history(selection.prefix, since, until, most=most, size=size)
            for start in range(0, len(changes), _SLICE):
                some = changes[start : start + _SLICE]
                events += map(_event, some)
                most -= len(some)
                size -= sum(change.size for change in some)
                await asyncio.sleep(0)
            since = until
        return events

    async def compact(self, version: int) -> None:
        """Drop history up to `version`: older lists and watches get 410."""
        await self.storage.compact(version)
        for table in self._tables.values():
            table.forget(min(version, self.version))

    def _committed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            entry = Entry.of(Record(change.key, change.version, change.value))
            table = self.table(_table_name(change.key))
            event = table.apply(entry, deleted=change.deleted)
            if event.previous is not None:
                self._unindex(event.previous)
            if not change.deleted:
                self._index(entry)
            self.version = change.version
            # A failing observer must not keep the change from the writer or the others.
            for observe in (*table.observers, *self._subscribers):
                try:
                    observe(event)
                except Exception:
                    log.exception(_FAILED, change.key)
            for watch in tuple(table.watchers):
                try:
                    watch.offer(event)
                except Exception:
                    log.exception(_FAILED, change.key)

    def _index(self, entry: Entry) -> None:
        for uid in entry.owners:
            self._dependents.setdefault(uid, set()).add(entry.key)

    def _unindex(self, entry: Entry) -> None:
        for uid in entry.owners:
            keys = self._dependents.get(uid)
            if keys is not None:
                keys.discard(entry.key)
                if not keys:
                    del self._dependents[uid]


def _table_name(key: str) -> str:
    return key[: key.index("/", key.index("/") + 1)]


def _event(change: Change) -> StoreEvent:
    previous = Entry.of(change.previous) if change.previous is not None else None
    return StoreEvent(Entry.of(Record(change.key, change.version, change.value)), previous, deleted=change.deleted)


def _failed(error: StorageError) -> ApiError:
    if isinstance(error, StorageFull):
        return status.out_of_space()
    return status.internal(str(error))
