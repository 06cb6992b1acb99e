"""Watcher: one watch stream, from its starting version to live events.

Runs no task: the store offers it events, its reader takes them. When events arrive, the reader is woken once. The backlog is
bounded, per reader here and over all readers by the store's `buffers`: a reader that does not keep up is cut off and resumes
from its last version. Events that were taken are held until the reader takes more.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain, islice
from typing import Protocol

import msgspec
import orjson

from argosy.kube.errors import ApiError
from argosy.kube.transport import Event
from argosy.server.storage.base import Record
from argosy.server.watchcache.entry import Entry, served
from argosy.server.watchcache.selection import Selection
from argosy.server.watchcache.store import Store, StoreEvent

__all__ = ["BUFFER", "Item", "Reader", "Renderer", "Watcher", "judge"]

#: Live events waiting for a reader that is slower than the writers.
BUFFER = 4096
#: Bytes of live events, too, since objects may be large.
BUFFER_BYTES = 64 * 1024 * 1024
#: A frame ends with the item that reaches this size; items are taken so many at a time.
FRAME_BYTES = 64 * 1024
TAKE = 16
BOOKMARK_PERIOD = 60.0

#: An object that no longer matches is sent as deleted: its last matching state at the version of the change.
_LEFT = "LEFT"
#: What to send: the type, or `_LEFT`, and the entry or the event it comes from.
Item = tuple[str, Entry | StoreEvent | bytes]


class Renderer(Protocol):
    """Renders each object in the requested form."""

    @property
    def shape(self) -> Hashable:
        """Renderers of the same shape render the same."""
        ...

    def render(self, value: bytes, *, first: bool) -> bytes:
        """`first`: nothing was sent on this stream before."""
        ...


class Reader(msgspec.Struct, frozen=True):
    """The reader of a watcher, and how it is woken."""

    #: Events can be taken, or the watch has ended.
    wake: Callable[[], None]
    #: The backlog was too large and was dropped.
    cut: Callable[[], None]


class Watcher:
    def __init__(
        self,
        store: Store,
        selection: Selection,
        reader: Reader,
        *,
        past: Iterable[Item] = (),
        initial: Iterable[Entry] = (),
        mark_initial_end: bool = False,
        since: int = 0,
        bookmarks: bool = False,
        timeout: float | None = None,
        renderer: Renderer | None = None,
    ):
        """Starts at once: everything committed after this call is seen, and `past` (see `judge`) ends right before it."""
        self._store = store
        self._reader = reader
        self._selection = selection
        self._kind = selection.kind
        self._since = since
        self._renderer = renderer
        self._first = True
        self._buffers = store.buffers
        self._buffers.holders.add(self)
        #: Bytes that wait for this reader, and those of them that are its own alone.
        self.waiting = 0
        self._copied = self._unsent = 0
        self._taken: list[Item] = []
        self._live: deque[Item] = deque()
        self._past = deque(past)
        for item in self._past:
            self._hold(item)
        self._ready: Iterator[Item] | None = chain(
            self._held(("ADDED", entry) for entry in initial),
            self._drained(self._past),
            self._held((("BOOKMARK", self._bookmark(initial_end=True)),) if mark_initial_end else ()),
        )
        self._error: ApiError | None = None
        self.ended = False
        self._table = store.table(self._kind.storage_key)
        self._table.attach(self, selection.many)
        loop = asyncio.get_running_loop()
        self._bookmarks = bookmarks
        self._bookmark_timer = loop.call_later(BOOKMARK_PERIOD, self._periodic_bookmark) if bookmarks else None
        self._timeout_timer = loop.call_later(timeout, self._time_out) if timeout else None

    def close(self) -> None:
        """The reader is gone, or the server stops: no more events; the backlog can still be taken."""
        if self.ended:
            return
        self.ended = True
        self._table.detach(self, self._selection.many)
        for timer in (self._bookmark_timer, self._timeout_timer):
            if timer is not None:
                timer.cancel()
        self._reader.wake()

    def drop(self) -> None:
        """The reader is gone: as `close`, and the backlog is dropped."""
        self._ready = None
        self._error = None
        for item in (*self._taken, *self._past, *self._live):
            self._release(item)
        for gathered in (self._taken, self._past, self._live):
            gathered.clear()
        self._own(copied=0, unsent=0)
        self._buffers.holders.discard(self)
        self.close()

    def cut(self) -> None:
        """The backlog of a reader that does not read is too large."""
        self.drop()
        self._reader.cut()

    def unsent(self, size: int) -> None:
        """So many taken bytes are in the buffers of the reader's connection."""
        self._own(copied=self._copied, unsent=size)

    def fail(self, error: ApiError) -> None:
        """End the stream with an ERROR event."""
        if not self.ended:
            self._error = error
            self.close()

    @property
    def exhausted(self) -> bool:
        """Whether it has ended, and everything was taken."""
        return self.ended and self._ready is None and not self._live and self._error is None

    def take_events(self, limit: int = 512) -> list[Event]:
        """The next events as values; raises the error that ended the stream after all events before it."""
        self._let_go()
        out = [Event(_told(type), self._rendered(type, source)) for type, source in self._take(limit)]
        if not out and self._error is not None:
            error, self._error = self._error, None
            raise error
        return out

    def take_frames(self, limit: int = 512) -> list[bytes]:
        """The next events as lines of a watch stream, an error last; fewer if they are large."""
        out: list[bytes] = []
        size = read = copied = 0
        self._let_go()
        # Rendering decodes the object, however little of it is shown: the bytes read count as well.
        most = TAKE if self._renderer is None else 1
        while len(out) < limit and max(size, read) < FRAME_BYTES and (items := self._take(min(most, limit - len(out)))):
            for type, source in items:
                frame = self._frame(type, source)
                out.append(frame)
                size += len(frame)
                if not isinstance(source, StoreEvent):
                    copied += len(frame)
            if self._renderer is not None:
                read += sum(map(_size, items))
        self._own(copied=copied, unsent=self._unsent)
        if self._error is not None and self._ready is None and not self._live:
            out.append(_line("ERROR", orjson.dumps(self._error.status)))
            self._error = None
        return out

    def _take(self, limit: int) -> list[Item]:
        out: list[Item] = []
        if self._ready is not None:
            out = list(islice(self._ready, limit))
            if len(out) < limit:
                self._ready = None
        live = self._live
        while live and len(out) < limit:
            out.append(live.popleft())
        self._taken += out
        return out

    def _held(self, items: Iterable[Item]) -> Iterator[Item]:
        """Objects that the store holds anyway are not copied, and are held only while they are sent."""
        for item in items:
            self._hold(item)
            yield item

    def _drained(self, items: deque[Item]) -> Iterator[Item]:
        while items:
            yield items.popleft()

    def _let_go(self) -> None:
        """What was taken before has been sent."""
        for item in self._taken:
            self._release(item)
        self._taken.clear()

    def _hold(self, item: Item) -> None:
        size = _size(item)
        self.waiting += size
        source = item[1]
        if isinstance(source, StoreEvent) and source.hold() > 1:
            return
        self._buffers.hold(size)

    def _release(self, item: Item) -> None:
        size = _size(item)
        source = item[1]
        self.waiting -= size
        if isinstance(source, StoreEvent):
            if source.release():
                return
            size += sum(map(len, source.frames.values()))
            source.frames.clear()
        self._buffers.release(size)

    def _own(self, *, copied: int, unsent: int) -> None:
        more = copied + unsent - self._copied - self._unsent
        self._copied, self._unsent = copied, unsent
        self.waiting += more
        if more > 0:
            self._buffers.hold(more)
        elif more:
            self._buffers.release(-more)

    def offer(self, event: StoreEvent) -> None:
        item = judge(self._selection, event) if event.version > self._since else None
        if item is None:
            return
        if len(self._live) >= BUFFER or self.waiting > BUFFER_BYTES:
            # As kube-apiserver does, the stream just ends; the reader resumes from the last version it saw.
            self.close()
            return
        self._push(item)

    def _push(self, item: Item) -> None:
        self._hold(item)
        self._live.append(item)
        if len(self._live) == 1:
            self._reader.wake()

    def _rendered(self, type: str, source: Entry | StoreEvent | bytes) -> bytes:
        if isinstance(source, bytes):
            return source
        if type == _LEFT:
            assert isinstance(source, StoreEvent)
            value = served(self._kind, self._left(source))
        else:
            value = served(self._kind, source.entry if isinstance(source, StoreEvent) else source)
        return value if self._renderer is None else self._renderer.render(value, first=self._first)

    def _frame(self, type: str, source: Entry | StoreEvent | bytes) -> bytes:
        """For an event it is made once for all watches of the same form."""
        if isinstance(source, StoreEvent):
            shape = None if self._renderer is None else (self._renderer.shape, self._first)
            frame = self._shared(
                source, (type, self._kind.api_version, shape), lambda: _line(_told(type), self._rendered(type, source))
            )
        else:
            frame = _line(type, self._rendered(type, source))
        self._first = self._first and isinstance(source, bytes)
        return frame

    def _left(self, event: StoreEvent) -> Entry:
        previous = event.previous
        assert previous is not None
        value = self._shared(event, _LEFT, lambda: previous.at(event.version))
        return Entry.of(Record(previous.key, event.version, value))

    def _shared(self, event: StoreEvent, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Held with the event, as long as a watcher needs it."""
        value = event.frames.get(key)
        if value is None:
            value = event.frames[key] = make()
            self._buffers.hold(len(value))
        return value

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._store.version)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return orjson.dumps({"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata})

    def _periodic_bookmark(self) -> None:
        self._push(("BOOKMARK", self._bookmark()))
        self._bookmark_timer = asyncio.get_running_loop().call_later(BOOKMARK_PERIOD, self._periodic_bookmark)

    def _time_out(self) -> None:
        if self._bookmarks:
            self._push(("BOOKMARK", self._bookmark()))
        self.close()


def judge(selection: Selection, event: StoreEvent) -> Item | None:
    """The change as a selection sees it: objects enter and leave it as their labels and fields change."""
    now = not event.deleted and selection.matches(event.entry)
    before = event.previous is not None and selection.matches(event.previous)
    if now:
        return ("MODIFIED" if before else "ADDED"), event
    if not before:
        return None
    if event.deleted:
        return "DELETED", event
    return _LEFT, event


def _size(item: Item) -> int:
    source = item[1]
    if isinstance(source, bytes):
        return len(source)
    return source.size if isinstance(source, StoreEvent) else len(source.value)


def _line(type: str, value: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type.encode(), value)


def _told(type: str) -> str:
    return "DELETED" if type == _LEFT else type
