"""limitReplicasToAvailable: no cluster is given more replicas than it has room for, while others have some."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from argosy.plan.replicas.weights import level_weights
from argosy.plan.scheduling.rules import Rules, rules_of
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import ResourceRequest
from tests.unit.plan.scheduling import cluster, fleet, policy, unit

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


def test_where_there_is_not_enough_room_it_bounds_nobody():
    members = fleet(cluster("a", cpu="90", free="3"), cluster("b", cpu="10", free="1"))
    bounded = schedule(unit(10, pod_request=ONE_CORE, rules=WITHIN), members)
    assert bounded.placements == schedule(unit(10, pod_request=ONE_CORE), members).placements
    assert bounded.shortfall == 0


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=6),
    st.integers(1, 60),
    st.integers(1, 3),
)
def test_no_cluster_gets_more_than_fits_while_there_is_room(clusters, replicas, cores):
    names = [f"c{number}" for number in range(len(clusters))]
    running = {name: today for name, (_, today) in zip(names, clusters, strict=True) if today}
    room = {name: free // cores for name, (free, _) in zip(names, clusters, strict=True)}
    members = fleet(*(cluster(name, cpu="40", free=str(free)) for name, (free, _) in zip(names, clusters, strict=True)))
    asked = unit(replicas, current=running, pod_request=ResourceRequest(milli_cpu=1000 * cores), rules=WITHIN)
    placed = schedule(asked, members).placements
    assert sum(placed.values()) == replicas
    started = {name: number - running.get(name, 0) for name, number in placed.items()}
    if replicas - sum(running.values()) <= sum(room.values()):
        assert all(number <= room[name] for name, number in started.items())


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
