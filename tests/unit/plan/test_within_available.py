"""limitReplicasToAvailable: no cluster is given more replicas than it has room for; the rest waits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.explain.record import account_of, record_of
from argosy.plan.explain.summary import lines
from argosy.plan.replicas.weights import level_weights
from argosy.plan.scheduling.rules import Rules, rules_of
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import ResourceRequest
from tests.unit.plan.scheduling import cluster, fleet, policy, taint, unit

WITHIN = Rules(within_available=True)
ONE_CORE = ResourceRequest(milli_cpu=1000)


def test_the_field_is_off_unless_stated():
    assert not rules_of(policy().spec).within_available
    assert rules_of(policy(limitReplicasToAvailable=True).spec).within_available


def test_small_shares_do_not_go_to_the_largest_cluster_when_it_is_full():
    members = fleet(cluster("a", cpu="1000", free="1500m"), cluster("b", cpu="10", free="1"), cluster("c", free="900m"))
    placed = schedule(unit(2, pod_request=ONE_CORE, rules=WITHIN), members).placements
    assert placed == {"a": 1, "b": 1}
    assert schedule(unit(2, pod_request=ONE_CORE), members).placements != placed


def test_where_there_is_not_enough_room_the_rest_waits():
    members = fleet(cluster("a", cpu="90", free="3"), cluster("b", cpu="10", free="1"))
    bounded = schedule(unit(10, pod_request=ONE_CORE, rules=WITHIN), members)
    assert bounded.placements == {"a": 3, "b": 1}
    assert (bounded.shortfall, bounded.waiting) == (6, 6)
    assert "6 of 10 replicas wait for room" in bounded.message


def test_what_maximums_forbid_does_not_wait_for_room():
    bounded = schedule(unit(10, pod_request=ONE_CORE, rules=WITHIN, max_replicas={"a": 2}), fleet("a"))
    assert (bounded.placements, bounded.shortfall, bounded.waiting) == ({"a": 2}, 8, 0)


def test_what_maximums_forbid_and_what_waits_are_told_apart():
    bounded = schedule(
        unit(10, pod_request=ONE_CORE, rules=WITHIN, max_replicas={"a": 5}), fleet(cluster("a", free="3"))
    )
    assert (bounded.placements, bounded.shortfall, bounded.waiting) == ({"a": 3}, 7, 2)
    told = lines(account_of(record_of(bounded), bounded.fleet.names))
    assert "2 of 10 replicas wait for room: no cluster that may take them has it available" in told
    assert "5 replicas found no cluster: maximums or capacities are reached" in told


def test_only_what_could_be_started_waits_where_nothing_fits():
    members = fleet(cluster("a", free="900m"))
    bounded = schedule(unit(7, pod_request=ONE_CORE, rules=WITHIN, max_replicas={"a": 2}), members)
    assert (bounded.unschedulable, bounded.waiting) == (True, 2)
    assert "2 of 7 replicas wait for room" in bounded.message


@pytest.mark.parametrize("sticky", [False, True])
def test_what_stays_where_it_is_says_how_many_replicas_found_no_room_there(sticky):
    evicting = fleet(cluster("a", free="1", taints=[taint("down", "NoExecute")]))
    asked = {"current": {"a": 2}, "pod_request": ONE_CORE, "rules": WITHIN, "sticky": sticky}
    kept = schedule(unit(10, **asked), evicting)
    assert (kept.placements, kept.shortfall, kept.waiting) == ({"a": 3}, 7, 7)
    assert "7 of 10 replicas wait for room" in kept.message
    assert ("0/1 clusters are available" in kept.message) == (not sticky)
    bounded = schedule(unit(10, max_replicas={"a": 5}, **asked), evicting)
    assert (bounded.placements, bounded.shortfall, bounded.waiting) == ({"a": 3}, 7, 2)
    assert not schedule(unit(3, **asked), evicting).waiting


def test_where_nothing_fits_at_all_it_waits_as_a_whole():
    bounded = schedule(unit(2, pod_request=ONE_CORE, rules=WITHIN), fleet(cluster("a", free="900m")))
    assert bounded.unschedulable
    assert "2 of 2 replicas wait for room" in bounded.message


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=6),
    st.integers(1, 60),
    st.integers(1, 3),
)
def test_no_cluster_gets_more_than_fits_and_all_that_fits_is_started(clusters, replicas, cores):
    names = [f"c{number}" for number in range(len(clusters))]
    running = {name: today for name, (_, today) in zip(names, clusters, strict=True) if today}
    room = {name: free // cores for name, (free, _) in zip(names, clusters, strict=True)}
    members = fleet(*(cluster(name, cpu="40", free=str(free)) for name, (free, _) in zip(names, clusters, strict=True)))
    asked = unit(replicas, current=running, pod_request=ResourceRequest(milli_cpu=1000 * cores), rules=WITHIN)
    placed = schedule(asked, members).placements
    assert sum(placed.values()) == min(replicas, sum(running.values()) + sum(room.values()))
    started = {name: number - running.get(name, 0) for name, number in placed.items()}
    assert all(number <= room[name] for name, number in started.items())


STRATEGIES = ("Spread", "Webster", "Binpack", "Aggregated")


@st.composite
def nearly_full(draw):
    """Clusters as (free cores, running replicas), and a workload of one core a replica that most of the time just fits."""
    clusters = draw(st.lists(st.tuples(st.integers(-3, 12), st.integers(0, 6)), min_size=1, max_size=5))
    names = [f"c{number}" for number in range(len(clusters))]
    running = {name: today for name, (_, today) in zip(names, clusters, strict=True) if today}
    room = {name: max(free, 0) for name, (free, _) in zip(names, clusters, strict=True)}
    fitting = sum(room.values()) + sum(running.values())
    return (
        fleet(*(cluster(name, cpu="40", free=str(free)) for name, (free, _) in zip(names, clusters, strict=True))),
        room,
        unit(
            draw(st.integers(1, 1 + fitting + 5)),
            current=running,
            pod_request=ONE_CORE,
            rules=WITHIN,
            replicas_strategy=draw(st.sampled_from(STRATEGIES)),
            avoid_disruption=draw(st.booleans()),
            min_replicas=draw(st.dictionaries(st.sampled_from(names), st.integers(1, 15), max_size=2)),
            max_replicas=draw(st.dictionaries(st.sampled_from(names), st.integers(0, 15), max_size=1)),
        ),
    )


@settings(max_examples=300, deadline=None)
@given(nearly_full())
def test_nothing_is_started_beyond_the_room_whatever_else_the_policy_says(world):
    members, room, asked = world
    decision = schedule(asked, members)
    for name, number in decision.placements.items():
        assert number <= asked.current.get(name, 0) + room[name], decision.placements
    most = {name: min(asked.current.get(name, 0) + room[name], asked.max_replicas.get(name, 10**6)) for name in room}
    if decision.waiting:
        assert sum(decision.placements.values()) >= sum(most.values()), "nobody waits while there is room"


def test_a_minimum_is_not_started_where_it_does_not_fit_while_others_have_room():
    members = fleet(cluster("a", free="2"), cluster("b", free="8"))
    asked = unit(6, pod_request=ONE_CORE, rules=WITHIN, min_replicas={"a": 5}, weights={"a": 1, "b": 1})
    assert schedule(asked, members).placements == {"a": 2, "b": 4}


def test_one_replica_that_fits_nowhere_does_not_take_the_others_along():
    """The weights of the policy alone would give 8 of them to the full cluster."""
    members = fleet(cluster("a", free="1"), cluster("b", free="10"))
    asked = unit(12, pod_request=ONE_CORE, rules=WITHIN, weights={"a": 2, "b": 1})
    assert schedule(asked, members).placements == {"a": 1, "b": 10}


def test_what_keeps_its_clusters_waits_for_room_there():
    members = fleet(cluster("a", free="1"), cluster("b", free="10"))
    kept = schedule(unit(6, current={"a": 2}, pod_request=ONE_CORE, rules=WITHIN, sticky=True), members)
    assert (kept.placements, kept.waiting) == ({"a": 3}, 3)


def test_every_request_counts_also_that_of_scratch_space():
    storage = {"cpu": "10", "memory": "64Gi", "ephemeral-storage": "10Gi"}
    free = {**storage, "ephemeral-storage": "2Gi"}
    members = fleet(
        cluster("a", resources={"allocatable": storage, "available": free}),
        cluster("b", resources={"allocatable": storage, "available": storage}),
    )
    asked = unit(8, pod_request=ResourceRequest(ephemeral_storage=2**30), rules=WITHIN)
    assert schedule(asked, members).placements == {"a": 2, "b": 6}


def test_old_figures_are_no_promise_of_room():
    members = fleet(cluster("a", cpu="40"), cluster("b", cpu="40", free="8")).with_stale("a", True)
    asked = unit(6, current={"a": 2}, pod_request=ONE_CORE, rules=WITHIN)
    assert schedule(asked, members).placements == {"a": 2, "b": 4}


@given(st.lists(st.tuples(st.integers(1, 2000), st.floats(0, 1)), min_size=1, max_size=8), st.integers(1, 3000))
def test_what_clusters_lack_leads_them_to_one_level(clusters, added):
    held = np.array([cores * 1000 for cores, _ in clusters])
    free = np.array([int(cores * 1000 * share) for cores, share in clusters])
    lacking = level_weights(held, free, added) - 1
    levels = (held - free + lacking) / held
    raised = lacking > 1
    assert abs(int(lacking.sum()) - added) <= len(clusters)
    if raised.any():
        level = levels[raised].max()
        assert (levels >= level - 2 / held).all(), "nobody is left below"
        assert (levels[raised] <= level + 2 / held[raised]).all()
