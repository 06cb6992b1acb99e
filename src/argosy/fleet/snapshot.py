"""Fleet: an immutable snapshot of all member clusters, laid out in columns.

A decision reads whole columns at once (one bool or number per cluster, clusters sorted by name). `with_cluster` makes
the next snapshot and shares with the old one every table the change does not touch: most changes are one cluster's
available capacity. Tables are built when first asked for.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cached_property
from itertools import repeat
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from argosy.api.clusters import FederatedCluster
from argosy.fleet.columns import LARGEST, Amounts, Column, Mask, Rows
from argosy.fleet.fingerprint import FleetHashes
from argosy.fleet.member import CPU, ApiKey, Member, member_of
from argosy.fleet.memory import Memory
from argosy.fleet.taints import TaintTable
from argosy.fleet.workloads import Workloads
from argosy.kube.hashing import fnv1_32

__all__ = ["CPU", "GPU", "LARGEST", "MEMORY", "Column", "Fleet", "Labelled", "Mask", "Rows"]

MEMORY = "memory"
GPU = "nvidia.com/gpu"

#: Answers to label questions kept per snapshot; policies are reused by many objects, so few are distinct.
_ANSWERS_KEPT = 512
#: Of answers that are several columns each.
_OUTLOOKS_KEPT = 64

#: What a decision reads besides what is available; all snapshots that differ in that alone share it.
_FACTS: Final = (
    "members",
    "names",
    "index",
    "everyone",
    "zeros",
    "unlimited",
    "joined",
    "ready",
    "terminating",
    "staying",
    "stale",
    "power",
    "price",
    "taints",
    "particular",
    "hashes",
    "name_hashes",
    "_name_array",
    "_api_sets",
    "_serving",
    "_allocatable",
)

T = TypeVar("T")


class Labelled(NamedTuple):
    """One label of all clusters: the distinct values, sorted, and which of them each cluster has; -1 where it has none."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]


