"""Fingerprint of a fleet: enough to tell later what changed in it, in a few hundred bytes at any fleet size.

Each facet (labels, taints, served APIs) is a sum of 64-bit hashes over the clusters, so it does not depend on order and can be
recomputed for a subset; of labels, some keys may be chosen. A Bloom filter of the names tells which of today's clusters were
there then: it has no false negatives, and a false positive shows in the sum of the names. So "a cluster joined" and "a known
cluster changed or left" are told apart without a list of clusters. In doubt the answer is "changed".
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from copy import copy
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from argosy.fleet.member import digest
from argosy.fleet.memo import Memo

__all__ = ["Fingerprint", "FleetChange", "FleetHashes"]

_BITS_PER_CLUSTER: Final = 6
_PROBES: Final = 4
_ANSWERS_KEPT: Final = 256
#: The largest filter; larger fleets get more false positives, and so "changed" sooner.
_LARGEST_FILTER: Final = 376
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)

_Hashes = npt.NDArray[np.uint64]


class Fingerprint(msgspec.Struct, frozen=True):
    """What is stored: the number of clusters, sums as hexadecimal text, and the filter of names in base64."""

    count: int
    names: str
    labels: str
    taints: str
    apis: str
    seen: str


class FleetChange(msgspec.Struct, frozen=True):
    """What differs. The first three are about clusters known then; `joined` means that there are new ones and none left."""

    labels: bool = False
    taints: bool = False
    apis: bool = False
    joined: bool = False


_EVERYTHING_CHANGED: Final = FleetChange(labels=True, taints=True, apis=True)


class FleetHashes:
    """The hashes of one fleet's clusters, by facet, ready to be summed."""

    __slots__ = ("_all_labels", "_apis", "_labels", "_names", "_reading", "_since", "_taints", "fingerprint", "short")

    def __init__(
        self,
        names: list[str],
        labels: list[Mapping[str, str]],
        label_digests: list[int],
        taints: list[int],
        apis: list[int],
    ) -> None:
        self._names: _Hashes = np.array([digest(name) for name in names], dtype=np.uint64)
        self._all_labels = labels
        self._labels = self._mixed(label_digests)
        self._taints = self._mixed(taints)
        self._apis = self._mixed(apis)
        self._finish()

    def _finish(self) -> None:
        self.fingerprint = self._fingerprint()
        self._reading, self._since = Memo(_ANSWERS_KEPT), Memo(_ANSWERS_KEPT)
        #: All facets in one number, as text.
        self.short = f"{digest(self.fingerprint):016x}"

    def reading(self, keys: tuple[str, ...] | None) -> "FleetHashes":
        """The same for these labels only; None for all. Cached: policies read few labels."""
        return self if keys is None else self._reading.recall(keys, lambda: self._with_labels(keys))

    def _with_labels(self, keys: tuple[str, ...]) -> "FleetHashes":
        """Labels with other keys do not count."""
        digests = [digest([labels.get(key) for key in keys]) if keys else 0 for labels in self._all_labels]
        hashes = copy(self)
        hashes._labels = self._mixed(digests)
        hashes._finish()
        return hashes

    def since(self, then: Fingerprint) -> FleetChange:
        """What changed since the fleet that had this fingerprint. Cached: most objects were scheduled on the same few
        fleets."""
        return self._since.recall(then, lambda: self._changed_since(then))

    def _changed_since(self, then: Fingerprint) -> FleetChange:
        if then == self.fingerprint:
            return FleetChange()
        known = self.known_then(then)
        if known is None:
            return _EVERYTHING_CHANGED
        return FleetChange(
            labels=_total(self._labels[known]) != then.labels,
            taints=_total(self._taints[known]) != then.taints,
            apis=_total(self._apis[known]) != then.apis,
            joined=len(self._names) > then.count,
        )

    def known_then(self, then: Fingerprint) -> npt.NDArray[np.bool_] | None:
        """Which of today's clusters were there then; None if one of those is missing, or in doubt."""
        bits = _filter_bits(then.seen)
        if bits is None:
            return None
        hits: npt.NDArray[np.bool_] = np.logical_and.reduce(bits[_positions(self._names, len(bits))], axis=1)
        if int(hits.sum()) == then.count + 1:
            # One false positive: the surplus in the sum of names is its hash.
            surplus = (int(self._names[hits].sum()) - _number(then.names)) % 2**64
            hits &= self._names != np.uint64(surplus)
        if int(hits.sum()) != then.count or _total(self._names[hits]) != then.names:
            return None
        return hits

    def _mixed(self, digests: list[int]) -> _Hashes:
        """Mixed with the name, so that two clusters that swap labels are a change."""
        facet: _Hashes = np.array(digests, dtype=np.uint64)
        mixed = (self._names ^ facet) * _MIX
        return (mixed ^ (mixed >> _HALF)) * _MIX + facet

    def _fingerprint(self) -> Fingerprint:
        size = min(max(len(self._names) * _BITS_PER_CLUSTER // 8 + 1, 2), _LARGEST_FILTER)
        bits = np.zeros(size * 8, dtype=np.bool_)
        bits[_positions(self._names, len(bits)).ravel()] = True
        return Fingerprint(
            count=len(self._names),
            names=_total(self._names),
            labels=_total(self._labels),
            taints=_total(self._taints),
            apis=_total(self._apis),
            seen=b64encode(np.packbits(bits).tobytes()).decode(),
        )


def _positions(names: _Hashes, bits: int) -> npt.NDArray[np.intp]:
    low, high = names & np.uint64(0xFFFFFFFF), names >> _HALF
    probes = low[:, None] + high[:, None] * np.arange(_PROBES, dtype=np.uint64)
    return (probes % np.uint64(bits)).astype(np.intp)


def _filter_bits(seen: str) -> npt.NDArray[np.bool_] | None:
    try:
        packed = b64decode(seen, validate=True)
    except (Base64Error, ValueError):
        return None
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8)).astype(np.bool_) if packed else None


def _total(hashes: _Hashes) -> str:
    return f"{int(hashes.sum(dtype=np.uint64)):016x}"


def _number(total: str) -> int:
    try:
        return int(total, 16)
    except ValueError:
        return 0
