"""MaxCluster: at most so many clusters, the best ones. If disruption is avoided, clusters that run the object come first.

Running replicas lower their cluster's score, so by scores alone an object that grows would be moved away.
"""

import numpy as np

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import FrameworkError, Ranked, Select
from argosy.plan.scheduling.unit import Unit

REASON = "max cluster is less than 0"


def select(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
    """Keeps the order of equals."""
    if unit.max_clusters is not None and unit.max_clusters < 0:
        raise FrameworkError(REASON)
    best = np.argsort(-ranked.scores, kind="stable")
    if unit.stays_put:
        staying = fleet.mask_of(unit.current)[ranked.rows[best]]
        best = np.concatenate([best[staying], best[~staying]])
    best = best[: unit.max_clusters]
    return Ranked(ranked.rows[best], ranked.scores[best])


SELECT = Select("MaxCluster", select)
