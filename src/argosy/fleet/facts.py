"""Facts: what decisions read of all members besides available amounts, one column per fact.

Snapshots that differ only in available amounts share one `Facts`, and with it every answer that follows from facts alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from argosy.fleet.columns import LARGEST, Amounts, Column, Mask, Rows, read_only
from argosy.fleet.fingerprint import FleetHashes
from argosy.fleet.member import ApiKey, Member
from argosy.fleet.memo import Memo
from argosy.fleet.tables import Tables, changed_fields, table
from argosy.fleet.taints import TaintTable
from argosy.kube.hashing import fnv1_32

__all__ = ["Facts", "Labelled"]

#: Cached answers of one column each: policies are reused by many objects, so few are distinct.
_COLUMNS_KEPT: Final = 512
#: Cached answers of several columns each.
_EVALUATIONS_KEPT: Final = 64

#: The fields that facts depend on. The digest stands for the APIs, which are slow to compare.
_FIELDS: Final = frozenset(
    {
        "joined",
        "ready",
        "terminating",
        "labels",
        "taints",
        "taints_digest",
        "apis_digest",
        "allocatable",
        "power",
        "price",
    }
)


class Labelled(NamedTuple):
    """One label of all clusters: the distinct values, sorted, and which of them each cluster has; -1 if it has none."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]


class Facts(Tables):
    """The available amounts of the members here, and whether these are stale, are out of date: see `snapshot.Available`."""

    def __init__(self, members: Mapping[str, Member], built: Mapping[str, Any] | None = None) -> None:
        super().__init__(members, built)
        #: Cached answers that follow from all of these facts.
        self.answers = Memo(_EVALUATIONS_KEPT)

    def replaced(self, before: Member, after: Member) -> "Facts":
        """The facts after one member changed; the same facts if none of its facts did."""
        changed = changed_fields(before, after, _FIELDS)
        if not changed:
            return self
        built = self._still_true(changed, self.index[after.name], after)
        for name, some in built.items():
            if isinstance(some, Facts) and after.name in some.members:
                built[name] = some.replaced(before, after)
        return Facts({**self.members, after.name: after}, built)

    # Subsets of the members. None stands for all of them: facts that referred to themselves would never be freed.

    def joined_only(self) -> "Facts":
        return self if self._joined is None else self._joined

    @table("joined")
    def _joined(self) -> "Facts | None":
        return self._narrowed(lambda member: member.joined)

    def discovered_only(self) -> "Facts":
        return self if self._discovered is None else self._discovered

    @table("joined", "apis_digest")
    def _discovered(self) -> "Facts | None":
        return self._narrowed(lambda member: member.joined and bool(member.apis))

    def _narrowed(self, belongs: Callable[[Member], bool]) -> "Facts | None":
        members = {name: member for name, member in self.members.items() if belongs(member)}
        return None if len(members) == len(self) else Facts(members)

    # Names.

    @table()
    def names(self) -> tuple[str, ...]:
        return tuple(self.members)

    @table()
    def index(self) -> Mapping[str, int]:
        return {name: position for position, name in enumerate(self.members)}

    @table()
    def name_array(self) -> npt.NDArray[np.object_]:
        names = np.empty(len(self), dtype=np.object_)
        names[:] = self.names
        return names

    @table()
    def name_hashes(self) -> npt.NDArray[np.uint32]:
        return np.array([fnv1_32(name.encode()) for name in self.members], dtype=np.uint32)

    # Columns.

    @table()
    def everyone(self) -> Mask:
        return read_only(np.ones(len(self), dtype=np.bool_))

    @table()
    def zeros(self) -> Column:
        return read_only(np.zeros(len(self), dtype=np.int64))

    @table()
    def unlimited(self) -> Column:
        return read_only(np.full(len(self), LARGEST, dtype=np.int64))

    @table("joined")
    def joined(self) -> Mask:
        return self._mask(lambda member: member.joined)

    @table("ready")
    def ready(self) -> Mask:
        ready = self._mask(lambda member: member.ready)
        return self.everyone if ready.all() else ready

    @table("ready", "apis_digest")
    def undiscovered(self) -> Mask:
        """Which are not ready, and have not told yet which APIs they serve: they have just joined, perhaps again."""
        return self._mask(lambda member: not member.ready and not member.apis)

    @table("terminating")
    def terminating(self) -> Mask:
        return self._mask(lambda member: member.terminating)

    @table("terminating")
    def staying(self) -> Mask:
        return ~self.terminating if self.terminating.any() else self.everyone

    @table("power")
    def power(self) -> Column:
        return self._numbers(lambda member: member.power)

    @table("price")
    def price(self) -> Column:
        return self._numbers(lambda member: -1 if member.price is None else member.price)

    @table("taints")
    def taints(self) -> TaintTable:
        return TaintTable([member.taints for member in self.members.values()])

    @table("taints", "ready")
    def tainted_or_unready(self) -> Rows:
        return np.flatnonzero(self._mask(lambda member: bool(member.taints) or not member.ready))

    @table("labels", "taints_digest", "apis_digest")
    def hashes(self) -> FleetHashes:
        members = self.members.values()
        return FleetHashes(
            list(self.members),
            [member.labels for member in members],
            [member.labels_digest for member in members],
            [member.taints_digest for member in members],
            [member.apis_digest for member in members],
        )

    @table("allocatable")
    def allocatable(self) -> Amounts:
        return Amounts([member.allocatable for member in self.members.values()])

    # Labels.

    def where(self, predicate: Callable[[Member], bool], question: object) -> Mask:
        return self._label_answers.recall(question, lambda: self._mask(predicate))

    @table("labels")
    def _label_answers(self) -> Memo:
        return Memo(_COLUMNS_KEPT)

    def labelled(self, key: str) -> Labelled:
        return self._labels.recall(key, lambda: self._labelled(key))

    @table("labels")
    def _labels(self) -> Memo:
        return Memo(_COLUMNS_KEPT)

    def _labelled(self, key: str) -> Labelled:
        found = [member.labels.get(key) for member in self.members.values()]
        values = tuple(sorted({value for value in found if value is not None}))
        code = {value: position for position, value in enumerate(values)}
        codes = np.array([-1 if value is None else code[value] for value in found], dtype=np.int32)
        return Labelled(values, read_only(codes))

    # Served APIs.

    def serving(self, api: ApiKey) -> Mask:
        return self._serving_answers.recall(api, lambda: self._serving(api))

    @table("apis_digest")
    def _serving_answers(self) -> Memo:
        return Memo(_COLUMNS_KEPT)

    def _serving(self, api: ApiKey) -> Mask:
        sets, of_cluster = self._api_sets
        serving: Mask = np.array([api in served for served in sets], dtype=np.bool_)[of_cluster]
        return self.everyone if serving.all() else serving

    @table("apis_digest")
    def _api_sets(self) -> tuple[list[frozenset[ApiKey]], npt.NDArray[np.intp]]:
        """The distinct sets of served APIs, and which of them each cluster has: most clusters of a fleet are alike."""
        position: dict[frozenset[ApiKey], int] = {}
        of_cluster = [position.setdefault(member.apis, len(position)) for member in self.members.values()]
        return list(position), np.array(of_cluster, dtype=np.intp)
