"""Taints and tolerations: the fleet's taints as one table, clusters × distinct taints.

Only matching. The TaintToleration plugin decides what an untolerated taint means for placement.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from argosy.api.policies import Toleration
from argosy.fleet.columns import Mask
from argosy.fleet.memo import Memo
from argosy.kube.taints import TaintKey, matches

__all__ = ["TaintTable", "tolerates"]

#: Cached answers per table; policies are reused by many objects, so few tolerations are distinct.
_ANSWERS_KEPT = 512


def tolerates(toleration: Toleration, taint: TaintKey) -> bool:
    return matches(toleration.key, toleration.operator, toleration.value, toleration.effect, taint)


class TaintTable:
    """Which cluster has which taint. Immutable; rows are clusters in the fleet's order."""

    __slots__ = ("_counts", "_of_cluster", "_present", "_sets", "_taints_of", "_untolerated", "distinct")

    def __init__(self, taints_of: Sequence[Sequence[TaintKey]]) -> None:
        self._taints_of = taints_of
        self.distinct: tuple[TaintKey, ...] = tuple(sorted({taint for taints in taints_of for taint in taints}))
        column = {taint: position for position, taint in enumerate(self.distinct)}
        self._present = np.zeros((len(taints_of), len(self.distinct)), dtype=np.int16)
        for row, taints in enumerate(taints_of):
            for taint in taints:
                self._present[row, column[taint]] += 1
        sets: dict[tuple[TaintKey, ...], int] = {}
        self._of_cluster = np.array([sets.setdefault(tuple(taints), len(sets)) for taints in taints_of], dtype=np.intp)
        #: The distinct lists of taints: most clusters of a fleet are alike.
        self._sets = tuple(sets)
        self._untolerated, self._counts = Memo(_ANSWERS_KEPT), Memo(_ANSWERS_KEPT)

    def untolerated(self, tolerations: Iterable[Toleration], effect: str) -> Mask:
        """One bool per cluster: has a taint of this effect that none of the tolerations tolerates. Read-only."""
        asked = tuple(tolerations)
        return self._untolerated.recall((asked, effect), lambda: self.count_untolerated(asked, effect) > 0)

    def count_untolerated(self, tolerations: Iterable[Toleration], effect: str) -> npt.NDArray[np.int64]:
        """How many of each cluster's taints of this effect are not tolerated. Read-only."""
        asked = tuple(tolerations)
        return self._counts.recall((asked, effect), lambda: self._count(asked, effect))

    def _count(self, tolerations: tuple[Toleration, ...], effect: str) -> npt.NDArray[np.int64]:
        columns = [
            position
            for position, taint in enumerate(self.distinct)
            if taint[2] == effect and not any(tolerates(toleration, taint) for toleration in tolerations)
        ]
        if not columns:
            return np.zeros(len(self._taints_of), dtype=np.int64)
        counts: npt.NDArray[np.int64] = self._present[:, columns].sum(axis=1, dtype=np.int64)
        return counts

    def first_untolerated(self, row: int, tolerations: Iterable[Toleration], effects: Iterable[str]) -> TaintKey | None:
        """The first such taint in the cluster's order: the one that a reason names."""
        return _first(self._taints_of[row], tuple(tolerations), frozenset(effects))

    def first_untolerated_of(
        self, rows: npt.NDArray[np.intp], tolerations: Iterable[Toleration], effects: Iterable[str]
    ) -> tuple[list[TaintKey | None], npt.NDArray[np.intp]]:
        """The same for many rows: the answer for each distinct list of taints, and which of them each row has."""
        tolerations, effects = tuple(tolerations), frozenset(effects)
        return [_first(taints, tolerations, effects) for taints in self._sets], self._of_cluster[rows]


def _first(taints: Sequence[TaintKey], tolerations: tuple[Toleration, ...], effects: frozenset[str]) -> TaintKey | None:
    for taint in taints:
        if taint[2] in effects and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
