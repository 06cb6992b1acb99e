"""Webster's method, checked against giving out replicas one at a time with exact fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas.webster import apportioned
from tests.unit.plan.demands import column

UNBOUNDED = 2**62


def apportion(total, weights, floors=None, ceilings=None, ties=None):
    size = len(weights)
    result = apportioned(
        total,
        column(floors or [0] * size),
        column(ceilings or [UNBOUNDED] * size),
        column(weights),
        column(range(size) if ties is None else ties),
    )
    return result.tolist()


def one_by_one(total, weights, floors, ceilings, ties):
    seats, left = [0] * len(weights), total
    for at in sorted(range(len(weights)), key=lambda at: (-weights[at], ties[at])):
        seats[at] = min(floors[at], left)
        left -= seats[at]
    while left:
        open_to = [at for at in range(len(weights)) if seats[at] < ceilings[at]]
        if not open_to:
            break
        weighed = [at for at in open_to if weights[at]]
        chosen = min(
            weighed or open_to, key=lambda at: (-Fraction(weights[at] if weighed else 1, 2 * seats[at] + 1), ties[at])
        )
        seats[chosen] += 1
        left -= 1
    return seats


def test_the_textbook_example():
    assert apportion(7, [53, 24, 23]) == [3, 2, 2]
    assert apportion(10, [6, 3, 1]) == [6, 3, 1]


def test_shares_are_rounded_to_the_nearest():
    assert apportion(10, [3, 2, 1]) == [5, 3, 2]


def test_a_minimum_is_part_of_the_share_and_not_added_to_it():
    assert apportion(12, [1, 1, 1], floors=[0, 0, 4]) == [4, 4, 4]
    assert apportion(12, [1, 1, 1], floors=[0, 0, 6]) == [3, 3, 6]


def test_what_a_full_cluster_cannot_take_is_shared_by_the_others():
    assert apportion(12, [4, 1, 1], ceilings=[4, UNBOUNDED, UNBOUNDED]) == [4, 4, 4]


def test_clusters_without_weight_take_only_what_nobody_else_may():
    assert apportion(9, [1, 0, 0]) == [9, 0, 0]
    assert apportion(9, [1, 0, 0], ceilings=[3, 5, 5]) == [3, 3, 3]


def test_equal_claims_of_different_weights_go_by_ties():
    assert apportion(2, [3, 1], ties=[0, 1]) == [2, 0]
    assert apportion(2, [3, 1], ties=[1, 0]) == [1, 1]


sizes = st.integers(1, 9)
weights = st.one_of(st.just(0), st.integers(0, 4), st.integers(0, 10_000), st.integers(0, 2**62))


@st.composite
def problems(draw):
    size = draw(sizes)

    def some(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    floors = some(st.one_of(st.just(0), st.integers(0, 8)))
    extra = some(st.one_of(st.just(UNBOUNDED - 8), st.integers(0, 12)))
    ceilings = [low + more for low, more in zip(floors, extra, strict=True)]
    return draw(st.integers(0, 60)), some(weights), floors, ceilings, draw(st.permutations(range(size)))


@given(problems())
@settings(max_examples=400, deadline=None)
def test_agrees_with_giving_out_one_by_one(problem):
    assert apportion(*problem) == one_by_one(*problem)


@given(problems(), st.randoms())
@settings(max_examples=150, deadline=None)
def test_the_order_of_clusters_is_irrelevant(problem, random):
    total, *columns = problem
    order = list(range(len(columns[0])))
    random.shuffle(order)
    shuffled = apportion(total, *([each[at] for at in order] for each in columns))
    assert shuffled == [apportion(*problem)[at] for at in order]


@given(problems())
@settings(max_examples=150, deadline=None)
def test_one_replica_more_takes_none_away(problem):
    total, *columns = problem
    after = apportion(total + 1, *columns)
    assert all(more >= less for more, less in zip(after, apportion(total, *columns), strict=True))


@given(st.lists(st.integers(1, 2**40), min_size=2, max_size=400), st.integers(0, 2**40))
@settings(max_examples=100, deadline=None)
def test_nobody_has_a_better_claim_than_who_has_the_replica(weights, total):
    seats = apportion(total, weights)
    assert sum(seats) == total
    best_claim = max(Fraction(weight, 2 * seat + 1) for weight, seat in zip(weights, seats, strict=True))
    least_held = min((Fraction(w, 2 * seat - 1) for w, seat in zip(weights, seats, strict=True) if seat), default=None)
    assert least_held is None or best_claim <= least_held


def test_many_clusters_of_one_weight_are_served_in_the_order_of_ties():
    ties = np.random.default_rng(5).permutation(500)
    seats = np.array(apportion(750, [7] * 500, ties=ties))
    assert (seats[ties < 250] == 2).all()
    assert (seats[ties >= 250] == 1).all()
