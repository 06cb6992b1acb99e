"""Staying: where only some of the feasible clusters are selected, those that have the object come first.

Scores are relative to all other clusters, and an object's own pods lower its cluster's score. So by scores alone, an object
would move because of a taint on a third cluster, or because it grew.
"""

import numpy as np

from argosy.fleet.snapshot import Fleet, Rows
from argosy.plan.scheduling.framework import Ranked
from argosy.plan.scheduling.unit import Unit

__all__ = ["staying_first"]


def staying_first(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
    """The same clusters in the order to select from. Priorities are the user's own order: there it only breaks ties."""
    if not unit.stays_put:
        return ranked
    others = ~fleet.mask_of(unit.current)[ranked.rows]
    order: Rows = np.lexsort((others, -ranked.scores)) if unit.priorities else np.argsort(others, kind="stable")
    return Ranked(ranked.rows[order], ranked.scores[order])
