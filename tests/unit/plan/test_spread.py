"""Spread constraints: they hold whenever they can be held, over choices of clusters and over divided replicas."""

from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.scheduling.spread import Limit, choose, domain_targets
from argosy.plan.scheduling.spread_search import TooManyGroups


def domains_of(limit, chosen):
    return Counter(limit.domains[position] for position in chosen)


def holds(limit, chosen):
    counts = domains_of(limit, chosen)
    if -1 in counts:
        return False
    return (
        len(counts) >= limit.least
        and (limit.most is None or len(counts) <= limit.most)
        and (limit.skew is None or not counts or max(counts.values()) - min(counts.values()) <= limit.skew)
    )


@st.composite
def choices(draw):
    domains = draw(st.lists(st.integers(-1, 3), min_size=1, max_size=7))
    least = draw(st.integers(0, 4))
    most = draw(st.none() | st.integers(max(least, 1), 5))
    skew = draw(st.none() | st.integers(1, 3))
    clusters = draw(st.none() | st.integers(1, 8))
    settled = draw(st.sets(st.integers(0, len(domains) - 1)))
    return Limit(domains, least, most, skew), clusters, settled


@given(choices())
@settings(max_examples=300)
def test_a_constraint_holds_whenever_some_choice_holds_it(case):
    limit, clusters, settled = case
    count = len(limit.domains)
    chosen = choose([limit], count, clusters, settled)
    assert chosen == sorted(set(chosen))
    assert clusters is None or len(chosen) <= clusters
    possible = [
        some
        for size in range(1, min(count, clusters or count) + 1)
        for some in combinations(range(count), size)
        if holds(limit, some)
    ]
    if possible:
        assert chosen
        assert holds(limit, chosen)
    elif limit.least:
        assert len(domains_of(limit, chosen)) < limit.least


@given(choices())
def test_nobody_could_be_added_without_breaking_the_constraint(case):
    limit, clusters, settled = case
    chosen = choose([limit], len(limit.domains), clusters, settled)
    if not holds(limit, chosen) or len(chosen) == clusters:
        return
    for another in set(range(len(limit.domains))) - set(chosen):
        assert not holds(limit, [*chosen, another])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=10), st.data())
def test_several_constraints_never_use_too_many_domains_or_differ_too_much(cells, data):
    limits = [
        Limit([cell[number] for cell in cells], 0, data.draw(st.none() | st.integers(1, 3)), skew)
        for number, skew in enumerate((data.draw(st.none() | st.integers(1, 2)), None))
    ]
    chosen = choose(limits, len(cells))
    assert chosen
    assert all(holds(limit, chosen) for limit in limits)


@st.composite
def several_limits(draw):
    """Two or three constraints over few clusters; the first ones are hard."""
    count = draw(st.integers(2, 3))
    cells = draw(st.lists(st.tuples(*[st.integers(0, 3)] * count), min_size=1, max_size=8))
    limits = []
    for number in range(count):
        least = draw(st.integers(0, 4))
        most = draw(st.none() | st.integers(max(least, 1), 4))
        skew = draw(st.none() | st.integers(1, 2))
        soft = draw(st.booleans()) if number else False
        limits.append(Limit([cell[number] for cell in cells], least, most, skew, soft))
    settled = draw(st.sets(st.integers(0, len(cells) - 1)))
    return draw(st.permutations(limits)), draw(st.none() | st.integers(1, 8)), settled


@given(several_limits())
@settings(max_examples=500, deadline=None)
def test_several_constraints_hold_whenever_some_choice_holds_them_all(case):
    limits, clusters, settled = case
    count, hard = len(limits[0].domains), [limit for limit in limits if not limit.soft]
    chosen = choose(limits, count, clusters, settled)
    assert chosen == choose(limits, count, clusters, settled)
    assert clusters is None or len(chosen) <= clusters
    possible = any(
        all(holds(limit, some) for limit in hard)
        for size in range(1, min(count, clusters or count) + 1)
        for some in combinations(range(count), size)
    )
    assert all(holds(limit, chosen) for limit in hard) == possible


def test_a_domain_with_the_best_cluster_is_left_out_if_no_choice_with_it_holds():
    """The best cluster's region has one zone only, and two are needed in one region."""
    regions, zones = Limit([0, 1, 1], most=1), Limit([0, 1, 2], least=2)
    assert choose([regions, zones], 3) == [1, 2]
    assert choose([zones, regions], 3, settled=[0]) == [1, 2]


def test_a_soft_constraint_leaves_room_for_a_hard_one():
    zones, regions = Limit([0, 1, 2], least=2, soft=True), Limit([0, 0, 1], least=2)
    assert choose([zones, regions], 3, 2) == [0, 2]


def test_what_is_settled_is_kept_if_some_choice_with_it_holds():
    regions, zones = Limit([0, 1, 1, 2, 2], most=1), Limit([0, 1, 2, 3, 4], least=2)
    assert choose([regions, zones], 5) == [1, 2]
    assert choose([regions, zones], 5, settled=[3]) == [3, 4]


