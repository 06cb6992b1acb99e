"""Dynamic weights: how much of a workload each cluster should take, by its capacity and its free capacity.

A cluster's share follows its free capacity, but is at most 1.4 times its share of all capacity, so that a small empty
cluster is not flooded. `level_weights` instead lead to the same level of use everywhere. Weights are on a scale of 1000.
"""

import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import Column

__all__ = ["SCALE", "SUPPLY_LIMIT_RATIO", "available_weights", "dynamic_weights", "level_weights", "weight_limits"]

SCALE = 1000
SUPPLY_LIMIT_RATIO = 1.4


def dynamic_weights(allocatable: Column, available: Column) -> Column:
    """One weight per cluster, in the given order. Ties for the rounding remainder go to the first."""
    return available_weights(available, weight_limits(allocatable))


def level_weights(allocatable: Column, available: Column, added: int) -> Column:
    """How much each cluster lacks to be as full as all would be with this amount added, spread evenly over them.

    Unlike shares of free capacity, these weights fill small clusters to the same rate as large ones. No weight is 0, so that
    no replica is left without a cluster while one has room.
    """
    held = np.maximum(allocatable, 1).astype(np.float64)
    used = np.maximum(held - available, 0.0)
    rates = used / held
    order = np.argsort(rates, kind="stable")
    levels = (added + np.cumsum(used[order])) / np.cumsum(held[order])
    # The level is that of the clusters below it: as many of the emptiest as it rises above.
    below = int(np.flatnonzero(levels > rates[order])[-1]) if (levels > rates[order]).any() else 0
    missing: Column = np.maximum(levels[below] * held - used, 0.0).astype(np.int64)
    return missing + 1


def weight_limits(allocatable: Column, ratio: float = SUPPLY_LIMIT_RATIO) -> Column:
    """The upper limit of each cluster, by its share of all allocatable capacity."""
    total = _sum(allocatable)
    if total == 0:
        return _equal(len(allocatable))
    return _rounded(allocatable / total * SCALE * ratio)


def available_weights(available: Column, limits: Column) -> Column:
    """Shares of the free capacity, capped by `limits`, scaled to sum to 1000 again."""
    free = np.maximum(available, 0)
    total = _sum(free)
    if total == 0:
        return _equal(len(free))
    capped = np.minimum(_rounded(free / total * SCALE), limits)
    sum_capped = int(capped.sum())
    if sum_capped == 0:
        return _equal(len(free))
    weights = _rounded(capped / sum_capped * SCALE)
    weights[weights.argmax()] += SCALE - int(weights.sum())
    return weights


def _sum(amounts: Column) -> float:
    """As a float: amounts may be as large as a column holds, and their sum larger."""
    return float(amounts.sum(dtype=np.float64))


def _equal(count: int) -> Column:
    return _rounded(np.full(count, SCALE / max(count, 1)))


def _rounded(numbers: npt.NDArray[np.float64]) -> Column:
    """Rounds half away from zero, for numbers that are not negative."""
    whole = np.floor(numbers)
    whole += numbers - whole >= 0.5
    return whole.astype(np.int64)
