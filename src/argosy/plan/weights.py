"""Dynamic weights: how much of a workload each cluster should take, from what it holds and what it has free.

By water level: a cluster's share follows its free capacity, but never more than 1.4 times its share of all capacity, so
a small cluster that happens to be empty is not flooded. Weights are on a scale of 1000.
"""

import math
from collections.abc import Iterable, Sequence

__all__ = [
    "SCALE",
    "SUPPLY_LIMIT_RATIO",
    "MissingResource",
    "available_weights",
    "dynamic_weights",
    "reported",
    "weight_limits",
]

SCALE = 1000
SUPPLY_LIMIT_RATIO = 1.4


class MissingResource(ValueError):
    """A cluster does not report the resource that weights are to follow."""


def reported(resource: str, amounts: Iterable[int | None]) -> list[int]:
    """The amounts, if every cluster reports one. Raises MissingResource."""
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    if len(known) != len(found):
        raise MissingResource(f"no {resource} resource")
    return known


def dynamic_weights(allocatable: Sequence[int], available: Sequence[int]) -> list[int]:
    """One weight per cluster, positions as given. Ties for the rounding remainder go to the first."""
    return available_weights(available, weight_limits(allocatable))


def weight_limits(allocatable: Sequence[int], ratio: float = SUPPLY_LIMIT_RATIO) -> list[int]:
    """The ceiling of each cluster, by its share of all allocatable capacity."""
    total = sum(allocatable)
    if total == 0:
        return _equal(len(allocatable))
    return [_round(amount / total * SCALE * ratio) for amount in allocatable]


def available_weights(available: Sequence[int], limits: Sequence[int]) -> list[int]:
    """Shares of the free capacity, capped by `limits`, scaled to sum to 1000 again."""
    free = [max(amount, 0) for amount in available]
    total = sum(free)
    if total == 0:
        return _equal(len(free))
    capped = [min(_round(amount / total * SCALE), limit) for amount, limit in zip(free, limits, strict=True)]
    sum_capped = sum(capped)
    if sum_capped == 0:
        return _equal(len(free))
    weights = [_round(weight / sum_capped * SCALE) for weight in capped]
    weights[weights.index(max(weights))] += SCALE - sum(weights)
    return weights


def _equal(count: int) -> list[int]:
    return [_round(SCALE / count)] * count if count else []


def _round(number: float) -> int:
    """Half away from zero, for numbers that are not negative."""
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole
