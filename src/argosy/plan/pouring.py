"""Pouring: an amount over vessels in order, as sums over whole columns."""

import numpy as np

from argosy.fleet.snapshot import Column

__all__ = ["before", "poured"]


def poured(total: int, vessels: Column) -> Column:
    """Each in order gets all that is left, up to what it holds."""
    vessels = np.minimum(vessels, total)
    return np.clip(total - before(vessels), 0, vessels)


def before(amounts: Column) -> Column:
    """The sum of all amounts in front of each."""
    return np.cumsum(amounts) - amounts
