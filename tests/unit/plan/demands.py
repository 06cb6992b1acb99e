"""Demands for planner tests: built by hand from the few numbers a test is about, or drawn at random."""

from functools import cache

import numpy as np
from hypothesis import strategies as st

from argosy.fleet.snapshot import LARGEST
from argosy.plan.replicas.demand import Demand


def column(numbers, default=0):
    return np.array([default if number is None else number for number in numbers], dtype=np.int64)


def demand(
    total,
    current,
    *,
    least=None,
    most=None,
    limited=None,
    estimated=None,
    avoid_disruption=True,
    keep_unschedulable=False,
):
    """One number a cluster; None where a bound or capacity is not stated."""
    nothing = [None] * len(current)
    return Demand(
        total,
        column(current),
        column(least or nothing),
        column(most or nothing, LARGEST),
        column(limited or nothing, LARGEST),
        column(estimated or nothing, LARGEST),
        avoid_disruption,
        keep_unschedulable,
    )


numbers = st.one_of(st.integers(0, 40), st.integers(0, 2**31))
bounds = st.one_of(st.none(), st.none(), numbers)


@cache
def several(values, size):
    """Made once: making strategies takes longer than drawing from them."""
    return st.lists(values, min_size=size, max_size=size)


minimums = st.one_of(st.just(0), numbers)


@st.composite
def demands(draw, capacities=True, **fixed):
    """Any workload on up to 8 clusters; where a cluster's minimum is above its maximum, they change places."""
    size = draw(st.integers(1, 8))

    def some(values):
        return draw(several(values, size))

    bounded = [
        (least, most) if most is None or least <= most else (most, least)
        for least, most in zip(some(minimums), some(bounds), strict=True)
    ]
    drawn = {
        "least": [least for least, _ in bounded],
        "most": [most for _, most in bounded],
        "limited": some(bounds) if capacities else None,
        "estimated": some(bounds) if capacities else None,
        "avoid_disruption": draw(st.booleans()),
        "keep_unschedulable": draw(st.booleans()),
    }
    return demand(draw(numbers), some(numbers), **{**drawn, **fixed})
