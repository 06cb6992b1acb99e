"""The weighted replica planner: how many replicas each selected cluster runs.

Arithmetic over columns: it knows what is demanded of the clusters, their weights and an order among equals, and nothing of
objects, policies or the fleet. Numbers are 64 bits wide where every product fits, else Python's own, so that weights of
any size divide exactly.

Two ideas. The *desired* distribution divides by weight after serving the minimums, whatever runs today. With
`avoid_disruption` the plan then only walks from the present towards it: scaling in stops replicas only where there are
more than desired, scaling out starts them only where there are fewer, and nothing moves.

Each round of the division goes through the clusters in order, heavier ones first, and gives each its share until nothing
is left. As sums: whoever comes before the point where the shares in front add up to what there is gets its share, the one
at that point gets the rest.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import LARGEST, Column, Rows
from argosy.plan.demand import Demand

__all__ = ["plan_replicas", "tie_breaks"]

#: Sums over a fleet of products below this fit 64 bits.
_PRODUCTS_FIT: Final = 2**62
_FNV_PRIME: Final = 16777619
_BYTES: Final = [np.array(byte, dtype=np.uint32) for byte in range(256)]

_Numbers = npt.NDArray[Any]
"""64-bit integers, or Python's."""


class _Division(NamedTuple):
    replicas: _Numbers
    overflow: _Numbers
    #: Replicas that found no cluster.
    homeless: int


def plan_replicas(demand: Demand, weights: Column, ties: Column) -> tuple[Column, Column]:
    """Replicas, and those kept beyond a cluster's estimated capacity, for each cluster.

    All columns are in the order of the clusters' names. `ties` decides among equal weights, the smaller first, then the
    name. A negative weight is none.
    """
    total = demand.total
    caps = np.minimum(demand.most, demand.limited)
    exact = _needs_exact_numbers(demand, weights)
    least, desired_caps, estimated, weights_ = demand.least, caps, demand.estimated, np.maximum(weights, 0)
    if exact:
        least, desired_caps, estimated, weights_ = (
            column.astype(np.object_) for column in (least, desired_caps, estimated, weights_)
        )
    order = _order(weights_, ties)
    desired = _divided(total, order, weights_, least, desired_caps, demand.limited, estimated)
    overflow = desired.overflow
    if not demand.avoid_disruption:
        # The overflow stays even where it is not to be kept: dropping it would raise the estimate again, the next plan
        # would put the replicas back, and the two plans would alternate for ever.
        return _column(desired.replicas), _column(overflow)
    if not demand.keep_unschedulable:
        overflow = np.minimum(overflow, desired.homeless)
    return _column(_walked(demand, desired.replicas, ties, exact=exact)), _column(overflow)


def _walked(demand: Demand, desired: _Numbers, ties: Column, *, exact: bool) -> _Numbers:
    """The present distribution, changed by no more than the difference of the sums."""
    present = demand.present.astype(np.object_) if exact else demand.present
    gap = desired - present
    change = int(gap.sum())
    if change == 0:
        return present
    moving = np.flatnonzero(gap < 0 if change < 0 else gap > 0)
    by, running = np.abs(gap[moving]), present[moving]
    if change < 0:
        caps = running
    else:
        most = demand.most[moving]
        caps = np.where(most == LARGEST, LARGEST, most - running)
    if exact:
        caps = caps.astype(np.object_)
    nothing, unlimited = np.zeros_like(by), np.full_like(by, LARGEST)
    order = _order(by, ties[moving])
    moved = _divided(abs(change), order, by, nothing, caps, unlimited, unlimited).replicas
    after = present.copy()
    after[moving] += moved if change > 0 else -moved
    return after


