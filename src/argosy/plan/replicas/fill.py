"""Filling in order: a total given to one cluster after another, each up to its capacity, computed over whole columns."""

import numpy as np

from argosy.fleet.snapshot import Column

__all__ = ["before", "fill_in_order"]


def fill_in_order(total: int, capacities: Column) -> Column:
    """Each in order gets all that is left, up to its capacity."""
    capacities = np.minimum(capacities, total)
    return np.clip(total - before(capacities), 0, capacities)


def before(amounts: Column) -> Column:
    """For each row, the sum of all amounts before it."""
    return np.cumsum(amounts) - amounts
