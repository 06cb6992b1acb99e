"""The weighted planner: worked examples, the slow reference, and what must hold for any input."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas import weighted as planner
from argosy.plan.replicas.weighted import stays
from tests.unit.plan.demands import demand, demands
from tests.unit.plan.planning import ReplicaPlan, plan_replicas
from tests.unit.plan.reference_planner import reference_plan

KEY = "default/web"
EQUAL = {"*": (0, None, 1)}
M123 = ("m1", "m2", "m3")


def plan(
    total,
    preferences=EQUAL,
    clusters=M123,
    *,
    key=KEY,
    current=None,
    estimated=None,
    limited=None,
    avoid_disruption=True,
    keep=False,
):
    return plan_replicas(
        preferences,
        total,
        clusters,
        key=key,
        current=current or {},
        estimated_capacity=estimated or {},
        limited_capacity=limited or {},
        avoid_disruption=avoid_disruption,
        keep_unschedulable=keep,
    )


def weighted(**weights):
    return {name: (0, None, weight) for name, weight in weights.items()}


EXAMPLES = [
    ("remainders by hash", {"total": 10}, (4, 4, 2), {}),
    ("by weight", {"total": 10, "preferences": weighted(m1=3, m2=2, m3=1)}, (5, 4, 1), {}),
    (
        "minimum and maximum",
        {"total": 12, "preferences": {**EQUAL, "m1": (0, 2, 1), "m3": (5, None, 1)}},
        (2, 3, 7),
        {},
    ),
    ("nothing moves on scale out", {"total": 12, "current": {"m1": 6}}, (6, 3, 3), {}),
    ("only the surplus stops", {"total": 4, "current": {"m1": 6, "m2": 2}}, (2, 2, 0), {}),
    (
        "stuck replicas move",
        {"total": 6, "current": {"m1": 2, "m2": 2, "m3": 2}, "estimated": {"m1": 0}},
        (0, 3, 3),
        {},
    ),
    (
        "stuck replicas are kept beside their replacements",
        {"total": 6, "current": {"m1": 2, "m2": 2, "m3": 2}, "estimated": {"m1": 0}, "keep": True},
        (0, 3, 3),
        {"m1": 2},
    ),
    (
        "rebalanced where disruption is allowed",
        {"total": 12, "current": {"m1": 6}, "avoid_disruption": False},
        (4, 4, 4),
        {},
    ),
    (
        "nobody has room: all stay",
        {"total": 6, "current": {"m1": 2, "m2": 2, "m3": 2}, "estimated": {"m1": 0, "m2": 0, "m3": 0}},
        (0, 0, 0),
        {"m1": 2, "m2": 2, "m3": 2},
    ),
    ("a hard limit holds", {"total": 9, "current": {"m1": 3, "m2": 3, "m3": 3}, "limited": {"m1": 1}}, (1, 4, 4), {}),
]


@pytest.mark.parametrize(("arguments", "expected", "overflow"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES])
def test_worked_examples(arguments, expected, overflow):
    assert plan(**arguments) == ReplicaPlan(dict(zip(M123, expected, strict=True)), overflow)


def test_a_cluster_that_left_gives_its_replicas_to_the_others():
    result = plan(9, clusters=("m1", "m2"), current={"m1": 3, "m2": 3, "m3": 3})
    assert result.replicas == {"m1": 4, "m2": 5}


def test_scale_in_from_30_to_15_stops_15_and_starts_none():
    result = plan(15, current={"m1": 15, "m2": 15, "m3": 0}).replicas
    assert sorted(result.values()) == [0, 7, 8]
    assert result["m3"] == 0


def test_scale_in_stops_only_the_surplus_where_the_others_have_no_room():
    """m1 takes no more than it runs, and m2 and m3 have no weight, as full clusters do."""
    preferences = {"m1": (0, 4, 1000), "m2": (0, None, 0), "m3": (0, None, 0)}
    result = plan(6, preferences, current={"m1": 4, "m2": 4, "m3": 3}).replicas
    assert sum(result.values()) == 6
    assert result["m1"] == 4


def test_what_found_no_other_cluster_runs_on_when_nothing_is_to_stop():
    preferences = {"m1": (0, 3, 1), "m2": (0, None, 0)}
    assert plan(8, preferences, ("m1", "m2"), current={"m1": 3, "m2": 5}).replicas == {"m1": 3, "m2": 5}


def test_a_maximum_stops_what_is_above_it_also_where_nobody_takes_it():
    preferences = {"m1": (0, 3, 1), "m2": (0, 2, 0)}
    assert plan(8, preferences, ("m1", "m2"), current={"m1": 3, "m2": 5}).replicas == {"m1": 3, "m2": 2}


def test_scale_out_from_30_to_36_starts_6_and_stops_none():
    assert plan(36, current={"m1": 15, "m2": 15, "m3": 0}).replicas == {"m1": 15, "m2": 15, "m3": 6}


def test_a_cluster_without_any_preference_does_not_appear():
    assert plan(4, preferences=weighted(m1=1)).replicas == {"m1": 4}


def test_products_beyond_64_bits_divide_exactly():
    big = 2**45
    assert plan(3 * big, preferences=weighted(m1=2 * big, m2=big, m3=0)).replicas == {"m1": 2 * big, "m2": big, "m3": 0}


def test_remainders_of_different_workloads_fall_on_different_clusters():
    favoured = {max((r := plan(1, key=f"team-{n}/web").replicas), key=r.__getitem__) for n in range(40)}
    assert favoured == set(M123)


def test_no_clusters_and_no_replicas_are_plans_too():
    assert plan(5, clusters=()) == ReplicaPlan({}, {})
    assert plan(0).replicas == dict.fromkeys(M123, 0)
    assert plan(-3).replicas == dict.fromkeys(M123, 0)


# Any input.

NAMES = [f"c{number:02}" for number in range(50)]
numbers = st.one_of(st.integers(0, 60), st.integers(0, 2**40))
weights = st.one_of(st.just(0), st.integers(0, 10), st.integers(0, 2**33), st.integers(2**31, 2**62))
positive_weights = st.one_of(st.integers(1, 10), st.integers(1, 2**33), st.integers(2**31, 2**62))


several = st.lists(st.sampled_from(NAMES), unique=True, max_size=50)
keys = st.sampled_from(["", "default/web", "kube/ñ"])


@cache
def by_position(size, values):
    """Made once: making strategies takes longer than drawing from them."""
    return st.dictionaries(st.integers(0, size - 1), values, max_size=size)


@st.composite
def problems(draw, weights=weights, ordered_bounds=False, capacities=True):
    clusters = draw(several)

    def some(values):
        drawn = draw(by_position(len(clusters), values)) if clusters else {}
        return {clusters[position]: value for position, value in drawn.items()}

    minimum, maximum = some(numbers), some(numbers)
    weight = {name: draw(weights) for name in clusters}
    preferences = {}
    for name in clusters:
        least, most = minimum.get(name, 0), maximum.get(name)
        if ordered_bounds and most is not None:
            least, most = min(least, most), max(least, most)
        preferences[name] = (least, most, weight[name])
    return {
        "preferences": preferences,
        "total": draw(numbers),
        "clusters": clusters,
        "key": draw(keys),
        "current": some(numbers),
        "estimated_capacity": some(numbers) if capacities else {},
        "limited_capacity": some(numbers) if capacities else {},
        "avoid_disruption": draw(st.booleans()),
        "keep_unschedulable": draw(st.booleans()),
    }


def solve(problem, **changes):
    arguments = {**problem, **changes}
    return plan_replicas(arguments.pop("preferences"), arguments.pop("total"), arguments.pop("clusters"), **arguments)


@given(problems())
@settings(max_examples=200, deadline=None)
def test_agrees_with_the_slow_and_obvious_planner(problem):
    arguments = dict(problem)
    expected = reference_plan(
        arguments.pop("preferences"), arguments.pop("total"), arguments.pop("clusters"), **arguments
    )
    result = solve(problem)
    assert (result.replicas, result.overflow) == expected


@given(problems(ordered_bounds=True))
@settings(max_examples=70, deadline=None)
def test_a_fresh_plan_keeps_sum_minimums_maximums_and_capacities(problem):
    result = solve(problem, avoid_disruption=False)
    assert sum(result.replicas.values()) <= problem["total"]
    for name, given_replicas in result.replicas.items():
        _, most, _ = problem["preferences"][name]
        caps = [most, problem["limited_capacity"].get(name), problem["estimated_capacity"].get(name)]
        assert 0 <= given_replicas <= min([cap for cap in caps if cap is not None], default=problem["total"])
    minimums = sum(stated[0] for stated in problem["preferences"].values())
    if minimums <= problem["total"]:
        for name, given_replicas in result.replicas.items():
            capacity = [problem[kind].get(name) for kind in ("limited_capacity", "estimated_capacity")]
            reachable = min([cap for cap in capacity if cap is not None], default=2**99)
            assert given_replicas >= min(problem["preferences"][name][0], reachable)


@given(problems(weights=positive_weights, ordered_bounds=True))
@settings(max_examples=70, deadline=None)
def test_replicas_are_missing_only_where_every_cluster_is_full(problem):
    result = solve(problem, avoid_disruption=False)
    missing = problem["total"] - sum(result.replicas.values())
    if missing:
        for name, given_replicas in result.replicas.items():
            caps = [problem["preferences"][name][1]]
            caps += [problem[kind].get(name) for kind in ("limited_capacity", "estimated_capacity")]
            assert given_replicas == min(cap for cap in caps if cap is not None)


@given(problems(), st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_order_of_clusters_and_preferences_is_irrelevant(problem, random):
    shuffled = list(problem["clusters"])
    random.shuffle(shuffled)
    preferences = {name: problem["preferences"][name] for name in shuffled}
    assert solve(problem, clusters=shuffled, preferences=preferences) == solve(problem)


@given(problems(capacities=False))
@settings(max_examples=70, deadline=None)
def test_planning_again_from_its_own_result_changes_nothing(problem):
    first = solve(problem)
    assert solve(problem, current=first.replicas) == first


@given(problems(weights=positive_weights, ordered_bounds=True, capacities=False), numbers)
@settings(max_examples=100, deadline=None)
def test_scaling_only_stops_or_only_starts(problem, total):
    before = solve(problem, avoid_disruption=True).replicas
    after = solve(problem, avoid_disruption=True, total=total, current=before).replicas
    if total <= problem["total"]:
        assert all(after[name] <= before[name] for name in before)
    if total >= problem["total"]:
        assert all(after[name] >= before[name] for name in before)


@given(problems(weights=positive_weights), numbers)
@settings(max_examples=70, deadline=None)
def test_from_any_distribution_scaling_moves_nothing(problem, total):
    """No bounds, no capacities: only the difference stops or starts, and the sum is the total."""
    free = {name: (0, None, stated[2]) for name, stated in problem["preferences"].items()}
    before = {name: problem["current"].get(name, 0) for name in problem["clusters"]}
    result = solve(
        problem,
        preferences=free,
        total=total,
        estimated_capacity={},
        limited_capacity={},
        avoid_disruption=True,
    ).replicas
    if problem["clusters"]:
        assert sum(result.values()) == total
    growing = total >= sum(before.values())
    assert all(result[name] >= before[name] if growing else result[name] <= before[name] for name in result)


@given(demands(), st.booleans(), st.lists(st.integers(0, 5), min_size=8, max_size=8))
@settings(max_examples=200, deadline=None)
def test_what_is_told_without_planning_is_the_plan(wanted, settled, drawn):
    if settled:
        wanted = wanted._replace(total=int(wanted.current.sum()), avoid_disruption=True)
    weights = np.array(drawn[: len(wanted.current)], dtype=np.int64)
    if stays(wanted, weights):
        replicas, overflow = planner.plan_replicas(wanted, weights, np.arange(len(weights)))
        assert replicas.tolist() == wanted.current.tolist()
        assert not overflow.any()


def test_what_runs_as_wanted_stays_unless_something_bounds_it():
    weights = np.array([1, 3])
    assert stays(demand(5, [4, 1]), weights)
    assert not stays(demand(6, [4, 1]), weights)
    assert not stays(demand(5, [4, 1], avoid_disruption=False), weights)
    assert not stays(demand(5, [4, 1], most=[3, None]), weights)
    assert not stays(demand(5, [4, 1], estimated=[4, 4]), weights)
    assert not stays(demand(5, [4, 1], least=[0, 2]), weights)
    assert not stays(demand(5, [4, 1]), np.array([0, 0]))
