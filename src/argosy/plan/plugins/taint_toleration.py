"""TaintToleration: keep work off clusters that repel it.

NoSchedule blocks new placements, NoExecute blocks all of them; PreferNoSchedule only lowers the score.
"""

import numpy as np

from argosy.fleet.snapshot import Column, Fleet, Mask, Rows
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, TaintKey
from argosy.plan.scheduling.framework import MAX_SCORE, Filter, Reasons, Score
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) had taint {{{key}: {value}}}, that the schedulingUnit didn't tolerate"
REMEDY = "a toleration of that taint in the policy, or the taint taken off the cluster"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """Where the unit already runs, only an untolerated NoExecute taint drives it out."""
    if not fleet.taints.distinct:
        return fleet.everyone
    evicting = fleet.taints.untolerated(unit.tolerations, NO_EXECUTE)
    repelling = fleet.taints.untolerated(unit.tolerations, NO_SCHEDULE)
    return ~(evicting | (repelling > fleet.mask_of(unit.current)))


def reason(unit: Unit, fleet: Fleet, row: int) -> str:
    return _text(fleet.taints.first_untolerated(row, unit.tolerations, _effects(fleet.names[row] in unit.current)))


def reasons(unit: Unit, fleet: Fleet, rows: Rows) -> Reasons:
    placed = fleet.mask_of(unit.current)[rows]
    new, of_row = fleet.taints.first_untolerated_of(rows, unit.tolerations, _effects(placed=False))
    old, of_old = fleet.taints.first_untolerated_of(rows, unit.tolerations, _effects(placed=True))
    if placed.any():
        of_row = np.where(placed, of_old + len(new), of_row)
    code: dict[str, int] = {}
    codes = np.zeros(len(new) + len(old), dtype=np.int64)
    for at in np.bincount(of_row).nonzero()[0].tolist():
        codes[at] = code.setdefault(_text((new + old)[at]), len(code))
    return Reasons(tuple(code), codes[of_row])


def _effects(placed: bool) -> tuple[str, ...]:
    return (NO_EXECUTE,) if placed else (NO_SCHEDULE, NO_EXECUTE)


def _text(taint: TaintKey | None) -> str:
    key, value = ("", "") if taint is None else taint[:2]
    return REASON.format(key=key, value=value)


def score(unit: Unit, fleet: Fleet) -> Column:
    """The number of PreferNoSchedule taints that are not tolerated: fewer is better."""
    tolerations = [item for item in unit.tolerations if item.effect in ("", PREFER_NO_SCHEDULE)]
    return fleet.taints.count_untolerated(tolerations, PREFER_NO_SCHEDULE)


def normalize(scores: Column) -> Column:
    worst = int(scores.max(initial=0))
    if worst == 0:
        return np.full(len(scores), MAX_SCORE, dtype=np.int64)
    return MAX_SCORE - MAX_SCORE * scores // worst


FILTER = Filter("TaintToleration", feasible, reason, reasons=reasons, remedy=REMEDY)
SCORE = Score("TaintToleration", score, normalize)
