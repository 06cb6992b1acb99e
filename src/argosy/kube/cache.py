"""Cache: what an informer knows of a resource's objects, and the rules by which versions replace each other. No I/O.

Objects are kept as projections, with their bytes only where asked for. Per object, versions only move forward: an event
older than what is known (because our own write's answer came first) changes nothing. That ordering holds within one history
of the server; a list older than what was already seen means the server was restored from a backup, and is believed as a whole.

Nobody says that a server sends what it should. Something without the identity of an object, or outside of what was asked for,
is a DecodeError. An object that only does not fit its projection, or is larger or deeper than objects are, is passed over
(`unreadable`); too many of them are one too. How much is held is known (`held`); whoever fills the cache says when to stop.

Handlers are called in the order of changes, one change after the other, also when a handler itself causes a change.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from argosy.kube.jsonreader import MAX_DEPTH, TOO_DEEP, is_deep
from argosy.kube.objects import (
    UNREADABLE,
    DecodeError,
    Identified,
    Identity,
    Metadata,
    Partial,
    decode,
    join_key,
    key_of,
    overgrown,
    version_number,
    weight,
)
from argosy.kube.selectors import LabelSelector

__all__ = ["Cache", "Change", "Relist"]

T = TypeVar("T", bound=Identified)
log = logging.getLogger(__name__)

#: Objects that do not fit their projection, after which nothing more is taken in.
MOST_UNREADABLE = 100
#: Whatever is too deep weighs more; most projections do not, and need not be looked through.
_LIGHTEST_DEEP = weight([]) * MAX_DEPTH
#: Characters of a name or namespace; no kind of Kubernetes has longer ones.
_LONGEST_NAME = 1024


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One object came (`old` is None), changed, or went (`new` is None). A re-created one goes first, then comes."""

    key: str
    old: T | None
    new: T | None
    #: It went in the sense that a list did not have it: nobody said that it was deleted.
    missing: bool = False
    #: Which part of ours wrote it, where this is the answer to our own write; "" for what the server tells.
    origin: str = ""


Handler = Callable[[Change[T]], None]
Indexer = Callable[[T], Iterable[str]]


