"""Fleet: an immutable snapshot of all member clusters, laid out in columns.

A decision reads whole columns at once (one bool or number per cluster, clusters sorted by name). A snapshot consists of
`Facts` and `Available`. Most changes affect one cluster's available amounts, and leave the facts shared.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cached_property
from itertools import repeat
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from argosy.api.clusters import FederatedCluster
from argosy.fleet.columns import LARGEST, Amounts, Column, Mask, Rows, read_only
from argosy.fleet.facts import Facts, Labelled
from argosy.fleet.fingerprint import FleetHashes
from argosy.fleet.member import CPU, ApiKey, Member, member_of
from argosy.fleet.memo import Memo
from argosy.fleet.tables import Tables, changed_fields, table
from argosy.fleet.taints import TaintTable
from argosy.fleet.workloads import Workloads

__all__ = ["CPU", "GPU", "LARGEST", "MEMORY", "Available", "Column", "Fleet", "Labelled", "Mask", "Rows"]

MEMORY = "memory"
GPU = "nvidia.com/gpu"

#: Cached answers of one column each.
_COLUMNS_KEPT: Final = 512
#: Cached answers of several columns each.
_EVALUATIONS_KEPT: Final = 64

#: The fields of a member that available amounts depend on.
_AVAILABLE: Final = frozenset({"available", "stale"})

T = TypeVar("T")


class Available(Tables):
    """The available amounts of members, as reported, or less the reserved ones."""

    @table("available")
    def amounts(self) -> Amounts:
        return Amounts([member.available for member in self.members.values()])

    @table("stale")
    def stale(self) -> Mask:
        """Clusters whose amounts have not been updated for long."""
        return self._mask(lambda member: member.stale)

    def replaced(self, row: int, before: Member, after: Member) -> "Available":
        """The tables after the member in this row changed."""
        changed = changed_fields(before, after, _AVAILABLE)
        return Available({**self.members, after.name: after}, self._still_true(changed, row, after))

    def with_amounts(self, amounts: Amounts) -> "Available":
        """The same members with these amounts, whatever they report."""
        return Available(self.members, {"amounts": amounts, "stale": self.stale})

    def only(self, rows: Rows) -> "Available":
        """For the members in these rows."""
        every = tuple(self.members.values())
        members = {every[row].name: every[row] for row in rows.tolist()}
        return Available(members, {"amounts": self.amounts.only(rows), "stale": self.stale[rows]})


class Fleet:
    """All members at one moment. Immutable; the `with_` and `without_` methods return another fleet."""

    def __init__(
        self, facts: Facts | None = None, reported: Available | None = None, workloads: Workloads | None = None
    ) -> None:
        """`reported` may have more clusters than the facts, which decide. Without arguments: an empty fleet."""
        self._facts = Facts({}) if facts is None else facts
        self._reported = Available({}) if reported is None else reported
        #: The federation's placements, for rules about other workloads. Shared by all snapshots, and not compared.
        self.workloads = Workloads() if workloads is None else workloads
        self._columns = Memo(_COLUMNS_KEPT)
        self._evaluations = Memo(_EVALUATIONS_KEPT)
        self._located: _Located | None = None

    @classmethod
    def of(cls, clusters: Iterable[FederatedCluster]) -> "Fleet":
        return cls.of_members(member_of(cluster) for cluster in clusters)

    @classmethod
    def of_members(cls, members: Iterable[Member], workloads: Workloads | None = None) -> "Fleet":
        by_name = {member.name: member for member in sorted(members, key=lambda each: each.name)}
        return cls(Facts(by_name), Available(by_name), workloads)

    def __len__(self) -> int:
        return len(self._facts.members)

    def __contains__(self, name: object) -> bool:
        return name in self._facts.members

    def member(self, name: str) -> Member | None:
        return self._reported.members[name] if name in self else None

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """In the order of the columns."""
        return tuple(map(self._reported.members.__getitem__, self.names))

    # The next snapshot.

    def with_cluster(self, cluster: FederatedCluster) -> "Fleet":
        """The fleet after this cluster was added or changed; the same fleet if nothing a decision reads changed."""
        before = self.member(cluster.name)
        after = member_of(cluster, before)
        if before is None:
            return Fleet.of_members([*self.members, after], self.workloads)
        return self if after == before else self._replaced(before, after)

    def without_cluster(self, name: str) -> "Fleet":
        if name not in self:
            return self
        return Fleet.of_members((member for member in self.members if member.name != name), self.workloads)

    def with_member(self, after: Member) -> "Fleet":
        """The fleet with other facts of a cluster that it has."""
        before = self.member(after.name)
        return self if before is None or before == after else self._replaced(before, after)

    def with_stale(self, name: str, stale: bool) -> "Fleet":
        """Set whether a cluster's available amounts are too old to use."""
        before = self.member(name)
        if before is None or before.stale == stale:
            return self
        return self._replaced(before, msgspec.structs.replace(before, stale=stale))

    def with_workloads(self, workloads: Workloads) -> "Fleet":
        """The same members, with this index of placed workloads."""
        return Fleet(self._facts, self._reported, workloads)

    def with_reserved(self, reserved: Mapping[str, Mapping[str, int]]) -> "Fleet":
        """The same fleet with less available: amounts by resource and cluster (see `fleet.reservations`).

        The members themselves stay as they report.
        """
        if not reserved:
            return self
        # Copies, since the sums keep changing and the argument of `column` must not.
        taken = {resource: self.column(dict(amounts)) for resource, amounts in reserved.items()}
        return self.with_available(self.amounts_available.less(taken))

    def with_committed(self, committed: Mapping[str, Mapping[str, int]]) -> "Fleet":
        """The same fleet, with no more available than these amounts leave of each cluster, by resource and cluster.

        Whatever members report: figures stored before a restart can be older than the placements.
        """
        if not committed:
            return self
        left = {
            resource: self.allocatable(resource) - self.column(dict(taken)) for resource, taken in committed.items()
        }
        return self.with_available(self.amounts_available.at_most(left))

    def with_available(self, amounts: Amounts) -> "Fleet":
        """The same fleet with these amounts available, whatever members report."""
        return Fleet(self._facts, self._available.with_amounts(amounts), self.workloads)

    def _replaced(self, before: Member, after: Member) -> "Fleet":
        row = self.index[after.name]
        return Fleet(self._facts.replaced(before, after), self._available.replaced(row, before, after), self.workloads)

    # Subsets of the members.

    def joined_only(self) -> "Fleet":
        """The members that scheduling considers."""
        return self if self._facts.joined_only() is self._facts else self._joined

    @cached_property
    def _joined(self) -> "Fleet":
        return Fleet(self._facts.joined_only(), self._reported, self.workloads)

    def discovered_only(self) -> "Fleet":
        """The joined members whose APIs are known, which they are once ready for the first time: those a placement can have
        taken into account."""
        return self if self._facts.discovered_only() is self._facts else self._discovered

    @cached_property
    def _discovered(self) -> "Fleet":
        return Fleet(self._facts.discovered_only(), self._reported, self.workloads)

    # Facts.

    def same_facts(self, other: "Fleet") -> bool:
        """Whether the two differ at most in available amounts. May be False for equal fleets."""
        return self._facts is other._facts

    @property
    def names(self) -> tuple[str, ...]:
        return self._facts.names

    @property
    def index(self) -> Mapping[str, int]:
        """Column position by cluster name."""
        return self._facts.index

    @property
    def name_hashes(self) -> npt.NDArray[np.uint32]:
        """32-bit FNV-1 of each cluster's name."""
        return self._facts.name_hashes

    @property
    def everyone(self) -> Mask:
        """All true, and always the same array: a filter that returns it refuses no cluster."""
        return self._facts.everyone

    @property
    def zeros(self) -> Column:
        """All 0, and always the same array: a plugin that returns it does not score."""
        return self._facts.zeros

    @property
    def unlimited(self) -> Column:
        """No bound anywhere: LARGEST throughout."""
        return self._facts.unlimited

    @property
    def joined(self) -> Mask:
        return self._facts.joined

    @property
    def ready(self) -> Mask:
        return self._facts.ready

    @property
    def terminating(self) -> Mask:
        return self._facts.terminating

    @property
    def staying(self) -> Mask:
        """Clusters that are not terminating."""
        return self._facts.staying

    @property
    def power(self) -> Column:
        """The power of each cluster's cores, in thousandths of a core of the fleet's reference."""
        return self._facts.power

    @property
    def price(self) -> Column:
        """The price of a core-hour in each cluster, in billionths; -1 if it is not declared."""
        return self._facts.price

    @property
    def taints(self) -> TaintTable:
        return self._facts.taints

    @property
    def undiscovered(self) -> Mask:
        return self._facts.undiscovered

    @property
    def tainted_or_unready(self) -> Rows:
        """The clusters in which filters may treat running objects differently from new ones."""
        return self._facts.tainted_or_unready

    @property
    def hashes(self) -> FleetHashes:
        """Hashes of labels, taints and APIs of all members, for comparison with an earlier fleet."""
        return self._facts.hashes

    def allocatable(self, resource: str) -> Column:
        """The allocatable amounts of each cluster's schedulable nodes; 0 if not reported."""
        return self._facts.allocatable.amount(resource)

    def reports(self, resource: str) -> Mask:
        """Which clusters report this resource as allocatable."""
        return self._facts.allocatable.present(resource)

    def serving(self, api: ApiKey) -> Mask:
        """Which clusters serve exactly this group, version and kind."""
        return self._facts.serving(api)

    def labelled(self, key: str) -> Labelled:
        """A label of all clusters as a coded column; cached while no labels change."""
        return self._facts.labelled(key)

    def where(self, predicate: Callable[[Member], bool], *, question: Hashable) -> Mask:
        """Which members satisfy a predicate over name and labels.

        `question` stands for the predicate: the answer is cached under it while no labels change.
        """
        return self._facts.where(predicate, question)

    # Available amounts.

    @cached_property
    def _available(self) -> Available:
        if len(self._reported) == len(self):
            return self._reported
        return self._reported.only(np.flatnonzero([name in self for name in self._reported.members]))

    @property
    def amounts_available(self) -> Amounts:
        """The available amounts of every resource, less those reserved for others."""
        return self._available.amounts

    @property
    def stale(self) -> Mask:
        """Clusters whose available amounts have not been updated for long."""
        return self._available.stale

    def available(self, resource: str) -> Column:
        """Allocatable minus the requests of pods; may be negative. 0 if not reported."""
        return self._available.amounts.amount(resource)

    def free(self, resource: str) -> Column:
        """The available amounts as far as known: a cluster with stale figures counts as full as the others together, so that it
        is neither preferred nor avoided for outdated figures."""
        if not self.stale.any():
            return self.available(resource)
        return self.remembered(("free", resource), lambda: self._free(resource))

    def _free(self, resource: str) -> Column:
        allocatable, available = self.allocatable(resource), self.available(resource)
        known = ~self.stale
        held = float(allocatable[known].sum(dtype=np.float64))
        share = float(np.maximum(available[known], 0).sum(dtype=np.float64)) / held if held > 0 else 1.0
        return np.where(known, available, (allocatable * min(share, 1.0)).astype(np.int64))

    # Cached answers.

    def remembered(
        self, question: Hashable, answer: Callable[[], T], among: Literal["columns", "evaluations", "facts"] = "columns"
    ) -> T:
        """An answer that follows from this snapshot and the question alone, computed once: the next object often asks for the
        same columns. Cached columns must not be changed. Answers cached among `facts` must not depend on available amounts:
        they are shared by all snapshots that differ only in those."""
        if among == "facts":
            return self._facts.answers.recall(question, answer)
        memory = self._columns if among == "columns" else self._evaluations
        return memory.recall(question, answer)

    # Columns by name.

    def mask_of(self, names: Iterable[str]) -> Mask:
        """True for the named clusters; unknown names are ignored. Read-only."""
        return self._locate(names).mask

    def column(self, mapping: Mapping[str, int], default: int = 0) -> Column:
        """Numbers by cluster name as a column; unknown names are ignored, numbers are limited to 2**62."""
        column = np.full(len(self), default, dtype=np.int64)
        if mapping:
            located, numbers = self._locate(mapping), _fitting(mapping.values(), len(mapping))
            column[located.rows] = numbers if located.known is None else numbers[located.known]
        return column

    def rows_of(self, names: Iterable[str]) -> Rows:
        """The rows of the named clusters, in that order; unknown names are ignored."""
        return self._locate(names).rows

    def names_of(self, rows: Rows) -> list[str]:
        names: list[str] = self._facts.name_array[rows].tolist()
        return names

    def _locate(self, names: Iterable[str]) -> "_Located":
        """The last answer is cached: several plugins ask for one object's clusters. So `names` must not change afterwards."""
        if self._located is not None and self._located.names is names:
            return self._located
        if not isinstance(names, Collection):
            names = tuple(names)
        rows, known = np.fromiter(map(self.index.get, names, repeat(-1)), dtype=np.intp, count=len(names)), None
        if rows.min(initial=0) < 0:
            known = rows >= 0
            rows = rows[known]
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[rows] = True
        self._located = _Located(names, rows, known, read_only(mask))
        return self._located


class _Located(NamedTuple):
    """The named clusters: the rows of the known ones, in that order, and a mask of them."""

    names: Iterable[str]
    rows: Rows
    #: Which of the names are known; None if all are.
    known: Mask | None
    mask: Mask


def _fitting(numbers: Iterable[int], count: int) -> Column:
    try:
        column = np.fromiter(numbers, dtype=np.int64, count=count)
    except OverflowError:
        return np.array([max(-LARGEST, min(LARGEST, number)) for number in numbers], dtype=np.int64)
    return np.minimum(np.maximum(column, -LARGEST), LARGEST)
