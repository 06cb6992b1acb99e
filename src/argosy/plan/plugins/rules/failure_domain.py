"""FailureDomain: avoid domains with many unready clusters: the same failure may hit the next cluster, too."""

import numpy as np

from argosy.api.rules import DO_NOT_SCHEDULE
from argosy.fleet.snapshot import Column, Fleet, Mask
from argosy.plan.scheduling.domains import codes_of, sums_in_domain
from argosy.plan.scheduling.framework import MAX_SCORE, Always, Filter, Score
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) were in a domain with too many unready clusters"
REMEDY = "more clusters of its domain must become ready, or the policy's failureDomain allow more unready ones"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """What runs in a failing domain stays there."""
    rule = unit.rules.failure_domain
    if rule is None or rule.when_exceeded != DO_NOT_SCHEDULE:
        return fleet.everyone
    failing = _failing(fleet, rule.topology_key, rule.max_unready_percent)[0]
    return ~failing | fleet.mask_of(unit.current) if failing.any() else fleet.everyone


def score(unit: Unit, fleet: Fleet) -> Column:
    """100 outside failing domains; inside, the percentage of ready clusters. All 0 if no domain fails."""
    rule = unit.rules.failure_domain
    if rule is None:
        return fleet.zeros
    failing, ready = _failing(fleet, rule.topology_key, rule.max_unready_percent)
    return np.where(failing, ready, MAX_SCORE) if failing.any() else fleet.zeros


def _failing(fleet: Fleet, key: str, percent: int) -> tuple[Mask, Column]:
    """Which clusters are in a failing domain, and for each cluster the percentage of ready clusters in its domain."""
    codes = codes_of(fleet, key)
    ready = sums_in_domain(codes, fleet.ready.astype(np.int64))
    clusters = sums_in_domain(codes, np.ones(len(fleet), dtype=np.int64))
    return (clusters - ready) * 100 > percent * clusters, ready * MAX_SCORE // np.maximum(clusters, 1)


FILTER = Filter("FailureDomain", feasible, Always(REASON), remedy=REMEDY, spares_running=True)
SCORE = Score("FailureDomain", score)
