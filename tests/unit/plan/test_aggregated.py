"""Aggregated: the fewest clusters that hold the total, checked against trying all sets."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas.aggregated import aggregated, fewest
from tests.unit.plan.demands import column

ENDLESS = 2**61


def chosen(total, room, preference=None):
    order = range(len(room)) if preference is None else preference
    return np.flatnonzero(fewest(total, column(room), np.array(list(order), dtype=np.intp))).tolist()


def plan(total, ceilings, *, floors=None, fits=None, preference=None):
    size = len(ceilings)
    return aggregated(
        total,
        column(floors or [0] * size),
        column(ceilings),
        column(fits or [ENDLESS] * size),
        np.array(list(range(size) if preference is None else preference), dtype=np.intp),
    ).tolist()


def test_one_cluster_where_one_is_enough():
    assert plan(10, [9, 10, 11]) == [0, 10, 0]


def test_the_preferred_one_of_those_that_are_enough():
    assert plan(10, [10, 12, 11], preference=[2, 1, 0]) == [0, 0, 10]


def test_two_where_one_is_not_enough_and_the_largest_is_filled_first():
    assert plan(10, [3, 9, 4]) == [1, 9, 0]


def test_a_cluster_that_is_used_for_its_minimum_is_filled_before_another_is_opened():
    assert plan(10, [20, 8, 20], floors=[0, 2, 0]) == [2, 8, 0]
    assert plan(8, [20, 8, 20], floors=[0, 2, 0]) == [0, 8, 0]


def test_clusters_with_resources_come_first_and_what_fits_nowhere_goes_all_the_same():
    assert plan(10, [ENDLESS] * 3, fits=[4, 10, 4]) == [0, 10, 0]
    assert sum(plan(30, [ENDLESS] * 3, fits=[4, 10, 4])) == 30
    assert plan(30, [12, 12, 12], fits=[4, 10, 4]) == [12, 10, 8]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 40), st.randoms())
@settings(max_examples=400, deadline=None)
def test_no_smaller_set_would_do_and_none_of_that_size_is_preferred(room, total, random):
    order = list(range(len(room)))
    random.shuffle(order)
    expected = [at for at in range(len(room)) if room[at]]
    if sum(room) >= total:
        every = (each for size in range(1, len(room) + 1) for each in combinations(order, size))
        expected = sorted(next(each for each in every if sum(room[at] for at in each) >= total))
    assert chosen(total, room, order) == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=8), st.integers(0, 120))
@settings(max_examples=200, deadline=None)
def test_all_that_fits_is_placed_within_the_ceilings(clusters, total):
    floors = [min(low, high) for low, high in clusters]
    ceilings = [high for _, high in clusters]
    replicas = plan(total, ceilings, floors=floors)
    assert sum(replicas) == min(total, sum(ceilings))
    assert all(number <= high for number, high in zip(replicas, ceilings, strict=True))
    if sum(floors) <= total:
        assert all(number >= low for number, low in zip(replicas, floors, strict=True))
