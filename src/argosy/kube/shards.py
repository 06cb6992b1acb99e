"""Shards: a collection split by the hash of each object's uid, so that several readers share its watch (KEP-5866). Pure.

A server that supports `shardSelector` sends a reader only its part and says so in the list's `shardInfo`; any other ignores the
parameter and sends everything. So a reader requests its shard and still filters: during an upgrade of servers, a list may come
from one that supports shards and the watch after it from one that does not.
"""

from typing import Final

import msgspec

from argosy.kube.hashing import fnv1a_64

__all__ = ["SPACE", "Shard", "ShardError"]

#: Hashes are 64 bits.
SPACE: Final = 1 << 64
_FIELD: Final = "object.metadata.uid"


class ShardError(ValueError):
    """There is no such shard."""


class Shard(msgspec.Struct, frozen=True):
    """Part `index` (from 0) of `count` equal parts; the parts of one count cover every object exactly once."""

    index: int
    count: int

    def __post_init__(self) -> None:
        if not (1 <= self.count <= SPACE and 0 <= self.index < self.count):
            raise ShardError(f"there is no shard {self.index} of {self.count}")

    @property
    def start(self) -> int:
        """The first hash in it."""
        return self.index * SPACE // self.count

    @property
    def end(self) -> int:
        """The first hash after it."""
        return (self.index + 1) * SPACE // self.count

    @property
    def selector(self) -> str:
        """As the API's shardSelector: 16 digits, of which only the end of the whole space has one more."""
        return f"shardRange({_FIELD}, '0x{self.start:016x}', '0x{self.end:016x}')"

    def covers(self, uid: str) -> bool:
        return self.start <= fnv1a_64(uid.encode()) < self.end

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