class Cache(Generic[T]):
    def __init__(
        self,
        into: type[T],
        *,
        keep_raw: bool = False,
        indexers: Mapping[str, Indexer[T]] | None = None,
        keep: Callable[[Identity], bool] | None = None,
        namespaced: bool | None = None,
        selector: LabelSelector | None = None,
        on_change: Handler[T] | None = None,
    ) -> None:
        """`on_change` is the first handler, of whoever makes the cache for itself.

        `keep` tells by name, namespace and uid, which never change, whether an object is held at all; others are as absent.

        Whether objects have a namespace and which labels they carry is what was asked for; others are not taken in.
        """
        self.into = into
        self._decoder = msgspec.json.Decoder(into)
        #: The version up to which every event was seen; "" before the first list.
        self.version = ""
        #: The same as a number, where it is one.
        self._seen: int | None = None
        self._objects: dict[str, T] = {}
        #: Some bytes of memory that the projections take.
        self.held = 0
        # What lists brought of which the end never came.
        self._unfinished: set[str] = set()
        self._raw: dict[str, bytes] | None = {} if keep_raw else None
        self._keep = keep
        self._namespaced = namespaced
        self._selector = selector if selector is not None and not selector.empty else None
        #: Objects that do not fit the projection, by key, and why. Of those that did once, that state is kept.
        self.unreadable: dict[str, str] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, dict[str, dict[str, None]]] = {name: {} for name in self._indexers}
        # Objects we deleted ourselves: events up to this version were on their way already.
        self._forgotten: dict[str, int] = {}
        # Objects we wrote ourselves, and how many lists had been taken in by then: the next one may not have them yet.
        self._written: dict[str, int] = {}
        self._lists = 0
        self._handlers: list[Handler[T]] = [] if on_change is None else [on_change]
        self._pending: deque[Change[T]] = deque()
        self._notifying = False

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def raw(self, key: str) -> bytes | None:
        if self._raw is None:
            raise ValueError("this cache does not keep raw objects")
        return self._raw.get(key)

    def keys(self) -> list[str]:
        return list(self._objects)

    def values(self) -> list[T]:
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[T]:
        """The objects for which the indexer `name` gives `value`."""
        return [self._objects[key] for key in self._indexes[name].get(value, ())]

    def index_values(self, name: str) -> list[str]:
        return list(self._indexes[name])

    def add_handler(self, handler: Handler[T]) -> None:
        """Tell `handler` of every change from now on, and at once of every object that is already here."""
        known = list(self._objects.items())
        self._handlers.append(handler)
        for key, obj in known:
            _call(handler, Change(key, None, obj))

    def remove_handler(self, handler: Handler[T]) -> None:
        self._handlers.remove(handler)

    def apply(self, type_: str, raw: bytes) -> None:
        """Take in a watch event. Raises DecodeError when it is no Kubernetes object at all."""
        if type_ == "BOOKMARK":
            self._advance(decode(raw, Partial).metadata.resource_version)
            return
        deleted = type_ == "DELETED"
        obj, size = self._decoded(raw)
        metadata = obj.metadata if obj is not None else decode(raw, Partial).metadata
        # An object that left the selection is deleted with the labels it has.
        key = self._identified(metadata, None if deleted else self._selector)
        if deleted:
            self.unreadable.pop(key, None)
        if not self._is_known(key, metadata, deleted):
            if deleted:
                self._drop(key)
            elif obj is not None:
                self._put(key, obj, raw, size)
        self._advance(metadata.resource_version)

    def remember(self, raw: bytes, origin: str = "") -> None:
        """Take in the answer to one's own write, before the watch brings it. Handlers are told its `origin`.

        The answer may show somebody else's write as well, whose event then is no news.
        """
        obj, size = self._decoded(raw)
        if obj is None:
            return
        number = version_number(obj.metadata.resource_version)
        seen = self._seen
        # The watch is past this version: what it brought since, a deletion maybe, is newer than the answer.
        if number is not None and seen is not None and number <= seen:
            return
        key = key_of(obj.metadata)
        if not self._is_known(key, obj.metadata, False):
            self._written[key] = self._lists
            self._unfinished.discard(key)
            self._put(key, obj, raw, size, origin)

    def forget(self, key: str, resource_version: str) -> None:
        """One's own delete of this version was done: drop it, and ignore events that were on their way."""
        number = version_number(resource_version)
        if number is None:
            return
        if self._seen is None or number > self._seen:
            self._forgotten[key] = max(number, self._forgotten.get(key, 0))
        cached = self._objects.get(key)
        if cached is not None and (version_number(cached.metadata.resource_version) or 0) <= number:
            self._drop(key)

    def relist(self, version: str) -> "Relist[T]":
        """Start to take in a whole list read at `version`."""
        return Relist(self, version)

    def give_up(self) -> None:
        """Drop what came by lists that did not end: of one that is not believed, nothing is."""
        unfinished, self._unfinished = self._unfinished, set()
        for key in unfinished:
            self._drop(key, missing=True)

    def _decoded(self, raw: bytes) -> tuple[T | None, int]:
        """The projection and its weight; None for an object that is not kept, or (with a line in the log) does not fit it.

        The last good state of one that does not fit stays.
        """
        try:
            try:
                obj = self._decoder.decode(raw)
            except UNREADABLE:
                obj = decode(raw, self.into)
            kept = self._keep is None or self._keep(obj.metadata)
            size = _weighed(obj, raw) if kept else 0
        except DecodeError as error:
            self._pass_over(self._identified(decode(raw, Partial).metadata), str(error))
            return None, 0
        if self.unreadable:
            self.unreadable.pop(key_of(obj.metadata), None)
        return (obj, size) if kept else (None, 0)

    def _pass_over(self, key: str, why: str) -> None:
        if not self.unreadable:  # of many, one is told
            log.warning("%s %s cannot be read: %s", self.into.__name__, key, why)
        self.unreadable[key] = why
        if len(self.unreadable) > MOST_UNREADABLE:
            raise DecodeError(f"more than {MOST_UNREADABLE} objects cannot be read, such as {key}: {why}")

    def _identified(self, metadata: Identity, selector: LabelSelector | None = None) -> str:
        """The key of what has the identity of an object, and is one that was asked for."""
        name, namespace = metadata.name, metadata.namespace
        if not name:
            raise DecodeError("an object has no name")
        if len(name) > _LONGEST_NAME or len(namespace) > _LONGEST_NAME:
            raise DecodeError(f"an object has a name of more than {_LONGEST_NAME} characters")
        if self._namespaced is not None and bool(namespace) is not self._namespaced:
            raise DecodeError(f"{name}: an object of the wrong scope")
        if selector is not None and isinstance(metadata, Metadata) and not selector.matches(metadata.labels):
            raise DecodeError(f"{key_of(metadata)}: an object that was not asked for, by its labels")
        return join_key(namespace, name)

    def _is_kept(self, metadata: Identity) -> bool:
        return self._keep is None or self._keep(metadata)

    def _is_known(self, key: str, metadata: Identity, deleted: bool) -> bool:
        """Whether this version or a newer one was already taken in.

        A deletion may carry the version we know: that of an object which our own write moved out of the selection.
        """
        cached = self._objects.get(key)
        if cached is None and not self._forgotten:
            return False
        if cached is not None and cached.metadata.resource_version == metadata.resource_version:
            return not deleted
        number = version_number(metadata.resource_version)
        if number is None:
            return False
        known = version_number(cached.metadata.resource_version) if cached is not None else self._forgotten.get(key)
        return known is not None and number <= known

    def _advance(self, version: str) -> None:
        number = version_number(version)
        if number is not None and self._seen is not None and number <= self._seen:
            return
        if version:
            self.version, self._seen = version, number
        if self._forgotten and number is not None:
            self._forgotten = {key: floor for key, floor in self._forgotten.items() if floor > number}

    def _put(self, key: str, obj: T, raw: bytes, size: int, origin: str = "") -> None:
        old = self._objects.get(key)
        if old is not None and old.metadata.uid != obj.metadata.uid:
            self._drop(key)
            old = None
        self._objects[key] = obj
        # To weigh an old state again takes a microsecond; to note every weight would take memory for every object.
        self.held += size if old is None else size - weight(old)
        if self._raw is not None:
            self._raw[key] = raw
        if self._indexers:
            self._reindex(key, old, obj)
        self._notify(Change(key, old, obj, origin=origin))

    def _drop(self, key: str, missing: bool = False) -> None:
        old = self._objects.pop(key, None)
        if old is None:
            return
        self.held -= weight(old)
        if self._raw is not None:
            self._raw.pop(key, None)
        if self._indexers:
            self._reindex(key, old, None)
        self._notify(Change(key, old, None, missing))

    def _reindex(self, key: str, old: T | None, new: T | None) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            before, after = _values(indexer, old), _values(indexer, new)
            for value in before - after:
                members = index.get(value, {})
                members.pop(key, None)
                if not members:
                    index.pop(value, None)
            for value in after - before:
                index.setdefault(value, {})[key] = None

    def _notify(self, change: Change[T]) -> None:
        if self._notifying:
            self._pending.append(change)
            return
        self._notifying = True
        try:
            self._tell(change)
            while self._pending:
                self._tell(self._pending.popleft())
        finally:
            self._notifying = False

    def _tell(self, change: Change[T]) -> None:
        for handler in self._handlers:
            _call(handler, change)