def _divided(
    total: int,
    order: Rows,
    weights: _Numbers,
    least: _Numbers,
    caps: _Numbers,
    limited: _Numbers,
    estimated: _Numbers,
) -> _Division:
    """Minimums first, then by weight in rounds until nothing is left or every cluster is full.

    `caps` are maximums and limited capacities together; minimums heed only the latter.
    """
    weights, caps, estimated = weights[order], caps[order], estimated[order]
    plan, overflow = _minimums(total, np.minimum(least[order], limited[order]), estimated)
    remaining = total - int(plan.sum())
    room = np.minimum(caps, estimated)
    estimates = bool((estimated < LARGEST).any())
    active = np.arange(len(order))
    while remaining > 0:
        sharing = weights[active]
        all_weights = int(sharing.sum())
        if all_weights <= 0:
            break
        have = plan[active]
        shares = -(-remaining * sharing // all_weights)
        fitting = room[active] - have
        gains = np.minimum(shares, fitting)
        sums = np.cumsum(gains)
        reached = sums >= remaining
        last = int(reached.argmax())
        enough = not reached[last]
        if estimates:
            offered = np.minimum(shares, remaining - (sums - gains))
            if not enough:
                offered[last + 1 :] = 0
            surplus = np.minimum(have + offered, caps[active]) - estimated[active]
            overflow[active] += np.maximum(surplus, 0)
        if not enough:
            # This one gets what is left, and whoever comes later was offered nothing.
            gains[last] += remaining - sums[last]
            gains[last + 1 :] = 0
            plan[active] = have + gains
            remaining = 0
            break
        plan[active] = have + gains
        remaining -= int(sums[-1])
        if not (gains > 0).any():
            break
        active = active[shares <= fitting]
    return _Division(_unordered(plan, order), _unordered(overflow, order), remaining)


def _minimums(total: int, least: _Numbers, estimated: _Numbers) -> tuple[_Numbers, _Numbers]:
    """What each gets of the total for its minimum, in order, and how much of that does not fit."""
    nothing = np.zeros_like(estimated)
    if not least.any():
        return nothing, nothing.copy()
    fitting = np.minimum(np.minimum(least, estimated), total)
    offered = np.maximum(total - (np.cumsum(fitting) - fitting), 0)
    return np.minimum(fitting, offered), np.maximum(np.minimum(least, offered) - estimated, 0)


def _order(weights: _Numbers, ties: Column) -> Rows:
    """Heavier first, then by tie-break, then as they came."""
    count = len(weights)
    heaviest = int(weights.max()) if count else 0
    if heaviest < 2**16 and count < 2**15:
        # All in one number of 63 bits, the position last: sorting it is several times as quick as sorting by keys.
        position = np.arange(count, dtype=np.int64)
        return np.sort((heaviest - weights.astype(np.int64)) << 47 | ties << 15 | position) & 0x7FFF
    if weights.dtype == np.object_:
        listed: Sequence[tuple[int, int, int]] = list(
            zip((-weights).tolist(), ties.tolist(), range(count), strict=True)
        )
        return np.array([position for _, _, position in sorted(listed)], dtype=np.intp)
    return np.lexsort((ties, -weights))


def _unordered(ordered: _Numbers, order: Rows) -> _Numbers:
    back = np.empty_like(ordered)
    back[order] = ordered
    return back


def _column(numbers: _Numbers) -> Column:
    return numbers.astype(np.int64) if numbers.dtype == np.object_ else numbers


def _needs_exact_numbers(demand: Demand, weights: Column) -> bool:
    """Whether some product or sum does not fit 64 bits. Shares in scaling are weighed by replicas, so those count too."""
    count = max(len(weights), 1)
    numbers = max(demand.total, int(demand.current.max(initial=0)))
    return max(int(weights.max(initial=0)), numbers * count) * max(numbers, count) * 2 >= _PRODUCTS_FIT


def tie_breaks(name_hashes: npt.NDArray[np.uint32], key: str) -> Column:
    """32-bit FNV-1 of each cluster's name followed by the key, from the hashes of the names.

    What a byte of the key adds depends on the lowest byte of the hash alone, so the key is run through once for the 256
    possible ones, whatever the number of clusters.
    """
    ends = np.arange(256, dtype=np.uint32)
    prime = np.array(_FNV_PRIME, dtype=np.uint32)
    key_bytes = key.encode()
    for byte in key_bytes:
        np.multiply(ends, prime, ends)
        np.bitwise_xor(ends, _BYTES[byte], ends)
    power = np.uint32(pow(_FNV_PRIME, len(key_bytes), 2**32))
    lowest = name_hashes & np.uint32(0xFF)
    return (ends[lowest] + (name_hashes - lowest) * power).astype(np.int64)
