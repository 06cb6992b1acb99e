"""Bin-pack: one cluster after another; worked examples, and two sums that are easily got wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas.binpack import bin_pack, desired, is_settled
from tests.unit.plan.demands import column, demand


def plan(*arguments, scheduled=None, **bounds):
    wanted = demand(*arguments, **bounds)
    replicas, overflow = bin_pack(wanted, column(scheduled or [0] * len(wanted.current)))
    return replicas.tolist(), overflow.tolist()


NOTHING = [0, 0, 0]
EXAMPLES = [
    ("all to the first", plan(10, NOTHING), [10, 0, 0], NOTHING),
    ("the next when it is full", plan(10, NOTHING, most=[4, None, None]), [4, 6, 0], NOTHING),
    (
        "what is stuck is started elsewhere and kept for now",
        plan(10, [10, 0, 0], estimated=[6, None, None], scheduled=[6, 0, 0]),
        [6, 4, 0],
        [4, 0, 0],
    ),
    (
        "what was kept goes once all run",
        plan(10, [10, 4, 0], estimated=[6, None, None], scheduled=[6, 4, 0]),
        [6, 4, 0],
        NOTHING,
    ),
    ("the last gives first", plan(5, [6, 4, 0]), [5, 0, 0], NOTHING),
    ("a hard limit moves replicas", plan(9, [9, 0, 0], limited=[3, None, None]), [3, 6, 0], NOTHING),
]


@pytest.mark.parametrize(("result", "replicas", "overflow"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES])
def test_worked_examples(result, replicas, overflow):
    assert result == (replicas, overflow)


def test_maximums_below_what_runs_add_nothing_where_more_is_wanted():
    """Scaling in by what runs minus what is wanted would be by a negative number here, and add to a full cluster."""
    assert plan(10, [4, 4], most=[3, 4])[0] == [4, 4]


def test_what_maximums_keep_back_starts_where_there_is_room():
    assert plan(10, [6, 2], most=[3, 4])[0] == [6, 4]


def test_scaling_in_returns_to_the_maximum_first():
    assert plan(7, [6, 2], most=[3, 9])[0] == [5, 2]


def test_a_minimum_counts_what_runs_already():
    """Taken as an increment, the minimum would start 4 more in the cluster that runs 3 of its 4."""
    assert plan(12, [5, 3], least=[0, 4])[0] == [8, 4]


def test_limited_capacity_counts_what_runs_already():
    """Taken as an increment, the limit would let the first cluster run 5 beside the 5 it has."""
    assert plan(12, [5, 0], limited=[6, None])[0] == [6, 6]


@given(
    st.lists(st.tuples(*[st.integers(0, 20)] * 3), min_size=1, max_size=8),
    st.integers(0, 120),
)
@settings(max_examples=200, deadline=None)
def test_the_desired_plan_is_that_of_filling_one_by_one(clusters, total):
    least, room, estimated = ([cluster[at] for cluster in clusters] for at in range(3))
    least = [min(low, high) for low, high in zip(least, room, strict=True)]
    plan, overflow, left = [], [], total
    for low, capacity in zip(least, estimated, strict=True):
        asked = min(low, left)
        plan.append(min(asked, capacity))
        overflow.append(asked - plan[-1])
        left -= plan[-1]
    for at, (high, capacity) in enumerate(zip(room, estimated, strict=True)):
        asked = min(plan[at] + left, high)
        given_now = min(asked, capacity)
        overflow[at] = max(overflow[at], asked - given_now)
        left -= given_now - plan[at]
        plan[at] = given_now
    replicas, stuck = desired(demand(total, [0] * len(clusters), least=least, most=room, estimated=estimated))
    assert (replicas.tolist(), stuck.tolist()) == (plan, overflow)


def test_nothing_is_planned_while_pods_find_their_places():
    assert is_settled({}, {}, {"m1": 10})
    assert is_settled({"m1": 10}, {}, {"m1": 10})
    assert is_settled({"m1": 6}, {"m1": 6}, {"m1": 10})
    assert not is_settled({"m1": 7}, {}, {"m1": 10})
    assert not is_settled({"m1": 5}, {"m1": 6}, {"m1": 10})
    assert not is_settled({"m2": 1}, {}, {"m1": 10})


def test_surplus_beyond_the_total_is_not_taken_for_missing_replicas():
    replicas, overflow = bin_pack(demand(5, [10, 0], estimated=[6, None]), np.array([6, 0]))
    assert (replicas.tolist(), overflow.tolist()) == ([5, 0], [0, 0])
