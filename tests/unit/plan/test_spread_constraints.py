"""Spread constraints as a policy states them, through whole decisions."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api.policies import PropagationPolicySpec
from argosy.plan.plugins.replicas import cluster_capacity_weight
from argosy.plan.plugins.rules import (
    spread_constraints,
)
from argosy.plan.scheduling.rules import rules_of
from argosy.plan.scheduling.schedule import schedule
from tests.unit.plan.scheduling import cluster, fleet, unit

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"


def constraint(key=REGION, **bounds):
    return {"topologyKey": key, **bounds}


def spread_unit(*constraints, replicas=None, **fields):
    spec = msgspec.convert({"topologySpreadConstraints": constraints}, PropagationPolicySpec)
    return unit(replicas, rules=rules_of(spec), **fields)


def members(**regions):
    """Clusters by region; a value may be a number of clusters or their cores."""
    return fleet(
        *(
            cluster(f"{region}-{number}", labels={REGION: region, ZONE: f"{region}-{number % 2}"}, cpu=str(cores))
            for region, sizes in regions.items()
            for number, cores in enumerate(sizes)
        )
    )


def by_region(decision, label=REGION):
    counts = Counter()
    for name, number in decision.placements.items():
        counts[decision.fleet.member(name).labels[label]] += 1 if number is None else number
    return dict(counts)


def test_a_policy_without_constraints_pays_nothing():
    some = members(eu=[10, 10], us=[10])
    plain = unit()
    assert spread_constraints.feasible(plain, some) is some.everyone


def test_a_duplicated_object_goes_to_as_many_domains_as_asked():
    some = members(eu=[10, 9, 8], us=[7], asia=[6])
    decision = schedule(spread_unit(constraint(minDomains=2), max_clusters=2), some)
    assert len(by_region(decision)) == 2
    assert set(by_region(schedule(spread_unit(constraint(maxDomains=1)), some)).values()) <= {1, 3}


def test_a_duplicated_object_is_in_about_as_many_clusters_of_each_domain():
    decision = schedule(spread_unit(constraint(maxSkew=1)), members(eu=[10] * 5, us=[10] * 2))
    assert by_region(decision) == {"eu": 3, "us": 2}


def test_too_few_domains_leave_the_object_where_it_is():
    some = members(eu=[10, 10])
    decision = schedule(spread_unit(constraint(minDomains=2), current={"eu-1": None}), some)
    assert decision.unschedulable
    assert decision.placements == {"eu-1": None}
    assert "2 values of topology.kubernetes.io/region are needed" in decision.message
    anyway = constraint(minDomains=2, whenUnsatisfiable="ScheduleAnyway")
    assert by_region(schedule(spread_unit(anyway), some)) == {"eu": 2}


def zoned(*places):
    """Clusters by region and zone, the largest first."""
    return fleet(
        *(
            cluster(f"c{number:03}", labels={REGION: region, ZONE: zone}, cpu=str(1000 - number))
            for number, (region, zone) in enumerate(places)
        )
    )


def test_constraints_are_satisfied_together_although_the_best_cluster_is_in_none_of_the_choices():
    asked = spread_unit(constraint(maxDomains=1), constraint(ZONE, minDomains=2), replicas=6)
    decision = schedule(asked, zoned(("eu", "eu-1"), ("us", "us-1"), ("us", "us-2")))
    assert by_region(decision) == {"us": 6}
    alone = schedule(asked, zoned(("eu", "eu-1"), ("us", "us-1")))
    assert alone.message == (
        "topologySpreadConstraints: 2 values of topology.kubernetes.io/zone are needed, "
        "and clusters of 1 can be chosen so that all constraints are satisfied"
    )


def test_that_not_every_choice_was_tried_is_told():
    """Eight regions share seven zones, so fifteen clusters cannot use fifteen of both; the search ends before it knows."""
    edges = [(f"r{one}", f"z{other}") for one in range(15) for other in range(7 if one < 8 else 15)]
    asked = spread_unit(constraint(minDomains=15), constraint(ZONE, minDomains=15), max_clusters=15)
    decision = schedule(asked, zoned(*edges))
    assert decision.unschedulable
    assert "161 groups of clusters are too many to try them all" in decision.message


def test_clusters_without_the_label_are_refused_unless_the_constraint_is_soft():
    some = fleet(cluster("a", labels={REGION: "eu"}), "b")
    decision = schedule(spread_unit(constraint(maxSkew=1)), some)
    assert decision.clusters == ("a",)
    assert decision.rejected["b"][1] == f"cluster(s) had no label {REGION}, which a spread constraint needs"
    soft = spread_unit(constraint(maxSkew=1, whenUnsatisfiable="ScheduleAnyway"))
    assert schedule(soft, some).clusters == ("a", "b")


def test_replicas_of_domains_differ_by_the_skew_at_most():
    decision = schedule(spread_unit(constraint(maxSkew=2), replicas=20), members(eu=[100, 100], us=[10]))
    assert by_region(decision) == {"eu": 11, "us": 9}
    assert decision.shortfall == 0
    assert any("spread over" in step for step in decision.division.steps)


def test_enough_domains_get_a_replica_whatever_the_weights():
    some = members(eu=[1000], us=[1], asia=[1])
    assert by_region(schedule(spread_unit(replicas=10), some)) == {"eu": 10}
    assert len(by_region(schedule(spread_unit(constraint(minDomains=3), replicas=10), some))) == 3


def test_a_full_domain_holds_the_others_back_or_not_as_the_policy_says():
    some = members(eu=[10], us=[10])
    few = {"max_replicas": {"us-0": 2}, "weights": {"eu-0": 1, "us-0": 1}}
    held = schedule(spread_unit(constraint(maxSkew=1), replicas=10, **few), some)
    assert by_region(held) == {"eu": 3, "us": 2}
    assert held.shortfall == 5
    anyway = constraint(maxSkew=1, whenUnsatisfiable="ScheduleAnyway")
    assert by_region(schedule(spread_unit(anyway, replicas=10, **few), some)) == {"eu": 8, "us": 2}


def test_a_domain_that_can_take_nothing_does_not_count():
    some = members(eu=[10], us=[10])
    decision = schedule(spread_unit(constraint(maxSkew=1), replicas=10, weights={"eu-0": 1}), some)
    assert by_region(decision) == {"eu": 10}


def test_a_later_constraint_holds_inside_the_domains_of_an_earlier_one():
    some = members(eu=[100, 1, 1], us=[50, 1])
    decision = schedule(spread_unit(constraint(maxSkew=1), constraint(ZONE, maxSkew=1), replicas=20), some)
    zones = by_region(decision, ZONE)
    assert by_region(decision) == {"eu": 10, "us": 10}
    assert zones == {"eu-0": 5, "eu-1": 5, "us-0": 5, "us-1": 5}


def test_scaling_moves_nothing_that_the_constraint_allows():
    some = members(eu=[10, 10], us=[10, 10])
    placed = {"eu-0": 6, "us-0": 5}
    up = schedule(spread_unit(constraint(maxSkew=2), replicas=14, current=placed), some).placements
    assert all(up[name] >= number for name, number in placed.items())
    down = schedule(spread_unit(constraint(maxSkew=2), replicas=7, current=placed), some).placements
    assert all(placed[name] >= number for name, number in down.items())


@st.composite
def worlds(draw):
    sizes = draw(st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=3), min_size=1, max_size=4))
    some = members(**{f"r{number}": cores for number, cores in enumerate(sizes)})
    most = draw(st.dictionaries(st.sampled_from(some.names), st.integers(0, 6)))
    current = draw(st.dictionaries(st.sampled_from(some.names), st.integers(0, 6)))
    # Without disruption nothing is stopped for a maximum that came later.
    current = {name: min(number, most.get(name, number)) for name, number in current.items()}
    strategy = draw(st.sampled_from(["Spread", "Binpack", "Aggregated", "Webster"]))
    return some, {"max_replicas": most, "current": current, "replicas_strategy": strategy}


@given(worlds(), st.integers(1, 30), st.integers(1, 4), st.booleans())
@settings(max_examples=150, deadline=None)
def test_replicas_hold_the_skew_whatever_planner_divides_them(world, replicas, skew, stable):
    some, fields = world
    asked = spread_unit(constraint(maxSkew=skew), replicas=replicas, **{**fields, "avoid_disruption": stable})
    decision = schedule(asked, some)
    if decision.unschedulable:
        return
    able = {some.member(name).labels[REGION]: 0 for name in some.names if fields["max_replicas"].get(name, 1) > 0}
    counts = {**able, **by_region(decision)}
    assert max(counts.values()) - min(counts.values()) <= skew
    assert sum(counts.values()) + decision.shortfall == replicas
    for name, number in decision.placements.items():
        assert number <= fields["max_replicas"].get(name, number)
    again = schedule(msgspec.structs.replace(asked, current=decision.placements), some)
    if stable:
        assert by_region(again) == by_region(decision)


@given(worlds(), st.integers(1, 30), st.integers(1, 4), st.randoms())
@settings(max_examples=100, deadline=None)
def test_the_division_does_not_depend_on_the_order_of_clusters(world, replicas, skew, random):
    some, fields = world
    asked = spread_unit(constraint(maxSkew=skew), replicas=replicas, **{**fields, "replicas_strategy": "Spread"})
    rows = np.arange(len(some), dtype=np.intp)
    order = list(range(len(some)))
    random.shuffle(order)
    divide = cluster_capacity_weight.REPLICAS.divide
    plain = spread_constraints.within_bounds(divide, asked, some, rows)
    shuffled = spread_constraints.within_bounds(divide, asked, some, rows[order])
    assert plain.replicas[order].tolist() == shuffled.replicas.tolist()


@pytest.mark.parametrize(("clusters", "chosen"), [(None, 500), (25, 25)])
def test_many_clusters_are_chosen_from_evenly(clusters, chosen):
    some = members(**{f"r{number}": [10] * 50 for number in range(10)})
    decision = schedule(spread_unit(constraint(maxSkew=1, minDomains=3), max_clusters=clusters), some)
    counts = by_region(decision).values()
    assert sum(counts) == chosen
    assert max(counts) - min(counts) <= 1
