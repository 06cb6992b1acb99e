"""WorkloadAffinity: place an object where certain other workloads are, or where they are not.

Rules are checked when the object is scheduled. Later changes of other workloads do not move it; new replicas obey them.
"""

import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import Column, Fleet, Mask, Rows
from argosy.fleet.workloads import WorkloadKey
from argosy.plan.scheduling.domains import Codes, codes_of, sums_in_domain
from argosy.plan.scheduling.framework import MAX_SCORE, Filter, Reasons, Score
from argosy.plan.scheduling.rules import WorkloadRule
from argosy.plan.scheduling.unit import Unit

REASON_AFFINITY = "cluster(s) didn't match workload affinity rules"
REASON_ANTI_AFFINITY = "cluster(s) didn't match workload anti-affinity rules"
REMEDY = "workloads that affinity requires must be placed in the cluster's domain, or those that anti-affinity excludes leave it"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    rules = unit.rules
    if not rules.affinity and not rules.anti_affinity:
        return fleet.everyone
    return (_meets_affinity(unit, fleet) & _meets_anti_affinity(unit, fleet)) | fleet.mask_of(unit.current)


def reason(unit: Unit, fleet: Fleet, row: int) -> str:
    return REASON_ANTI_AFFINITY if _meets_affinity(unit, fleet)[row] else REASON_AFFINITY


def reasons(unit: Unit, fleet: Fleet, rows: Rows) -> Reasons:
    codes: npt.NDArray[np.int64] = _meets_affinity(unit, fleet)[rows].astype(np.int64)
    return Reasons((REASON_AFFINITY, REASON_ANTI_AFFINITY), codes)


def score(unit: Unit, fleet: Fleet) -> Column:
    """The sum of the weights of the preferred terms, once per matching workload in the domain."""
    preferred = unit.rules.preferred
    if not preferred:
        return fleet.zeros
    total = np.zeros(len(fleet), dtype=np.int64)
    for term in preferred:
        _, matching = _matching(unit, fleet, term.rule)
        total += term.weight * matching
    return total


def normalize(scores: Column) -> Column:
    """From the worst to the best; all 0 if all are the same."""
    if not len(scores):
        return scores
    worst, best = int(scores.min()), int(scores.max())
    return MAX_SCORE * (scores - worst) // max(best - worst, 1)


def _meets_affinity(unit: Unit, fleet: Fleet) -> Mask:
    allowed = fleet.everyone
    for rule in unit.rules.affinity:
        codes, matching = _matching(unit, fleet, rule)
        if not matching.any() and _matches_itself(unit, rule):
            # The first of a group that wants to be together may go anywhere.
            allowed = allowed & (codes >= 0)
        else:
            allowed = allowed & (matching > 0)
    return allowed


def _meets_anti_affinity(unit: Unit, fleet: Fleet) -> Mask:
    allowed = fleet.everyone
    for rule in unit.rules.anti_affinity:
        allowed = allowed & (_matching(unit, fleet, rule)[1] == 0)
    return allowed


def _matching(unit: Unit, fleet: Fleet, rule: WorkloadRule) -> tuple[Codes, Column]:
    """The domains, and for each cluster the number of matching other workloads in its domain."""
    key = WorkloadKey(unit.group, unit.kind, unit.namespace, unit.name)
    placed = fleet.workloads.placed(rule.selector, rule.namespaces or (unit.namespace,), apart_from=key)
    codes = codes_of(fleet, rule.topology_key)
    return codes, sums_in_domain(codes, fleet.column(placed))


def _matches_itself(unit: Unit, rule: WorkloadRule) -> bool:
    return unit.namespace in (rule.namespaces or (unit.namespace,)) and rule.selector.matches(unit.labels)


FILTER = Filter("WorkloadAffinity", feasible, reason, reasons=reasons, remedy=REMEDY, spares_running=True)
SCORE = Score("WorkloadAffinity", score, normalize)
