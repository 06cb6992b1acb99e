"""Webster's method (Sainte-Laguë): each cluster as near to its share by weight as whole replicas allow.

Each further replica goes where weight / (2 × replicas + 1) is largest; a minimum is where a cluster begins, a maximum where
it stops. Shares are rounded to the nearest number, so neither heavy nor light clusters are favoured, and one replica more
never lowers the number of any cluster (which rounding up in turns does).

The result is exact for weights of any size: floats only guess where to begin, integers decide. `ties` is a strict order
among clusters; the lower one comes first.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import Column, Mask
from argosy.plan.replicas.fill import fill_in_order

__all__ = ["apportioned"]

#: Products below this are exact in a column; above, in Python's integers.
_EXACT = 2**62


def apportioned(total: int, floors: Column, ceilings: Column, weights: Column, ties: Column) -> Column:
    """Floors first, then by weight up to the ceilings. Clusters without weight share evenly what the others cannot take."""
    if total <= int(floors.sum()):
        order = np.lexsort((ties, -weights))
        seats = np.empty_like(floors)
        seats[order] = fill_in_order(total, floors[order])
        return seats
    ceilings = np.minimum(ceilings, total)
    weightless = weights == 0
    if not weightless.any():
        return _seated(total, floors, ceilings, weights, ties)
    seats, weighed = floors.copy(), ~weightless
    theirs = total - int(floors[weightless].sum())
    if weighed.any():
        seats[weighed] = _seated(theirs, floors[weighed], ceilings[weighed], weights[weighed], ties[weighed])
    left = total - int(seats[weighed].sum())
    equal = np.ones(int(weightless.sum()), dtype=np.int64)
    seats[weightless] = _seated(left, floors[weightless], ceilings[weightless], equal, ties[weightless])
    return seats


def _seated(total: int, floors: Column, ceilings: Column, weights: Column, ties: Column) -> Column:
    """All weights are positive and the floors are within the total."""
    if int(ceilings.sum()) <= total:
        return ceilings
    seats = _guess(total, floors, ceilings, weights)
    while missing := total - int(seats.sum()):
        if missing > 0:
            may = np.flatnonzero(seats < ceilings)
            order = np.lexsort((ties[may], -(weights[may] / (2 * seats[may] + 1))))
            seats[may[order[:missing]]] += 1
        else:
            may = np.flatnonzero(seats > floors)
            order = np.lexsort((-ties[may], weights[may] / (2 * seats[may] - 1)))
            seats[may[order[:-missing]]] -= 1
    return _settled(seats, floors, ceilings, weights, ties)


def _guess(total: int, floors: Column, ceilings: Column, weights: Column) -> Column:
    """Each cluster's rounded share, for a price per replica at which all clusters together take about the total."""
    # The sum of shares grows with the price by the weights of all clusters above their floor and below their ceiling.
    prices = np.concatenate((floors / weights, ceilings / weights))
    slopes = np.concatenate((weights, -weights)).astype(np.float64)
    order = np.argsort(prices)
    prices, slopes = prices[order], np.cumsum(slopes[order])
    reached = int(floors.sum()) + np.concatenate(([0.0], np.cumsum(np.diff(prices) * slopes[:-1])))
    at = max(int(np.searchsorted(reached, total)) - 1, 0)
    price = prices[at] + (total - reached[at]) / max(slopes[at], 1.0)
    shares = np.clip(np.rint(weights * price), 0, total)
    guess: Column = np.clip(shares.astype(np.int64), floors, ceilings)
    return guess


def _settled(seats: Column, floors: Column, ceilings: Column, weights: Column, ties: Column) -> Column:
    """Moves single replicas until no cluster has a better claim to one than the cluster that has it."""
    claims: npt.NDArray[Any] = weights
    counts: npt.NDArray[Any] = seats
    if int(weights.max()) >= _EXACT // (2 * int(ceilings.max()) + 1):
        claims, counts = weights.astype(object), seats.astype(object)
    while True:
        gains, losses = seats < ceilings, seats > floors
        if not gains.any() or not losses.any():
            return seats
        gaining = _foremost(claims, 2 * counts + 1, ties, gains)
        losing = _last(claims, 2 * counts - 1, ties, losses)
        claim, held = claims[gaining] * (2 * counts[losing] - 1), claims[losing] * (2 * counts[gaining] + 1)
        if claim < held or (claim == held and ties[gaining] >= ties[losing]):
            return seats
        for row, change in ((gaining, 1), (losing, -1)):
            seats[row] += change
            counts[row] = seats[row] if counts is seats else int(seats[row])


def _foremost(claims: npt.NDArray[Any], divisors: npt.NDArray[Any], ties: Column, among: Mask) -> int:
    """The cluster with the largest quotient, the first of equals."""
    rows = np.flatnonzero(among)
    claims, divisors, ties = claims[rows], divisors[rows], ties[rows]
    pivot = int((claims / divisors).argmax())
    while True:
        theirs, own = claims * divisors[pivot], claims[pivot] * divisors
        better = np.flatnonzero(theirs > own)
        if not len(better):
            alike = np.flatnonzero(theirs == own)
            return int(rows[alike[ties[alike].argmin()]])
        pivot = int(better[0])


def _last(claims: npt.NDArray[Any], divisors: npt.NDArray[Any], ties: Column, among: Mask) -> int:
    """The cluster with the smallest quotient, the last of equals."""
    return _foremost(divisors, claims, -ties, among)
