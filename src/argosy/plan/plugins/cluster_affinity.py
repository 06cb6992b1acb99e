"""ClusterAffinity: clusters by their labels. The selector and the required terms filter, preferred terms score."""

from functools import partial

import numpy as np

from argosy.api.policies import ClusterSelectorTerm
from argosy.fleet.member import Member
from argosy.fleet.snapshot import Column, Fleet, Mask
from argosy.kube.selectors import from_map
from argosy.plan.scheduling.framework import Always, Filter, Score, share_of_best
from argosy.plan.scheduling.selection import SelectionError, expressions_match, terms_match
from argosy.plan.scheduling.unit import PreferredTerm, Unit

REASON = "cluster(s) didn't match cluster selector"
REMEDY = "labels of the cluster that match the policy's clusterSelector and clusterAffinity"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """An invalid term matches nothing: a mistake in a policy must not place objects everywhere."""
    mask = fleet.everyone
    if unit.cluster_selector:
        selector = from_map(unit.cluster_selector)
        mask = fleet.where(lambda member: selector.matches(member.labels), question=selector)
    if unit.affinity is not None and unit.affinity.required is not None:
        terms = unit.affinity.required
        matching = fleet.where(partial(_required, terms), question=terms)
        mask = matching if mask is fleet.everyone else mask & matching
    return mask


def score(unit: Unit, fleet: Fleet) -> Column:
    """The sum of the weights of the preferred terms that match a cluster's labels; fields do not count."""
    if unit.affinity is None or not unit.affinity.preferred:
        return fleet.zeros
    total = np.zeros(len(fleet), dtype=np.int64)
    for term in unit.affinity.preferred:
        if term.weight and term.preference.match_expressions:
            total += term.weight * fleet.where(partial(_preferred, term), question=term)
    return total


def _required(terms: tuple[ClusterSelectorTerm, ...], member: Member) -> bool:
    try:
        return terms_match(terms, member.name, member.labels)
    except SelectionError:
        return False


def _preferred(term: PreferredTerm, member: Member) -> bool:
    try:
        return expressions_match(term.preference, member.labels)
    except SelectionError:
        return False


FILTER = Filter("ClusterAffinity", feasible, Always(REASON), remedy=REMEDY)
SCORE = Score("ClusterAffinity", score, share_of_best)
