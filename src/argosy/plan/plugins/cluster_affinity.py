"""ClusterAffinity: clusters by their labels. The selector and the required terms filter, preferred terms score."""

from functools import partial

import numpy as np

from argosy.api.policies import ClusterSelectorTerm
from argosy.fleet.member import Member
from argosy.fleet.snapshot import Column, Fleet, Mask
from argosy.plan.framework import MAX_SCORE, Filter, Score
from argosy.plan.selection import SelectionError, expressions_match, selector_matches, terms_match
from argosy.plan.unit import PreferredTerm, Unit

REASON = "cluster(s) didn't match cluster selector"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """A wrong term matches nothing: a mistake in a policy must not place objects everywhere."""
    mask = np.ones(len(fleet), dtype=np.bool_)
    if unit.cluster_selector:
        selector = unit.cluster_selector
        mask &= fleet.where(
            lambda member: selector_matches(selector, member.labels), question=frozenset(selector.items())
        )
    if unit.affinity is not None and unit.affinity.required is not None:
        terms = unit.affinity.required
        mask &= fleet.where(partial(_required, terms), question=terms)
    return mask


def reason(unit: Unit, fleet: Fleet, row: int) -> str:
    return REASON


def score(unit: Unit, fleet: Fleet) -> Column:
    """The weights of the preferred terms a cluster's labels match; fields do not count."""
    total = np.zeros(len(fleet), dtype=np.int64)
    for term in unit.affinity.preferred if unit.affinity is not None else ():
        if term.weight and term.preference.match_expressions:
            total += term.weight * fleet.where(partial(_preferred, term), question=term)
    return total


def normalize(scores: Column) -> Column:
    best = int(scores.max(initial=0))
    return MAX_SCORE * scores // best if best else scores


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


FILTER = Filter("ClusterAffinity", feasible, reason)
SCORE = Score("ClusterAffinity", score, normalize)
