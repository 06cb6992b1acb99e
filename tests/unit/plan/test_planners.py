"""What holds for every planner that fills clusters, whatever the workload: sums, bounds, and that nothing moves without need."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas.aggregated import aggregated
from argosy.plan.replicas.binpack import bin_pack, filled
from argosy.plan.replicas.demand import planned
from argosy.plan.replicas.webster import apportioned
from tests.unit.plan.demands import demand, demands, numbers


def by_bin_pack(wanted):
    return bin_pack(wanted, np.zeros_like(wanted.current))


def by_aggregation(wanted):
    fits = np.full_like(wanted.current, 2**40)
    return planned(wanted, partial(aggregated, fits=fits, preference=np.argsort(-wanted.current, kind="stable")))


def by_webster(wanted):
    size = len(wanted.current)
    weights = np.arange(size, dtype=np.int64) % 5 + 1
    return planned(wanted, partial(apportioned, weights=weights, ties=np.arange(size, dtype=np.int64)))


def by_webster_evenly(wanted):
    even = np.ones_like(wanted.current)
    return planned(wanted, partial(apportioned, weights=even, ties=np.arange(len(even), dtype=np.int64)))


PLANNERS = [by_bin_pack, by_aggregation, by_webster]
every_planner = pytest.mark.parametrize("planner", PLANNERS)
quick = settings(max_examples=50, deadline=None)


@every_planner
@given(demands(avoid_disruption=False))
@quick
def test_a_fresh_plan_places_all_that_fits(planner, wanted):
    replicas, _ = planner(wanted)
    assert replicas.sum() == min(wanted.total, sum(wanted.room.tolist()))


@every_planner
@given(demands(avoid_disruption=False))
@quick
def test_a_fresh_plan_keeps_minimums_maximums_and_capacities(planner, wanted):
    replicas, _ = planner(wanted)
    assert (replicas >= 0).all()
    assert (replicas <= wanted.room).all()
    floors = np.minimum(wanted.least, wanted.room)
    if sum(floors.tolist()) <= wanted.total:
        assert (replicas >= floors).all()


@every_planner
@given(demands(avoid_disruption=True))
@quick
def test_without_disruption_the_total_is_reached_as_far_as_it_can_be_without_moving_any(planner, wanted):
    replicas, _ = planner(wanted)
    reachable = sum(np.maximum(wanted.present, wanted.room).tolist())
    assert replicas.sum() == min(wanted.total, reachable)


@every_planner
@given(demands(avoid_disruption=True))
@quick
def test_scaling_only_stops_or_only_starts(planner, wanted):
    replicas, _ = planner(wanted)
    if sum(wanted.present.tolist()) >= wanted.total:
        assert (replicas <= wanted.present).all()
    else:
        assert (replicas >= wanted.present).all()


@every_planner
@given(demands())
@quick
def test_hard_limits_hold_whatever_runs(planner, wanted):
    replicas, overflow = planner(wanted)
    assert (replicas + overflow <= np.maximum(wanted.limited, 0)).all()


@every_planner
@given(demands(avoid_disruption=True))
@quick
def test_scaling_in_takes_what_is_over_its_bounds_first(planner, wanted):
    replicas, _ = planner(wanted)
    if sum(wanted.present.tolist()) <= wanted.total:
        return
    within_bounds = np.minimum(wanted.present, wanted.room)
    if (replicas < within_bounds).any():
        assert (replicas <= wanted.room).all()


@every_planner
@given(demands(avoid_disruption=True))
@quick
def test_scaling_out_serves_minimums_first(planner, wanted):
    replicas, _ = planner(wanted)
    if sum(wanted.present.tolist()) >= wanted.total:
        return
    served = np.maximum(wanted.present, np.minimum(wanted.least, wanted.room))
    assert (replicas >= served).all() or (replicas <= served).all()


@every_planner
@given(demands(capacities=False))
@quick
def test_planning_again_from_its_own_result_changes_nothing(planner, wanted):
    replicas, _ = planner(wanted)
    again, _ = planner(wanted._replace(current=replicas))
    assert again.tolist() == replicas.tolist()


@every_planner
@given(demands(avoid_disruption=True, keep_unschedulable=False))
@quick
def test_stuck_replicas_stay_only_as_far_as_others_found_no_home(planner, wanted):
    replicas, overflow = planner(wanted)
    fresh, _ = planner(wanted._replace(avoid_disruption=False))
    assert (overflow >= 0).all()
    assert planner is by_bin_pack or (overflow <= wanted.total - fresh.sum()).all()
    assert (replicas[overflow > 0] <= wanted.estimated[overflow > 0]).all()


@pytest.mark.parametrize("planner", [by_aggregation, by_webster])
@given(demands(avoid_disruption=True, keep_unschedulable=True), st.integers(0, 7))
@quick
def test_a_cluster_that_runs_none_of_its_share_keeps_it_beside_its_replacements(planner, wanted, cluster):
    cluster %= len(wanted.current)
    free = wanted._replace(estimated=np.full_like(wanted.estimated, 2**62), avoid_disruption=False)
    share, _ = planner(free)
    estimated = free.estimated.copy()
    estimated[cluster] = 0
    replicas, overflow = planner(wanted._replace(estimated=estimated))
    assert replicas[cluster] == 0
    assert overflow[cluster] == share[cluster]


@every_planner
@given(demands(capacities=False, avoid_disruption=True), numbers)
@quick
def test_scaling_what_it_planned_itself_moves_nothing(planner, wanted, total):
    today, _ = planner(wanted._replace(avoid_disruption=False))
    changed, _ = planner(wanted._replace(current=today, total=total))
    assert (changed >= today).all() if total >= wanted.total else (changed <= today).all()


# The examples this is about.


@pytest.mark.parametrize(
    ("planner", "expected"), [(by_bin_pack, [15, 0, 0]), (by_aggregation, [15, 0, 0]), (by_webster_evenly, [8, 7, 0])]
)
def test_scale_in_from_30_to_15_stops_15_and_starts_none(planner, expected):
    assert planner(demand(15, [15, 15, 0]))[0].tolist() == expected


@pytest.mark.parametrize(
    ("planner", "expected"),
    [(by_bin_pack, [21, 15, 0]), (by_aggregation, [21, 15, 0]), (by_webster_evenly, [15, 15, 6])],
)
def test_scale_out_from_30_to_36_starts_6_and_stops_none(planner, expected):
    assert planner(demand(36, [15, 15, 0]))[0].tolist() == expected


@every_planner
def test_a_workload_beyond_any_count_of_kubernetes_still_adds_up(planner):
    huge = 2**46
    replicas, _ = planner(demand(huge, [0] * 12, most=[None, *[5] * 11]))
    assert replicas.sum() == huge


def test_filling_serves_floors_before_anybody_gets_more():
    assert filled(10, np.array([0, 4, 3]), np.array([20, 20, 20])).tolist() == [3, 4, 3]
    assert filled(5, np.array([0, 4, 3]), np.array([20, 20, 20])).tolist() == [0, 4, 1]
