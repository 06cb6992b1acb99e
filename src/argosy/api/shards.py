"""Shards: which of several controller processes owns an object, and what follows from that.

The key is the object's namespace; objects without one, namespaces and clusters among them, belong to shard 0. A namespace
falls into one of 256 buckets by a fixed hash (the top 8 bits of the 64-bit BLAKE2b of its name), an object without one into
bucket 0; shard i of n owns the buckets b with ⌊b·n/256⌋ = i. So a namespace's bucket never changes, whatever n is, and can be
written on member objects as the label `argosy.io/bucket`.
"""

import re
from hashlib import blake2b
from typing import Final

import msgspec

from argosy.api import keys

__all__ = ["BUCKETS", "MOST", "WHOLE", "Shard", "bucket_of", "lease_name", "parse", "shard_of_lease"]

BUCKETS: Final = 256
#: The largest number of shards; with more, their shares of the buckets would be too uneven.
MOST: Final = 64
LEASE: Final = "argosy-controllers"

_FORM: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)
_LEASE_FORM: Final = re.compile(rf"{LEASE}(?:-(\d{{1,4}})-of-(\d{{1,4}}))?", re.ASCII)


def bucket_of(namespace: str) -> int:
    """The bucket of everything in a namespace; "" stands for objects without one."""
    return blake2b(namespace.encode(), digest_size=8).digest()[0] if namespace else 0


class Shard(msgspec.Struct, frozen=True):
    """Number `index`, from 0, of `count` processes that share the objects."""

    index: int = 0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def is_whole(self) -> bool:
        """Whether this process owns everything."""
        return self.count == 1

    @property
    def owns_cluster_scoped(self) -> bool:
        return self.owns("")

    def owns(self, namespace: str) -> bool:
        """Whether the objects of this namespace ("" for those in none) are this shard's."""
        return self.count == 1 or self.owns_bucket(bucket_of(namespace))

    def owns_bucket(self, bucket: int) -> bool:
        return bucket * self.count // BUCKETS == self.index

    def member_selector(self) -> str:
        """The label selector that excludes most objects of other shards in a member; "" if this shard owns everything.

        It names the others' buckets, not ours, so that objects without a bucket (yet) are included.
        """
        if self.is_whole:
            return ""
        others = ",".join(str(bucket) for bucket in range(BUCKETS) if not self.owns_bucket(bucket))
        return f"{keys.BUCKET_LABEL} notin ({others})"


WHOLE: Final = Shard()


def parse(text: str) -> Shard:
    """From `i/n`. Raises ValueError with a message for users."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a shard; write i/n, for example 0/3, 1/3 and 2/3")
    index, count = int(found[1]), int(found[2])
    if not 1 <= count <= MOST:
        raise ValueError(f"there can be 1 to {MOST} shards, not {count}")
    if index >= count:
        raise ValueError(f"shards count from 0: the last of {count} is {count - 1}/{count}")
    return Shard(index, count)


def lease_name(shard: Shard) -> str:
    """The lease that only one owner of a shard can hold."""
    return LEASE if shard.is_whole else f"{LEASE}-{shard.index}-of-{shard.count}"


def shard_of_lease(name: str) -> Shard | None:
    """The shard of a lease; None for other leases."""
    found = _LEASE_FORM.fullmatch(name)
    if found is None:
        return None
    return Shard(int(found[1]), int(found[2])) if found[1] else WHOLE
