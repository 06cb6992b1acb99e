"""Storage: the contract of a store of versioned keys, on one page. Nothing here knows Kubernetes objects.

A store maps keys to bytes. Every committed write gets a *version*: one integer that grows over the whole store and is never
used twice, not after a failed batch, a crash, a restart or a restore. A write's version is part of the stored bytes, so a
writer passes `encode`, called exactly once with that version; the versions of failed writes are skipped.

Order of a write: durable → `on_commit` (caches, watchers) → the writer's await returns. `on_commit` is called on the event
loop, in version order, with whole batches; a failed batch leaves no trace in it.

Keys sort by code point; a prefix ends in "/". `range` and `history` see the past as far back as `compacted`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

__all__ = [
    "Change",
    "Changed",
    "Compacted",
    "Encode",
    "Exists",
    "OnBatch",
    "OnCommit",
    "Record",
    "Storage",
    "StorageDamaged",
    "StorageError",
    "StorageFull",
]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One key's state: the version of its last write, and what was stored."""

    key: str
    version: int
    value: bytes


class Change(msgspec.Struct, frozen=True, gc=False):
    """One committed write. `value` is what was stored; for a deletion the final state, which is no longer stored."""

    key: str
    version: int
    value: bytes
    deleted: bool = False
    #: The state before; None when the key was created.
    previous: Record | None = None

    @property
    def size(self) -> int:
        return len(self.value) + (len(self.previous.value) if self.previous is not None else 0)


Encode = Callable[[int], bytes]
OnCommit = Callable[[Sequence[Change]], None]
#: Called after each commit to a disk or a network: with the number of writes and the seconds it took.
OnBatch = Callable[[int, float], None]


class StorageError(Exception):
    """The write did not happen (I/O error); reads go on, and later writes may work again."""


class StorageFull(StorageError):
    """The write did not happen because there is no room."""


class StorageDamaged(StorageError):
    """Open: acknowledged writes are missing. Nothing was changed."""


class Exists(Exception):
    """Create: the key already exists."""


class Changed(Exception):
    """Replace or delete: the key is not at the expected version; `current` is its version, None if it is absent."""

    def __init__(self, current: int | None):
        super().__init__(current)
        self.current = current


class Compacted(Exception):
    """The history does not go back that far."""


class Storage(Protocol):
    @property
    def version(self) -> int:
        """The version of the last committed write (or the one the store started from)."""
        ...

    @property
    def compacted(self) -> int:
        """History after this version is complete; before it there is none."""
        ...

    async def open(self, on_commit: OnCommit, on_batch: OnBatch) -> Sequence[Record]:
        """Start; returns all current records in key order. Raises StorageError with one line that says what is wrong."""
        ...

    async def close(self) -> None:
        """Finish the writes in progress and release everything."""
        ...

    async def create(self, key: str, encode: Encode) -> Record:
        """Raises Exists."""
        ...

    async def replace(self, key: str, expected: int, encode: Encode) -> Record:
        """Compare-and-set. Raises Changed."""
        ...

    async def delete(self, key: str, expected: int, encode: Encode) -> Record:
        """Compare-and-delete; `encode` makes the final state that watchers see. Raises Changed."""
        ...

    async def get(self, key: str) -> Record | None: ...

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int | None = None) -> Sequence[Record]:
        """Records under `prefix` after the key `after`, in key order, now or as of a version. Raises Compacted."""
        ...

    async def history(self, prefix: str, since: int, until: int, *, most: int = 0, size: int = 0) -> Sequence[Change]:
        """Changes under `prefix` with since < version <= until, in order.

        Raises Compacted, also if there are more than `most` of them, or more than `size` bytes in them; 0 is no limit.
        """
        ...

    async def compact(self, version: int) -> None:
        """Drop history up to `version`; current records stay."""
        ...

    @property
    def scarce(self) -> bool:
        """Hardly any room is left: only writes that help to free some should be done."""
        ...

    async def give_up_reserve(self) -> bool:
        """There was no room for an urgent write: returns whether a retry may succeed."""
        ...

    async def relieve(self) -> bool:
        """After StorageFull: drop all history; returns whether there is room again. Raises StorageError."""
        ...
