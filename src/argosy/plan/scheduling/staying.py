"""Staying: where only some of the feasible clusters are selected, those that have the object come first.

Scores are relative to all other clusters, and an object's own pods lower its cluster's score. So by scores alone, an object
would move because of a taint on a third cluster, or because it grew. Among those that have it, the ones that may get more come
first: what leaves the others can start there.
"""

import numpy as np

from argosy.fleet.snapshot import Fleet, Mask, Rows
from argosy.kube.taints import NO_SCHEDULE
from argosy.plan.scheduling.framework import Ranked
from argosy.plan.scheduling.unit import Unit

__all__ = ["closed_to_more", "staying_first"]


def closed_to_more(unit: Unit, fleet: Fleet) -> Mask:
    """Clusters that get no new replicas: they are feasible only where they run some."""
    closed = fleet.taints.untolerated(unit.tolerations, NO_SCHEDULE)
    return closed | fleet.mask_of(unit.closed) if unit.closed else closed


def staying_first(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
    """The same clusters in the order to select from. Priorities are the user's own order: there it only breaks ties."""
    if not unit.stays_put:
        return ranked
    others = ~fleet.mask_of(unit.current)[ranked.rows]
    closed = closed_to_more(unit, fleet)[ranked.rows]
    keys = (closed, others, -ranked.scores) if unit.priorities else (closed, others)
    order: Rows = np.lexsort(keys)
    return Ranked(ranked.rows[order], ranked.scores[order])
