"""The weighted planner: how many replicas each selected cluster runs.

Arithmetic over columns: it knows the demand on the clusters, their weights and an order among equals, and nothing of
objects, policies or the fleet. Numbers are 64 bits wide if every product fits, else Python's own, so that weights of any
size divide exactly.

The *desired* distribution divides by weight after serving the minimums, whatever runs today. With `avoid_disruption` the
plan goes from what runs today towards it: scaling in stops replicas only where there are more than desired, scaling out
starts them only where there are fewer, and nothing moves.

Each round of the division goes through the clusters in order, heavier ones first, and gives each its share until nothing
is left. As sums: every cluster before the point where the shares add up to the amount gets its share, the cluster at that
point gets the rest.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import LARGEST, Column, Rows
from argosy.plan.replicas.demand import Demand

__all__ = ["plan_replicas", "stays", "tie_breaks"]

#: Sums over a fleet of products below this fit 64 bits.
_PRODUCTS_FIT: Final = 2**62
_POSITION_BITS: Final = 15
_FNV_PRIME: Final = 16777619
_PRIME: Final = np.array(_FNV_PRIME, dtype=np.uint32)
_BYTES: Final = [np.array(byte, dtype=np.uint32) for byte in range(256)]

_Numbers = npt.NDArray[Any]
"""64-bit integers, or Python's."""


class _Division(NamedTuple):
    replicas: _Numbers
    overflow: _Numbers
    #: Replicas that found no cluster.
    unplaced: int


def plan_replicas(demand: Demand, weights: Column, ties: Column) -> tuple[Column, Column]:
    """For each cluster its replicas, and those of them kept beyond its estimated capacity.

    All columns are in the order of the clusters' names. `ties` breaks ties of weight, the smaller first, then the name. A
    negative weight counts as none.
    """
    heaviest, largest = int(weights.max(initial=0)), max(demand.total, int(demand.current.max(initial=0)))
    exact = _needs_exact_numbers(len(weights), heaviest, largest)
    weights = np.maximum(_numbers(weights, exact), 0)
    if len(weights) < 2**_POSITION_BITS:
        # With the position in the tie-break nothing is equal, and sorting yields positions.
        ties = ties << _POSITION_BITS | np.arange(len(weights))
    desired = _desired(_in_python_numbers(demand) if exact else demand, weights, heaviest, ties)
    overflow = desired.overflow
    if not demand.avoid_disruption:
        # The overflow stays even if it should not be kept: dropping it would raise the estimate again, the next plan would put
        # the replicas back, and the two plans would alternate forever.
        return _column(desired.replicas), _column(overflow)
    replicas = _without_moves(demand, desired.replicas, largest, ties, exact=exact)
    if not demand.keep_unschedulable:
        staying = max(int(replicas.sum()) - int(desired.replicas.sum()), 0)
        overflow = np.minimum(overflow, max(desired.unplaced - staying, 0))
    return _column(replicas), _column(overflow)


def stays(demand: Demand, weights: Column) -> bool:
    """Whether the plan is what runs today, without planning: all wanted replicas run, and no bound applies."""
    return (
        demand.avoid_disruption
        and int(demand.current.sum()) == demand.total
        and int(weights.max(initial=0)) > 0
        and _is_unbounded(demand, demand.ceilings)
    )


def _is_unbounded(demand: Demand, caps: Column) -> bool:
    """Whether each cluster could take all replicas, and none must take any."""
    return not demand.least.any() and int(np.minimum(caps, demand.estimated).min(initial=LARGEST)) >= demand.total


def _desired(demand: Demand, weights: _Numbers, heaviest: int, ties: Column) -> _Division:
    caps = demand.ceilings
    if _is_unbounded(demand, caps):
        shares = _shared(demand.total, weights, heaviest, ties)
        return _Division(shares, np.zeros_like(shares), demand.total if heaviest <= 0 else 0)
    return _divided(demand, _order(weights, heaviest, ties), weights, caps)


def _without_moves(demand: Demand, desired: _Numbers, largest: int, ties: Column, *, exact: bool) -> _Numbers:
    """The present distribution, changed only by the difference of the sums.

    No cluster runs more than `largest`, today or in the desired distribution.
    """
    present = _numbers(demand.present, exact)
    gap = desired - present
    change = int(gap.sum())
    if change == 0:
        return present
    if change < 0:
        return present - _stopped(demand, desired, present, largest, ties)
    return present + _shared(change, np.maximum(gap, 0), largest, ties)


def _stopped(demand: Demand, desired: _Numbers, present: _Numbers, largest: int, ties: Column) -> _Numbers:
    """What stops in each cluster above its desired number.

    If the desired distribution has not found a cluster for all replicas, only what is above a ceiling and the surplus stop: the
    others run where they are, and nowhere else. One that is empty is nobody's wish: the caller keeps what runs, and says so.
    """
    within = np.minimum(present, demand.ceilings)
    above, surplus = present - within, max(int(within.sum()) - demand.total, 0)
    change = int(present.sum() - desired.sum())
    if change <= int(above.sum()) + surplus or not desired.any():
        return _shared(change, np.maximum(present - desired, 0), largest, ties)
    return above + _shared(surplus, np.maximum(within - desired, 0), largest, ties)


