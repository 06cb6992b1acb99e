"""Cache: an informer's objects of one resource, and the rules by which versions replace each other. No I/O.

Objects are kept as projections, and as bytes only on request. Versions of an object only move forward: an event older than the
cached version (because the response to our own write came first) changes nothing. That order is valid within one history of
the server. A list older than what was already seen means that the server was restored from a backup, and replaces everything; so
does an object that is older in a newer list.

Servers are not trusted. Anything without the identity of an object, or outside of the request, is a DecodeError. An object that
only does not fit its projection, or is too large or too deep, is skipped (`unreadable`); too many of them are a DecodeError,
too. `held` is the memory in use; whoever fills the cache decides when to stop.

Handlers are called in the order of changes, one change at a time, even if a handler itself causes a change.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
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

#: The largest number of objects that do not fit their projection.
MOST_UNREADABLE = 100
#: Values deeper than allowed weigh at least this much; most projections weigh less and need no check.
_LIGHTEST_DEEP = weight([]) * MAX_DEPTH
#: Characters of a name or namespace; no kind of Kubernetes has longer ones.
_LONGEST_NAME = 1024


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One object was added (`old` is None), changed, or removed (`new` is None). A re-created one is removed first, then
    added."""

    key: str
    old: T | None
    new: T | None
    #: It was removed because a list did not have it: no deletion event was seen.
    missing: bool = False
    #: The part of ours that wrote it, if this is the response to our own write; "" for events and lists.
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
        """`on_change` is the first handler.

        `keep` decides by name, namespace and uid, which never change, whether an object is kept; others count as absent.

        Objects of another scope, or whose labels do not match the selector, are not accepted.
        """
        self.into = into
        self._decoder = msgspec.json.Decoder(into)
        #: The version up to which every event was seen; "" before the first list.
        self.version = ""
        #: The same as a number, where it is one.
        self._seen: int | None = None
        self._objects: dict[str, T] = {}
        #: The approximate memory of the projections, in bytes.
        self.held = 0
        # Objects of lists that were not completed.
        self._unfinished: set[str] = set()
        self._raw: dict[str, bytes] | None = {} if keep_raw else None
        self._keep = keep
        self._namespaced = namespaced
        self._selector = selector if selector is not None and not selector.empty else None
        #: Objects that do not fit the projection, by key, and why. If they once did, that state is kept.
        self.unreadable: dict[str, str] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, dict[str, dict[str, None]]] = {name: {} for name in self._indexers}
        # Objects we deleted ourselves: events up to this version are ignored.
        self._forgotten: dict[str, int] = {}
        # Objects we wrote ourselves, and the number of lists applied by then: the next one may not include them yet.
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
        """Call `handler` with every change from now on, and at once with every cached object."""
        known = list(self._objects.items())
        self._handlers.append(handler)
        for key, obj in known:
            _call(handler, Change(key, None, obj))

    def remove_handler(self, handler: Handler[T]) -> None:
        self._handlers.remove(handler)

    def apply(self, type_: str, raw: bytes) -> None:
        """Apply a watch event. Raises DecodeError if it is not a Kubernetes object."""
        if type_ == "BOOKMARK":
            self._advance(decode(raw, Partial).metadata.resource_version)
            return
        deleted = type_ == "DELETED"
        obj, size = self._decoded(raw)
        metadata = obj.metadata if obj is not None else decode(raw, Partial).metadata
        # An object that left the selection is deleted with its new labels.
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
        """Apply the response to our own write, before the watch event comes. Handlers get its `origin`.

        The response may include somebody else's write, whose event then changes nothing.
        """
        obj, size = self._decoded(raw)
        if obj is None:
            return
        number = version_number(obj.metadata.resource_version)
        seen = self._seen
        # The watch is past this version: what it brought since, perhaps a deletion, is newer than the response.
        if number is not None and seen is not None and number <= seen:
            return
        key = key_of(obj.metadata)
        if not self._is_known(key, obj.metadata, False):
            self._written[key] = self._lists
            self._unfinished.discard(key)
            self._put(key, obj, raw, size, origin)

    def forget(self, key: str, resource_version: str) -> None:
        """Our own delete of this version was done: drop the object, and ignore older events."""
        number = version_number(resource_version)
        if number is None:
            return
        if self._seen is None or number > self._seen:
            self._forgotten[key] = max(number, self._forgotten.get(key, 0))
        cached = self._objects.get(key)
        if cached is not None and (version_number(cached.metadata.resource_version) or 0) <= number:
            self._drop(key)

    def relist(self, version: str) -> "Relist[T]":
        """Start to apply a whole list read at `version`."""
        return Relist(self, version)

    def give_up(self) -> None:
        """Drop the objects of lists that were not completed: a list is applied as a whole or not at all."""
        unfinished, self._unfinished = self._unfinished, set()
        for key in unfinished:
            self._drop(key, missing=True)

    def _decoded(self, raw: bytes) -> tuple[T | None, int]:
        """The projection and its weight; None for an object that is not kept, or (with a log line) does not fit.

        The last valid state of one that does not fit stays.
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
        if not self.unreadable:  # only the first one is logged
            log.warning("%s %s cannot be read: %s", self.into.__name__, key, why)
        self.unreadable[key] = why
        if len(self.unreadable) > MOST_UNREADABLE:
            raise DecodeError(f"more than {MOST_UNREADABLE} objects cannot be read, such as {key}: {why}")

    def _identified(self, metadata: Identity, selector: LabelSelector | None = None) -> str:
        """The key of an object, checked for an object's identity and against the request."""
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
        """Whether this version or a newer one was already applied.

        A deletion may carry the cached version, if our own write moved the object out of the selection.
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
        _share(obj)
        self._objects[key] = obj
        # Computing an old state's weight again takes a microsecond; storing every weight would cost memory per object.
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
    """A list being applied: objects are offered page by page, `finish` drops what the list did not have."""

    def __init__(self, cache: Cache[T], version: str) -> None:
        self._cache = cache
        self._version = version
        self._number = version_number(version)
        self._listed: set[str] = set()
        #: The approximate memory of all its objects, in bytes.
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
            known = cache._is_known(key, metadata, False)
            wanted = not known or self._is_beyond(key) or self._is_after(key, metadata)
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
            # We wrote it after the list was read, so the list could not include it.
            if not self._rewound and self._is_newer(obj) and cache._written.get(key) == cache._lists:
                continue
            yield key

    def _is_newer(self, obj: T) -> bool:
        number = version_number(obj.metadata.resource_version)
        return number is not None and self._number is not None and number > self._number

    def _is_beyond(self, key: str) -> bool:
        """Whether a cached object has a version from the future: only our own writes are ahead of a list."""
        cached = self._cache._objects.get(key)
        return cached is not None and self._is_newer(cached) and self._cache._written.get(key) != self._cache._lists

    def _is_after(self, key: str, metadata: Identity) -> bool:
        """Whether the list was read after what is cached was written: then it is right, also with an older version."""
        cached = self._cache._objects.get(key)
        if cached is None:
            known = self._cache._forgotten.get(key)
        elif cached.metadata.resource_version == metadata.resource_version:
            return False
        else:
            known = version_number(cached.metadata.resource_version)
        return known is not None and self._number is not None and known <= self._number


def _share(obj: Identified) -> None:
    """Objects of a type have most keys of their labels and annotations in common, and many values: each is kept once."""
    metadata = obj.metadata
    if isinstance(metadata, Metadata):
        for texts in (metadata.labels, metadata.annotations):
            shared = {intern(key): intern(value) for key, value in texts.items()}
            texts.clear()
            texts.update(shared)


def _weighed(obj: Identified, raw: bytes) -> int:
    """An object's weight. Raises DecodeError for one that is too large or too deep."""
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