def pairs(first, second):
    """Each of 15 values must be used in both constraints, by 15 clusters; `first` of them share `second` values."""
    edges = [(one, other) for one in range(first) for other in range(second)]
    edges += [(one, other) for one in range(first, 15) for other in range(15)]
    return [Limit(list(side), least=15) for side in zip(*edges, strict=True)]


def test_too_many_groups_to_try_them_all_are_told():
    unsatisfiable, satisfiable = pairs(8, 7), pairs(8, 8)
    with pytest.raises(TooManyGroups):
        choose(unsatisfiable, len(unsatisfiable[0].domains), 15)
    chosen = choose(satisfiable, len(satisfiable[0].domains), 15)
    assert all(holds(limit, chosen) for limit in satisfiable)


def test_the_best_are_taken_from_enough_domains():
    limit = Limit([0, 0, 0, 1, 2], least=2)
    assert choose([limit], 5, 2) == [0, 3]
    assert choose([limit], 5, 3) == [0, 1, 3]


def test_domains_in_use_are_kept_although_others_score_better():
    limit = Limit([0, 1, 2, 2], most=1)
    assert choose([limit], 4) == [0]
    assert choose([limit], 4, settled=[3]) == [2, 3]


def test_clusters_differ_by_the_skew_at_most():
    limit = Limit([0, 0, 0, 0, 1, 1, 2], skew=1)
    assert choose([limit], 7) == [0, 1, 4, 5, 6]


def test_a_soft_constraint_prefers_and_then_gives_way():
    soft = Limit([0, 0, 0, 1], least=2, skew=1, soft=True)
    assert choose([soft], 4, 2) == [0, 3]
    assert choose([soft], 4, 3) == [0, 1, 3]
    assert choose([soft], 4) == [0, 1, 2, 3]


# Replicas.


@st.composite
def divisions(draw):
    count = draw(st.integers(1, 4))
    room = draw(st.lists(st.integers(1, 12), min_size=count, max_size=count))
    total = draw(st.integers(0, 20))
    weights = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    wanted = [min(total * weight // max(sum(weights), 1), most) for weight, most in zip(weights, room, strict=True)]
    return wanted, total, room, draw(st.none() | st.integers(1, 5)), draw(st.integers(0, 5))


@given(divisions(), st.booleans())
@settings(max_examples=300)
def test_targets_hold_all_bounds_and_place_as_many_as_they_can(case, soft):
    wanted, total, room, skew, least = case
    targets = domain_targets(wanted, total, room, skew=skew, least=least, soft=soft)
    assert all(0 <= target <= most for target, most in zip(targets, room, strict=True))
    if skew is not None and not soft:
        assert max(targets) - min(targets) <= skew
    lowest = min(room)
    possible = sum(room) if soft or skew is None else sum(min(most, lowest + skew) for most in room)
    assert sum(targets) == min(total, possible)
    assert sum(target > 0 for target in targets) >= min(least, total, len(room))


@given(divisions())
@settings(max_examples=150, deadline=None)
def test_targets_move_as_little_as_any_that_hold(case):
    wanted, total, room, skew, least = case
    targets = domain_targets(wanted, total, room, skew=skew, least=least)

    def moves(some):
        return sum(abs(after - before) for after, before in zip(some, wanted, strict=True))

    best = min(
        moves(some)
        for some in product(*(range(most + 1) for most in room))
        if sum(some) == sum(targets)
        and (skew is None or max(some) - min(some) <= skew)
        and sum(number > 0 for number in some) >= min(least, total, len(room))
    )
    assert moves(targets) == best


@given(divisions(), st.randoms())
def test_targets_do_not_depend_on_the_order_of_domains(case, random):
    wanted, total, room, skew, least = case
    order = list(range(len(room)))
    random.shuffle(order)
    plain = domain_targets(wanted, total, room, skew=skew, least=least)
    shuffled = domain_targets([wanted[at] for at in order], total, [room[at] for at in order], skew=skew, least=least)
    key = list(zip(wanted, room, strict=True))
    # Domains that are alike may change places.
    assert sorted(zip(key, plain, strict=True)) == sorted(
        (key[at], target) for at, target in zip(order, shuffled, strict=True)
    )


@pytest.mark.parametrize(
    ("wanted", "total", "skew", "targets"),
    [
        ([9, 3, 0], 12, 1, [4, 4, 4]),
        ([9, 3, 0], 12, 6, [7, 3, 2]),
        ([5, 4, 3], 12, 2, [5, 4, 3]),
        ([10**9, 0], 10**9, 2, [5 * 10**8 + 1, 5 * 10**8 - 1]),
    ],
)
def test_targets_go_from_what_is_wanted_as_far_as_needed(wanted, total, skew, targets):
    assert domain_targets(wanted, total, [total] * len(wanted), skew=skew) == targets