class Relist(Generic[T]):
    """A list being taken in: objects are offered as pages come, `finish` drops what the list did not have."""

    def __init__(self, cache: Cache[T], version: str) -> None:
        self._cache = cache
        self._version = version
        self._number = version_number(version)
        self._listed: set[str] = set()
        #: Some bytes of memory that all it brought takes.
        self.size = 0
        seen = cache._seen
        self._rewound = seen is not None and self._number is not None and self._number < seen

    def offer(self, raw: bytes) -> None:
        cache = self._cache
        obj, size = cache._decoded(raw)
        metadata = obj.metadata if obj is not None else decode(raw, Partial).metadata
        key = cache._identified(metadata, cache._selector)
        if obj is not None or cache._is_kept(metadata):
            self._listed.add(key)
        if obj is None:
            return
        self.size += size
        cached = cache._objects.get(key)
        if self._rewound:
            wanted = cached is None or cached.metadata.resource_version != metadata.resource_version
        else:
            wanted = not cache._is_known(key, metadata, False) or self._is_beyond(key)
        if wanted:
            if cached is None:
                cache._unfinished.add(key)
            cache._put(key, obj, raw, size)

    def finish(self) -> None:
        cache = self._cache
        for key in self._gone():
            cache._drop(key, missing=True)
        for key in cache.unreadable.keys() - self._listed:
            del cache.unreadable[key]
        cache._written = {key: lists for key, lists in cache._written.items() if lists == cache._lists}
        cache._lists += 1
        cache._unfinished.clear()
        if self._rewound:
            cache._forgotten.clear()
            cache.version, cache._seen = self._version, self._number
        else:
            cache._advance(self._version)

    def _gone(self) -> Iterator[str]:
        cache = self._cache
        for key, obj in list(cache._objects.items()):
            if key in self._listed:
                continue
            # Our own write after the list was read: the list could not have it.
            if not self._rewound and self._is_newer(obj) and cache._written.get(key) == cache._lists:
                continue
            yield key

    def _is_newer(self, obj: T) -> bool:
        number = version_number(obj.metadata.resource_version)
        return number is not None and self._number is not None and number > self._number

    def _is_beyond(self, key: str) -> bool:
        """Whether what is cached has a version that there cannot be yet: only our own writes are ahead of a list."""
        cached = self._cache._objects.get(key)
        return cached is not None and self._is_newer(cached) and self._cache._written.get(key) != self._cache._lists


def _weighed(obj: Identified, raw: bytes) -> int:
    """What an object weighs. Raises DecodeError for one that is larger or deeper than objects are."""
    if why := overgrown(obj.metadata, raw):
        raise DecodeError(why)
    try:
        size = weight(obj)
        if size > _LIGHTEST_DEEP and is_deep(msgspec.to_builtins(obj)):
            raise DecodeError(TOO_DEEP)
    except RecursionError:
        raise DecodeError(TOO_DEEP) from None
    return size


def _values(indexer: Indexer[T], obj: T | None) -> set[str]:
    if obj is None:
        return set()
    try:
        return set(indexer(obj))
    except Exception:
        log.exception("an indexer failed on %s", key_of(obj.metadata))
        return set()


def _call(handler: Handler[T], change: Change[T]) -> None:
    try:
        handler(change)
    except Exception:
        log.exception("a handler failed on %s", change.key)
