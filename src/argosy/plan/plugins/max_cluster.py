"""MaxCluster: at most so many clusters, the best ones; clusters that have the object already come first.

Among equals, those that may get more of it come before those that may only keep what they run.
"""

import numpy as np

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import FrameworkError, Ranked, Select
from argosy.plan.scheduling.staying import closed_to_more, staying_first
from argosy.plan.scheduling.unit import Unit

REASON = "max cluster is less than 0"


def select(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
    """Otherwise keeps the order of equals."""
    if unit.max_clusters is not None and unit.max_clusters < 0:
        raise FrameworkError(REASON)
    if unit.max_clusters is None:
        order = np.argsort(-ranked.scores, kind="stable")
    else:
        order = np.lexsort((closed_to_more(unit, fleet)[ranked.rows], -ranked.scores))
    best = staying_first(unit, fleet, Ranked(ranked.rows[order], ranked.scores[order]))
    return Ranked(best.rows[: unit.max_clusters], best.scores[: unit.max_clusters])


SELECT = Select("MaxCluster", select)
