"""The aggregated planner: as few clusters as can hold the replicas; clusters that already run some come first.

Of all smallest sets of clusters with room for the total, it takes the most preferred, and fills the largest clusters first.
Clusters that are used anyhow (for a minimum, or because nothing may move) are filled before any other is opened.
"""

import numpy as np

from argosy.fleet.snapshot import Column, Mask, Rows
from argosy.plan.replicas.fill import fill_in_order

__all__ = ["aggregated", "fewest"]


def aggregated(total: int, floors: Column, ceilings: Column, fits: Column, preference: Rows) -> Column:
    """Floors first, then the fewest clusters up to the ceilings; `preference` is the order among clusters.

    `fits` is the number of replicas each cluster seems to have resources for; it decides where replicas go. Replicas that fit
    nowhere still go where the ceilings allow: the clusters themselves know better what they can run.
    """
    comfortable = np.minimum(ceilings, np.maximum(floors, fits))
    plan = _aggregated(total, floors, comfortable, preference)
    if int(plan.sum()) == total:
        return plan
    return _aggregated(total, plan, ceilings, preference)


def _aggregated(total: int, floors: Column, ceilings: Column, preference: Rows) -> Column:
    plan = fill_in_order(total, floors)
    used = plan > 0
    plan = plan + _largest_first(total - int(plan.sum()), np.where(used, ceilings - plan, 0))
    remaining = total - int(plan.sum())
    if remaining == 0:
        return plan
    room = np.where(used, 0, ceilings)
    return plan + _largest_first(remaining, np.where(fewest(remaining, room, preference), room, 0))


def _largest_first(total: int, room: Column) -> Column:
    """Not by preference: that follows what runs today, so the same plan made again would differ."""
    order = np.argsort(-room, kind="stable")
    plan = np.empty_like(room)
    plan[order] = fill_in_order(total, room[order])
    return plan


def fewest(total: int, room: Column, preference: Rows) -> Mask:
    """The smallest set of clusters with room for the total; of several, the most preferred.

    All clusters with room, if together they have too little.
    """
    chosen = np.zeros(len(room), dtype=np.bool_)
    chosen[preference] = _fewest(total, np.minimum(room[preference], total))
    return chosen


def _fewest(total: int, room: Column) -> Mask:
    """In the order of preference; no cluster has room for more than the total."""
    enough = np.flatnonzero(room == total)
    if len(enough):
        chosen = np.zeros(len(room), dtype=np.bool_)
        chosen[enough[0]] = True
        return chosen
    largest = np.argsort(-room, kind="stable")
    filled = np.cumsum(room[largest])
    count = int(np.searchsorted(filled, total)) + 1
    if count > len(room):
        return room > 0
    return _foremost(room, largest[:count], int(filled[count - 1]) - total)


def _foremost(room: Column, needed: Rows, slack: int) -> Mask:
    """Goes through the clusters in order and takes each one with which the total can still be reached.

    `needed` are the largest clusters, with room for the total and `slack` more. Each of them can be taken. Any other cluster
    can replace the smallest of those not taken yet, if the slack covers the difference.
    """
    chosen = np.zeros(len(room), dtype=np.bool_)
    waiting = needed.tolist()  # the smallest last
    still = set(waiting)
    sizes = room.tolist()
    for row, size in enumerate(sizes):
        if row in still:
            still.discard(row)
            chosen[row] = True
        elif still and size > 0:
            while waiting[-1] not in still:
                waiting.pop()
            difference = sizes[waiting[-1]] - size
            if difference <= slack:
                slack -= difference
                still.discard(waiting.pop())
                chosen[row] = True
        if not still:
            return chosen
    return chosen