class Fleet:
    """All members at one moment. Never changed; `with_cluster` and `without_cluster` return another one."""

    def __init__(self, members: Iterable[Member] = (), workloads: Workloads | None = None) -> None:
        #: What the federation has placed where, for rules about other workloads. Shared by all snapshots, and not compared.
        self.workloads = Workloads() if workloads is None else workloads
        self._rows: dict[str, Member] = {member.name: member for member in sorted(members, key=lambda row: row.name)}
        self._answers: dict[object, Mask] = {}
        self._labels: dict[str, Labelled] = {}
        self._columns = Memory(_ANSWERS_KEPT)
        self._outlooks = Memory(_OUTLOOKS_KEPT)
        #: Of what does not depend on what is available.
        self._facts = Memory(_OUTLOOKS_KEPT)
        self._located: _Located | None = None

    @classmethod
    def of(cls, clusters: Iterable[FederatedCluster]) -> "Fleet":
        return cls(member_of(cluster) for cluster in clusters)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def member(self, name: str) -> Member | None:
        return self._rows.get(name)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """In the order of the columns."""
        return tuple(self._rows.values())

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self._rows)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Column position by cluster name."""
        return {name: position for position, name in enumerate(self._rows)}

    # The next snapshot.

    def with_cluster(self, cluster: FederatedCluster) -> "Fleet":
        """The fleet after this cluster was added or changed; the same fleet when nothing a decision reads changed."""
        before = self._rows.get(cluster.name)
        after = member_of(cluster, before)
        if before is None:
            return Fleet([*self._rows.values(), after], self.workloads)
        return self if after == before else self._replaced(before, after)

    def without_cluster(self, name: str) -> "Fleet":
        if name not in self._rows:
            return self
        return Fleet((member for member in self._rows.values() if member.name != name), self.workloads)

    def with_stale(self, name: str, stale: bool) -> "Fleet":
        """Whether a cluster's word on what it has available is too old to go by."""
        before = self._rows.get(name)
        if before is None or before.stale == stale:
            return self
        return self._replaced(before, msgspec.structs.replace(before, stale=stale))

    def with_workloads(self, workloads: Workloads) -> "Fleet":
        """The same members, and this index of what is placed on them."""
        return Fleet(self._rows.values(), workloads)

    def with_reserved(self, reserved: Mapping[str, Mapping[str, int]]) -> "Fleet":
        """The same fleet with less available: amounts by resource and cluster (see `fleet.reservations`).

        Only what depends on what is available is worked out anew. What is kept of members stays as they report it.
        """
        if not reserved:
            return self
        fleet = self.with_available(
            self._available.less(
                # Copies, since the sums go on changing and what `column` is asked about must not.
                {resource: self.column(dict(amounts)) for resource, amounts in reserved.items()}
            )
        )
        fleet.__dict__["_joined"] = None if self._joined is None else self._joined.with_reserved(reserved)
        fleet.__dict__["_surveyed"] = self._surveyed  # of these only the facts are compared
        return fleet

    def with_available(self, available: Amounts) -> "Fleet":
        """The same fleet with these amounts available, whatever members report."""
        fleet = Fleet(workloads=self.workloads)
        fleet._rows, fleet._answers, fleet._labels = self._rows, self._answers, self._labels
        fleet._facts = self._facts
        for name in _FACTS:
            fleet.__dict__[name] = getattr(self, name)
        fleet.__dict__["_available"] = available
        return fleet

    @property
    def amounts_available(self) -> Amounts:
        """Of every resource, what is reserved for others taken away."""
        return self._available

    def same_facts(self, other: "Fleet") -> bool:
        """Whether the two differ in what is available at most. May say no where they are alike."""
        return self._facts is other._facts

    def joined_only(self) -> "Fleet":
        """The members that scheduling considers."""
        return self if self._joined is None else self._joined

    @cached_property
    def _joined(self) -> "Fleet | None":
        """None for all of them: a snapshot that held itself would outlive its use."""
        if all(member.joined for member in self._rows.values()):
            return None
        return Fleet((member for member in self._rows.values() if member.joined), self.workloads)

    def surveyed_only(self) -> "Fleet":
        """The joined members of which it was once learned what they serve, which is when they are first ready: those a
        placement can have taken into account."""
        return self if self._surveyed is None else self._surveyed

    @cached_property
    def _surveyed(self) -> "Fleet | None":
        if all(member.joined and member.apis for member in self._rows.values()):
            return None
        return Fleet((member for member in self._rows.values() if member.joined and member.apis), self.workloads)

    def _replaced(self, before: Member, after: Member) -> "Fleet":
        fleet = Fleet(workloads=self.workloads)
        fleet._rows = self._rows | {after.name: after}
        shared = {"names", "index", "everyone", "zeros", "unlimited", "name_hashes", "_name_array"}
        if before.taints == after.taints:
            shared.add("taints")
            if before.ready == after.ready:
                shared.add("particular")
        if before.apis is after.apis:
            shared |= {"_api_sets", "_serving"}
        if after == msgspec.structs.replace(before, available=after.available, stale=after.stale):
            fleet._facts = self._facts
        if before.labels == after.labels:
            fleet._answers, fleet._labels = self._answers, self._labels
        if (before.labels_digest, before.taints_digest, before.apis_digest) == (
            after.labels_digest,
            after.taints_digest,
            after.apis_digest,
        ):
            shared.add("hashes")
        for facet in ("joined", "ready", "terminating", "stale", "power", "price"):
            if getattr(before, facet) == getattr(after, facet):
                shared.add(facet)
        if before.terminating == after.terminating:
            shared.add("staying")
        for name in shared & self.__dict__.keys():
            fleet.__dict__[name] = self.__dict__[name]
        row = self.index[after.name]
        for facet in ("_allocatable", "_available"):
            if facet in self.__dict__:
                fleet.__dict__[facet] = self.__dict__[facet].with_row(row, getattr(after, facet[1:]))
        for name, belong in (("_joined", True), ("_surveyed", bool(before.apis and after.apis))):
            if name in self.__dict__ and before.joined and after.joined and belong:
                subset = self.__dict__[name]
                fleet.__dict__[name] = None if subset is None else subset._replaced(before, after)
        return fleet

    # Columns.

    @cached_property
    def everyone(self) -> Mask:
        """All true, and always the same array: who returns it has refused nobody."""
        everyone = np.ones(len(self._rows), dtype=np.bool_)
        everyone.flags.writeable = False
        return everyone

    @cached_property
    def zeros(self) -> Column:
        """All 0, and always the same array: who returns it has nothing to say."""
        zeros = np.zeros(len(self._rows), dtype=np.int64)
        zeros.flags.writeable = False
        return zeros

    @cached_property
    def unlimited(self) -> Column:
        """No bound anywhere: LARGEST throughout."""
        unlimited = np.full(len(self._rows), LARGEST, dtype=np.int64)
        unlimited.flags.writeable = False
        return unlimited

    @cached_property
    def joined(self) -> Mask:
        return self._mask(lambda member: member.joined)

    @cached_property
    def ready(self) -> Mask:
        ready = self._mask(lambda member: member.ready)
        return self.everyone if ready.all() else ready

    @cached_property
    def terminating(self) -> Mask:
        return self._mask(lambda member: member.terminating)

    @cached_property
    def stale(self) -> Mask:
        """Of which clusters what is available has not been heard of for long."""
        return self._mask(lambda member: member.stale)

    @cached_property
    def power(self) -> Column:
        """What a core of each cluster does, in thousandths of a core of the fleet's reference."""
        return self._numbers(lambda member: member.power)

    @cached_property
    def price(self) -> Column:
        """What a core-hour costs in each cluster, in billionths; -1 where it is not declared."""
        return self._numbers(lambda member: -1 if member.price is None else member.price)

    @cached_property
    def staying(self) -> Mask:
        """Those that are not leaving."""
        return ~self.terminating if self.terminating.any() else self.everyone

    @cached_property
    def taints(self) -> TaintTable:
        return TaintTable([member.taints for member in self._rows.values()])

    @cached_property
    def particular(self) -> Rows:
        """The clusters in which filters treat whoever runs there otherwise than others: tainted ones, and those not ready."""
        return np.array(
            [row for row, member in enumerate(self._rows.values()) if member.taints or not member.ready], dtype=np.intp
        )

    @cached_property
    def hashes(self) -> FleetHashes:
        """Labels, taints and APIs of all members in short, to be compared with an earlier moment."""
        rows = self._rows.values()
        return FleetHashes(
            list(self._rows),
            [row.labels for row in rows],
            [row.labels_digest for row in rows],
            [row.taints_digest for row in rows],
            [row.apis_digest for row in rows],
        )

    def allocatable(self, resource: str) -> Column:
        """What each cluster's schedulable nodes hold; 0 where it is not reported."""
        return self._allocatable.amount(resource)

    def available(self, resource: str) -> Column:
        """Allocatable minus what pods request; may be negative. 0 where it is not reported."""
        return self._available.amount(resource)

    def free(self, resource: str) -> Column:
        """What is available, as far as that is known: a cluster whose figures are stale is taken to be as full as the
        others are together, so that it is neither preferred nor avoided for what it once had."""
        if not self.stale.any():
            return self.available(resource)
        return self.remembered(("free", resource), lambda: self._free(resource))

    def _free(self, resource: str) -> Column:
        allocatable, available = self.allocatable(resource), self.available(resource)
        known = ~self.stale
        held = float(allocatable[known].sum(dtype=np.float64))
        share = float(np.maximum(available[known], 0).sum(dtype=np.float64)) / held if held > 0 else 1.0
        return np.where(known, available, (allocatable * min(share, 1.0)).astype(np.int64))

    def reports(self, resource: str) -> Mask:
        """Which clusters report this resource as allocatable."""
        return self._allocatable.present(resource)

    def serving(self, api: ApiKey) -> Mask:
        """Which clusters serve exactly this group, version and kind."""
        serving = self._serving.get(api)
        if serving is None:
            sets, of_cluster = self._api_sets
            serving = np.array([api in served for served in sets], dtype=np.bool_)[of_cluster]
            if serving.all():
                serving = self.everyone
            if len(self._serving) < _ANSWERS_KEPT:
                self._serving[api] = serving
        return serving

    def remembered(
        self, question: Hashable, answer: Callable[[], T], among: Literal["columns", "evaluations", "facts"] = "columns"
    ) -> T:
        """An answer that follows from this snapshot and the question alone, found once: whole columns are often asked for
        again by the next object. Such columns must not be changed. What is kept among `facts` must not follow from what is
        available: it holds for all snapshots that differ in that alone."""
        memory = self._columns if among == "columns" else self._outlooks if among == "evaluations" else self._facts
        return memory.recall(question, answer)

    def where(self, predicate: Callable[[Member], bool], *, question: object) -> Mask:
        """Which members satisfy a predicate over name and labels.

        `question` must be hashable and stand for the predicate: the answer is kept under it while no labels change.
        """
        answer = self._answers.get(question)
        if answer is None:
            answer = self._mask(predicate)
            if len(self._answers) < _ANSWERS_KEPT:
                self._answers[question] = answer
        return answer

    def mask_of(self, names: Iterable[str]) -> Mask:
        """True for the clusters named; unknown names are nobody. Not to be changed."""
        return self._locate(names).mask

    def column(self, mapping: Mapping[str, int], default: int = 0) -> Column:
        """Numbers by cluster name as a column; unknown names are left out, numbers beyond 2**62 cut there."""
        column = np.full(len(self._rows), default, dtype=np.int64)
        if mapping:
            located, numbers = self._locate(mapping), _fitting(mapping.values(), len(mapping))
            column[located.rows] = numbers if located.known is None else numbers[located.known]
        return column

    def rows_of(self, names: Iterable[str]) -> Rows:
        """The rows of the clusters named, in that order; unknown names are left out."""
        return self._locate(names).rows

    def _locate(self, names: Iterable[str]) -> "_Located":
        """The last answer is kept: of one object's clusters several plugins ask. So `names` must not change afterwards."""
        if self._located is not None and self._located.names is names:
            return self._located
        if not isinstance(names, Collection):
            names = tuple(names)
        rows, known = np.fromiter(map(self.index.get, names, repeat(-1)), dtype=np.intp, count=len(names)), None
        if rows.min(initial=0) < 0:
            known = rows >= 0
            rows = rows[known]
        mask = np.zeros(len(self._rows), dtype=np.bool_)
        mask[rows] = True
        mask.flags.writeable = False
        self._located = _Located(names, rows, known, mask)
        return self._located

    def names_of(self, rows: Rows) -> list[str]:
        names: list[str] = self._name_array[rows].tolist()
        return names

    def labelled(self, key: str) -> Labelled:
        """A label of all clusters as a coded column; kept while no labels change."""
        known = self._labels.get(key)
        if known is None:
            found = [member.labels.get(key) for member in self._rows.values()]
            values = tuple(sorted({value for value in found if value is not None}))
            code = {value: position for position, value in enumerate(values)}
            codes = np.array([-1 if value is None else code[value] for value in found], dtype=np.int32)
            codes.flags.writeable = False
            known = Labelled(values, codes)
            if len(self._labels) < _ANSWERS_KEPT:
                self._labels[key] = known
        return known

    @cached_property
    def name_hashes(self) -> npt.NDArray[np.uint32]:
        """32-bit FNV-1 of each cluster's name."""
        return np.array([fnv1_32(name.encode()) for name in self._rows], dtype=np.uint32)

    @cached_property
    def _name_array(self) -> npt.NDArray[np.object_]:
        names = np.empty(len(self._rows), dtype=np.object_)
        names[:] = self.names
        return names

    @cached_property
    def _api_sets(self) -> tuple[list[frozenset[ApiKey]], npt.NDArray[np.intp]]:
        """The distinct sets of served APIs, and which of them each cluster has: most clusters of a fleet are alike."""
        position: dict[frozenset[ApiKey], int] = {}
        of_cluster = [position.setdefault(member.apis, len(position)) for member in self._rows.values()]
        return list(position), np.array(of_cluster, dtype=np.intp)

    @cached_property
    def _serving(self) -> dict[ApiKey, Mask]:
        return {}

    @cached_property
    def _allocatable(self) -> Amounts:
        return Amounts([member.allocatable for member in self._rows.values()])

    @cached_property
    def _available(self) -> Amounts:
        return Amounts([member.available for member in self._rows.values()])

    def _numbers(self, number: Callable[[Member], int]) -> Column:
        column = np.fromiter((number(member) for member in self._rows.values()), dtype=np.int64, count=len(self._rows))
        column.flags.writeable = False
        return column

    def _mask(self, predicate: Callable[[Member], bool]) -> Mask:
        mask = np.fromiter((predicate(member) for member in self._rows.values()), dtype=np.bool_, count=len(self._rows))
        mask.flags.writeable = False
        return mask


class _Located(NamedTuple):
    """Where the clusters of these names are: the rows of those that are known, in that order, and a mask of them."""

    names: Iterable[str]
    rows: Rows
    #: Which of the names are known; None where all are.
    known: Mask | None
    mask: Mask


def _fitting(numbers: Iterable[int], count: int) -> Column:
    try:
        column = np.fromiter(numbers, dtype=np.int64, count=count)
    except OverflowError:
        return np.array([max(-LARGEST, min(LARGEST, number)) for number in numbers], dtype=np.int64)
    return np.minimum(np.maximum(column, -LARGEST), LARGEST)
