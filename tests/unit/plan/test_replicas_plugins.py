"""The replicas plugins: what of policy, annotations and fleet reaches the planners, by name."""

import time

import numpy as np
import pytest

from argosy.fleet.snapshot import Fleet
from argosy.plan.plugins import DEFAULT_PROFILE
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import AppliedMigration, AutoMigrationInfo, ResourceRequest
from tests.unit.plan.scheduling import cluster, fleet, taint, unit

STRATEGIES = ("Spread", "Binpack", "Aggregated", "Webster")
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
M123 = ("m1", "m2", "m3")


def placements(replicas, members=M123, *, strategy, **fields):
    found = schedule(
        unit(replicas, replicas_strategy=strategy, **fields), members if isinstance(members, Fleet) else fleet(*members)
    )
    return found.placements


def seen(estimated=None, scheduled=None):
    return {"auto_migration": True, "migration_info": AutoMigrationInfo(estimated or {}, scheduled or {})}


# All of them alike.


@every_strategy
def test_the_total_is_placed_within_minimums_and_maximums(strategy):
    bounds = {"min_replicas": {"m2": 3}, "max_replicas": {"m1": 4, "m2": 5}, "weights": {"m1": 5, "m2": 1, "m3": 1}}
    found = placements(12, strategy=strategy, **bounds)
    assert sum(found.values()) == 12
    assert found["m2"] >= 3
    assert found.get("m1", 0) <= 4
    assert found["m2"] <= 5


@every_strategy
def test_a_migration_limit_is_hard(strategy):
    applied = AppliedMigration(limited_capacity={"m1": 1})
    found = placements(9, strategy=strategy, current={"m1": 3, "m2": 3, "m3": 3}, applied_migration=applied)
    assert found["m1"] == 1
    assert sum(found.values()) == 9


@every_strategy
def test_what_a_cluster_cannot_run_is_started_elsewhere(strategy):
    found = placements(6, strategy=strategy, current={"m1": 6}, **seen({"m1": 2}, {"m1": 2}))
    assert sum(number for name, number in found.items() if name != "m1") >= 4
    kept = placements(6, strategy=strategy, current={"m1": 6}, keep_unschedulable=True, **seen({"m1": 2}, {"m1": 2}))
    assert kept["m1"] >= found["m1"] >= 2


@every_strategy
def test_estimates_count_only_where_auto_migration_is_on(strategy):
    info = {**seen({"m1": 0, "m2": 0, "m3": 0}), "auto_migration": False}
    assert sum(placements(6, strategy=strategy, **info).values()) == 6


@every_strategy
def test_a_cluster_that_repels_new_replicas_keeps_those_it_has(strategy):
    members = fleet(cluster("m1", taints=[taint("maintenance")]), "m2")
    found = placements(9, members, strategy=strategy, current={"m1": 3}, weights={"m1": 9, "m2": 1})
    assert found == {"m1": 3, "m2": 6}


@every_strategy
@pytest.mark.parametrize("avoid_disruption", [True, False])
def test_a_minimum_starts_nothing_in_a_cluster_that_repels_new_replicas(strategy, avoid_disruption):
    members = fleet(cluster("m1", taints=[taint("maintenance")]), "m2")
    asked = {"min_replicas": {"m1": 4}, "weights": {"m2": 1}, "avoid_disruption": avoid_disruption}
    assert placements(10, members, strategy=strategy, current={"m1": 1, "m2": 9}, **asked) == {"m1": 1, "m2": 9}


@every_strategy
@pytest.mark.parametrize("avoid_disruption", [True, False])
def test_a_minimum_above_the_maximum_gives_way(strategy, avoid_disruption):
    bounds = {"min_replicas": {"m1": 4}, "max_replicas": {"m1": 2}, "weights": {"m2": 1}}
    found = placements(10, ("m1", "m2"), strategy=strategy, avoid_disruption=avoid_disruption, **bounds)
    assert found == {"m1": 2, "m2": 8}


@every_strategy
def test_a_cluster_that_was_duplicated_counts_with_the_whole_number(strategy):
    found = placements(6, strategy=strategy, current={"m1": None, "m2": None})
    assert sum(found.values()) == 6
    assert "m3" not in found


@every_strategy
def test_nothing_moves_while_the_number_stays(strategy):
    current = {"m1": 1, "m2": 7, "m3": 2}
    assert placements(10, strategy=strategy, current=current) == current


@every_strategy
def test_sticky_workloads_scale_in_the_clusters_they_have(strategy):
    found = placements(8, strategy=strategy, current={"m1": 2, "m3": 2}, sticky=True)
    assert set(found) == {"m1", "m3"}
    assert sum(found.values()) == 8


@every_strategy
def test_the_planner_says_what_it_did(strategy):
    decision = schedule(unit(8, replicas_strategy=strategy, current={"m1": 2}), fleet(*M123))
    assert any("6 start" in step for step in decision.division.steps)


