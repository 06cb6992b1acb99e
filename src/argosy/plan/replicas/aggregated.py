"""The aggregated planner: as few clusters as can hold the replicas, those that run some already before others.

Among all sets of the smallest number of clusters that have room for the total, it takes the one whose members are preferred,
and fills its largest first. Clusters that are used anyhow (for a minimum, or because nothing is to be moved away) are filled
before any other is opened.
"""

import numpy as np

from argosy.fleet.snapshot import Column, Mask, Rows
from argosy.plan.replicas.fill import fill_in_order

__all__ = ["aggregated", "fewest"]


def aggregated(total: int, floors: Column, ceilings: Column, fits: Column, preference: Rows) -> Column:
    """Floors first, then the fewest clusters up to the ceilings; `preference` is the order among clusters.

    `fits` is what each cluster seems to have resources for: it decides where to go, and what fits nowhere still goes where
    the ceilings allow it, since the clusters know better what they can run.
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
    """Not by preference: that follows what runs today, and the same plan made again would be another one."""
    order = np.argsort(-room, kind="stable")
    plan = np.empty_like(room)
    plan[order] = fill_in_order(total, room[order])
    return plan


def fewest(total: int, room: Column, preference: Rows) -> Mask:
    """The smallest set of clusters with room for the total; of several, the one of those that are preferred.

    Everybody who has room where all of them together have too little.
    """
    chosen = np.zeros(len(room), dtype=np.bool_)
    chosen[preference] = _fewest(total, np.minimum(room[preference], total))
    return chosen


def _fewest(total: int, room: Column) -> Mask:
    """In the order of preference; nobody has room for more than the total."""
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
    """Goes through the clusters in order and takes each that leaves a way to reach the total.

    `needed` are the largest ones, with room for the total and `slack` more. One of them can be taken always; another one
    can take the place of the smallest of those that still wait, where the slack makes up for the difference.
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
