"""Filling in order: a total over clusters one after the other, each up to its capacity, as sums over whole columns."""

import numpy as np

from argosy.fleet.snapshot import Column

__all__ = ["before", "fill_in_order"]


def fill_in_order(total: int, capacities: Column) -> Column:
    """Each in order gets all that is left, up to its capacity."""
    capacities = np.minimum(capacities, total)
    return np.clip(total - before(capacities), 0, capacities)


def before(amounts: Column) -> Column:
    """The sum of all amounts in front of each."""
    return np.cumsum(amounts) - amounts