@every_strategy
def test_numbers_nobody_can_count_are_refused_and_what_runs_stays(strategy):
    decision = schedule(unit(2**60, replicas_strategy=strategy, current={"m1": 2}), fleet(*M123))
    assert decision.unschedulable
    assert decision.placements == {"m1": 2}


# One by one.


def test_bin_pack_fills_by_priority():
    found = placements(10, strategy="Binpack", priorities={"m3": 9, "m2": 5}, max_replicas={"m3": 4})
    assert found == {"m2": 6, "m3": 4}


def test_bin_pack_fills_by_priority_in_the_clusters_a_sticky_workload_has():
    found = placements(10, strategy="Binpack", sticky=True, priorities={"m3": 9}, current={"m1": 1, "m3": 1})
    assert found == {"m1": 1, "m3": 9}


def test_bin_pack_waits_until_pods_found_their_places():
    assert placements(12, strategy="Binpack", current={"m1": 10}, **seen({}, {"m1": 7})) == {"m1": 10}
    assert placements(12, strategy="Binpack", current={"m1": 10}, **seen({}, {"m1": 10})) == {"m1": 12}


def test_bin_pack_does_not_wait_for_a_cluster_that_left():
    found = placements(10, ("m1", "m2"), strategy="Binpack", current={"m1": 4, "m9": 6}, **seen({}, {"m1": 2}))
    assert found == {"m1": 10}


def test_aggregated_takes_one_cluster_that_has_the_resources():
    members = fleet(cluster("m1", free="3"), cluster("m2", free="9"), cluster("m3", free="4"))
    small = ResourceRequest(milli_cpu=1000)
    assert placements(8, members, strategy="Aggregated", pod_request=small) == {"m2": 8}
    assert placements(12, members, strategy="Aggregated", pod_request=small) == {"m2": 9, "m3": 3}


def test_aggregated_prefers_where_it_runs():
    assert placements(8, strategy="Aggregated", current={"m3": 2}) == {"m3": 8}
    moved = placements(8, strategy="Aggregated", current={"m1": 2, "m3": 6}, avoid_disruption=False)
    assert moved == {"m3": 8}


def test_aggregated_leaves_the_smallest_when_it_shrinks():
    assert placements(6, strategy="Aggregated", current={"m1": 2, "m2": 3, "m3": 5}) == {"m2": 1, "m3": 5}


def test_webster_gives_every_cluster_its_nearest_share():
    assert placements(10, strategy="Webster", weights={"m1": 3, "m2": 2, "m3": 1}) == {"m1": 5, "m2": 3, "m3": 2}


def test_webster_follows_capacity_where_the_policy_has_no_weights():
    members = fleet(cluster("m1", cpu="60"), cluster("m2", cpu="30"), cluster("m3", cpu="10"))
    assert placements(20, members, strategy="Webster") == {"m1": 12, "m2": 6, "m3": 2}


def test_webster_keeps_a_cluster_without_weight_at_its_minimum():
    found = placements(10, strategy="Webster", weights={"m1": 1, "m2": 0}, min_replicas={"m2": 2})
    assert found == {"m1": 8, "m2": 2}


def test_remainders_of_different_workloads_fall_on_different_clusters():
    alike = dict.fromkeys(M123, 1)
    found = [placements(4, strategy="Webster", namespace=f"team-{number}", weights=alike) for number in range(40)]
    favoured = {max(each, key=each.get) for each in found}
    assert favoured == set(M123)


@pytest.mark.parametrize("strategy", ["Spread", "Webster"])
def test_the_order_of_selection_does_not_matter(strategy):
    weights = {"m1": 5, "m2": 3, "m3": 3}
    forwards = placements(20, strategy=strategy, weights=weights, priorities={"m1": 3, "m2": 2, "m3": 1})
    backwards = placements(20, strategy=strategy, weights=weights, priorities={"m1": 1, "m2": 2, "m3": 3})
    assert forwards == backwards


@every_strategy
def test_ten_times_the_clusters_cost_far_less_than_ten_times_as_much(strategy):
    def cost(size):
        members = fleet(*(cluster(f"c{number:03}", cpu=str(50 + number % 97)) for number in range(size)))
        running = {f"c{number:03}": 1 + number % 20 for number in range(0, size, 10)}
        wanted, rows = unit(3000, replicas_strategy=strategy, current=running), np.arange(size)
        divide = DEFAULT_PROFILE.replicas[strategy].divide
        divide(wanted, members, rows)
        spent = []
        for _ in range(40):
            begun = time.thread_time()
            divide(wanted, members, rows)
            spent.append(time.thread_time() - begun)
        return min(spent)

    assert cost(500) < 5 * cost(50)
