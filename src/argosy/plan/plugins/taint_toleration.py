"""TaintToleration: keep work off clusters that repel it.

NoSchedule blocks new placements, NoExecute blocks all of them; PreferNoSchedule only lowers the score.
"""

import numpy as np

from argosy.fleet.snapshot import Column, Fleet, Mask
from argosy.fleet.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from argosy.plan.framework import MAX_SCORE, Filter, Score
from argosy.plan.unit import Unit

REASON = "cluster(s) had taint {{{key}: {value}}}, that the schedulingUnit didn't tolerate"
REMEDY = "a toleration of that taint in the policy, or the taint taken off the cluster"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """Where the unit already runs, only an untolerated NoExecute taint drives it out."""
    evicting = fleet.taints.untolerated(unit.tolerations, NO_EXECUTE)
    repelling = fleet.taints.untolerated(unit.tolerations, NO_SCHEDULE)
    return ~(evicting | (repelling & ~fleet.mask_of(unit.current)))


def reason(unit: Unit, fleet: Fleet, row: int) -> str:
    effects = (NO_EXECUTE,) if fleet.names[row] in unit.current else (NO_SCHEDULE, NO_EXECUTE)
    taint = fleet.taints.first_untolerated(row, unit.tolerations, effects)
    key, value = ("", "") if taint is None else taint[:2]
    return REASON.format(key=key, value=value)


def score(unit: Unit, fleet: Fleet) -> Column:
    """How many PreferNoSchedule taints are not tolerated: fewer is better."""
    tolerations = [item for item in unit.tolerations if item.effect in ("", PREFER_NO_SCHEDULE)]
    return fleet.taints.count_untolerated(tolerations, PREFER_NO_SCHEDULE)


def normalize(scores: Column) -> Column:
    worst = int(scores.max(initial=0))
    if worst == 0:
        return np.full(len(scores), MAX_SCORE, dtype=np.int64)
    return MAX_SCORE - MAX_SCORE * scores // worst


FILTER = Filter("TaintToleration", feasible, reason, remedy=REMEDY)
SCORE = Score("TaintToleration", score, normalize)