def _shared(total: int, weights: _Numbers, heaviest: int, ties: Column) -> _Numbers:
    """One round without bounds: each cluster in order gets its share, rounded up, until nothing is left."""
    all_weights = int(weights.sum())
    if total <= 0 or all_weights <= 0:
        return np.zeros_like(weights)
    shares = -(-total * weights // all_weights)
    order = _order(weights, heaviest, ties)
    sums = shares[order].cumsum()
    last = int((sums >= total).argmax())
    shares[order[last + 1 :]] = 0
    shares[order[last]] += total - sums[last]
    return shares


def _divided(demand: Demand, order: Rows, weights: _Numbers, caps: _Numbers) -> _Division:
    """Minimums first, then by weight in rounds until nothing is left or every cluster is full.

    `caps` are maximums and limited capacities together: no minimum is above them.
    """
    weights, caps, estimated = weights[order], caps[order], demand.estimated[order]
    plan, overflow = _minimums(demand.total, np.minimum(demand.least[order], caps), estimated)
    remaining = demand.total - int(plan.sum())
    room = np.minimum(caps, estimated)
    active = np.arange(len(order))
    while remaining > 0:
        division = weights[active]
        all_weights = int(division.sum())
        if all_weights <= 0:
            break
        have = plan[active]
        shares = -(-remaining * division // all_weights)
        fitting = room[active] - have
        gains = np.minimum(shares, fitting)
        sums = np.cumsum(gains)
        reached = sums >= remaining
        last = int(reached.argmax())
        offered = np.minimum(shares, remaining - (sums - gains))
        if reached[last]:
            # This one gets the rest, and later ones get nothing.
            offered[last + 1 :] = 0
            gains[last] += remaining - sums[last]
            gains[last + 1 :] = 0
        surplus = np.minimum(have + offered, caps[active]) - estimated[active]
        overflow[active] += np.maximum(surplus, 0)
        plan[active] = have + gains
        remaining -= int(gains.sum())
        if reached[last] or not (gains > 0).any():
            break
        active = active[shares <= fitting]
    return _Division(_unordered(plan, order), _unordered(overflow, order), remaining)


def _minimums(total: int, least: _Numbers, estimated: _Numbers) -> tuple[_Numbers, _Numbers]:
    """What each cluster gets of the total for its minimum, in order, and how much of that does not fit."""
    nothing = np.zeros_like(estimated)
    if not least.any():
        return nothing, nothing.copy()
    fitting = np.minimum(np.minimum(least, estimated), total)
    offered = np.maximum(total - (np.cumsum(fitting) - fitting), 0)
    return np.minimum(fitting, offered), np.maximum(np.minimum(least, offered) - estimated, 0)


def _order(weights: _Numbers, heaviest: int, ties: Column) -> Rows:
    """Heavier first, then by tie-break. No weight is above `heaviest`."""
    if weights.dtype == np.object_:
        listed = sorted(zip((-weights).tolist(), ties.tolist(), range(len(weights)), strict=True))
        return np.array([position for _, _, position in listed], dtype=np.intp)
    if heaviest < 2**16 and len(weights) < 2**_POSITION_BITS:
        # All in one number of 63 bits: sorting it is several times as fast as sorting by keys.
        return np.sort((heaviest - weights) << (32 + _POSITION_BITS) | ties) & (2**_POSITION_BITS - 1)
    return np.lexsort((ties, -weights))


def _unordered(ordered: _Numbers, order: Rows) -> _Numbers:
    back = np.empty_like(ordered)
    back[order] = ordered
    return back


def _numbers(column: Column, exact: bool) -> _Numbers:
    return column.astype(np.object_) if exact else column


def _in_python_numbers(demand: Demand) -> Demand:
    columns = ("current", "least", "most", "limited", "estimated")
    return demand._replace(**{name: getattr(demand, name).astype(np.object_) for name in columns})


def _column(numbers: _Numbers) -> Column:
    return numbers.astype(np.int64) if numbers.dtype == np.object_ else numbers


def _needs_exact_numbers(count: int, heaviest: int, largest: int) -> bool:
    """Whether some product or sum does not fit 64 bits. Shares in scaling are multiplied by replicas, so those count too."""
    return max(heaviest, largest * count) * max(largest, count) * 2 >= _PRODUCTS_FIT


def tie_breaks(name_hashes: npt.NDArray[np.uint32], key: str) -> Column:
    """32-bit FNV-1 of each cluster's name followed by the key, from the hashes of the names.

    What a byte of the key adds depends only on the lowest byte of the hash, so the key is run through once for the 256 possible
    bytes, whatever the number of clusters.
    """
    namespace, slash, name = key.rpartition("/")
    ends = _after(_after_namespace(namespace + slash), name.encode())
    power = np.uint32(pow(_FNV_PRIME, len(key.encode()), 2**32))
    lowest = name_hashes & np.uint32(0xFF)
    hashes: Column = (ends[lowest] + (name_hashes - lowest) * power).astype(np.int64)
    return hashes


@lru_cache(maxsize=1024)
def _after_namespace(namespace: str) -> npt.NDArray[np.uint32]:
    """Cached, since the workloads of a namespace share it."""
    return _after(np.arange(256, dtype=np.uint32), namespace.encode())


def _after(starts: npt.NDArray[np.uint32], text: bytes) -> npt.NDArray[np.uint32]:
    ends = starts.copy()
    for byte in text:
        np.multiply(ends, _PRIME, ends)
        np.bitwise_xor(ends, _BYTES[byte], ends)
    return ends
