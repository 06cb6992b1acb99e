"""The whole decision: who is chosen, who is refused and why, and that nothing is lost for want of a better idea."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api.policies import ClusterSelectorRequirement, ClusterSelectorTerm, Toleration
from argosy.api.types import SchedulingProfile
from argosy.fleet.snapshot import Fleet
from argosy.plan.plugins.replicas.cluster_capacity_weight import _with_the_homeless
from argosy.plan.replicas.weighted import plan_replicas
from argosy.plan.scheduling.framework import FrameworkError
from argosy.plan.scheduling.schedule import profile_of, schedule
from argosy.plan.scheduling.unit import Affinity, AutoMigrationInfo
from tests.unit.plan.any_worlds import worlds
from tests.unit.plan.demands import demands
from tests.unit.plan.scheduling import cluster, fleet, taint, unit


def test_duplicate_mode_places_the_object_in_every_feasible_cluster():
    decision = schedule(unit(), fleet("b", "a"))
    assert decision.placements == {"a": None, "b": None}
    assert not decision.unschedulable


def test_replicas_follow_what_clusters_have_free():
    decision = schedule(unit(10), fleet(cluster("a", cpu="200"), cluster("b", cpu="300"), cluster("c", cpu="500")))
    assert decision.placements == {"a": 2, "b": 3, "c": 5}


def test_each_cluster_is_refused_for_the_first_filter_it_fails():
    members = fleet(
        cluster("no-api", apis=[]),
        cluster("tainted", taints=[taint("gpu", value="only")], ready=False),
        cluster("unlisted"),
        cluster("unready", ready=False),
        cluster("leaving", terminating=True),
    )
    listed = frozenset({"no-api", "tainted", "unready", "leaving"})
    decision = schedule(unit(3, cluster_names=listed), members)
    assert decision.rejected == {
        "no-api": ("APIResources", "cluster(s) didn't support this APIVersion"),
        "tainted": ("TaintToleration", "cluster(s) had taint {gpu: only}, that the schedulingUnit didn't tolerate"),
        "unlisted": ("PlacementFilter", "cluster(s) were not in placement list"),
        "unready": ("ClusterReady", "cluster(s) were unready"),
        "leaving": ("ClusterTerminating", "cluster(s) were terminating"),
    }
    assert decision.unschedulable
    assert decision.placements == {}
    assert decision.message == (
        "0/5 clusters are available: "
        "1 cluster(s) didn't support this APIVersion, "
        "1 cluster(s) had taint {gpu: only}, that the schedulingUnit didn't tolerate, "
        "1 cluster(s) were not in placement list, "
        "1 cluster(s) were terminating, "
        "1 cluster(s) were unready"
    )


def test_clusters_that_have_not_joined_are_not_considered():
    decision = schedule(unit(4), fleet("a", cluster("b", joined=False)))
    assert decision.placements == {"a": 4}
    assert decision.rejected == {}


def test_where_nothing_fits_the_current_placement_stays():
    evicting = cluster("a", taints=[taint("down", "NoExecute")])
    decision = schedule(unit(5, current={"a": 5}), fleet(evicting))
    assert decision.placements == {"a": 5}
    assert decision.unschedulable
    assert "0/1 clusters are available" in decision.message


def test_a_held_placement_keeps_its_numbers_when_the_mode_changed():
    leaving = fleet(cluster("a", terminating=True), cluster("b", terminating=True))
    assert schedule(unit(current={"a": 3, "b": 2}), leaving).placements == {"a": 3, "b": 2}


def test_an_empty_fleet_takes_nothing_away():
    decision = schedule(unit(5, current={"a": 3, "b": 2}), fleet())
    assert decision.placements == {"a": 3, "b": 2}
    assert decision.unschedulable


def test_a_held_placement_still_follows_the_replica_count():
    evicting = [cluster(name, taints=[taint("down", "NoExecute")]) for name in "ab"]
    decision = schedule(unit(4, current={"a": 4, "b": 4}), fleet(*evicting))
    assert decision.placements == {"a": 2, "b": 2}


def test_weights_that_leave_every_cluster_empty_do_not_remove_the_object():
    decision = schedule(unit(5, current={"a": 5}, weights={"elsewhere": 1}), fleet("a", "b"))
    assert decision.placements == {"a": 5}
    assert decision.unschedulable
    assert decision.shortfall == 5


@pytest.mark.parametrize("estimate", [2, 4])
def test_nor_where_the_cluster_cannot_run_all_of_it(estimate):
    info = AutoMigrationInfo({"a": estimate})
    wanted = unit(5, current={"a": 5}, weights={"elsewhere": 1}, auto_migration=True, migration_info=info)
    decision = schedule(wanted, fleet("a", "b"))
    assert decision.placements == {"a": 5}
    assert decision.unschedulable


@pytest.mark.parametrize("avoid_disruption", [True, False])
@pytest.mark.parametrize("estimates", [{}, {"a": 6}, {"a": 0}])
def test_what_runs_in_a_full_cluster_stays_if_no_other_takes_it(avoid_disruption, estimates):
    """A full cluster weighs nothing, so nothing is offered to it."""
    members = fleet(cluster("a", cpu="10", free="0"), cluster("b", cpu="10", taints=[taint("x")]))
    wanted = unit(
        11,
        current={"a": 10, "b": 1},
        avoid_disruption=avoid_disruption,
        auto_migration=True,
        migration_info=AutoMigrationInfo(estimates),
    )
    assert schedule(wanted, members).placements == {"a": 10, "b": 1}


@given(demands())
@settings(max_examples=300, deadline=None)
def test_the_homeless_stay_and_nobody_is_added(asked):
    weights = np.zeros(len(asked.current), dtype=np.int64)
    weights[0] = 1
    planned = plan_replicas(asked, weights, np.arange(len(weights)))
    replicas, overflow = _with_the_homeless(asked, *planned)
    before, after = planned[0] + planned[1], replicas + overflow
    assert (after >= before).all()
    assert (after <= np.maximum(before, np.minimum(asked.current, asked.ceilings))).all()
    assert int(after.sum()) <= max(int(before.sum()), asked.total)


def test_scaled_to_zero_the_objects_stay_with_0_replicas():
    decision = schedule(unit(0, current={"a": 3, "b": 2}), fleet("a", "b", "c"))
    assert decision.placements == {"a": 0, "b": 0}
    assert not decision.unschedulable
    again = schedule(unit(4, current=decision.placements), fleet("a", "b", "c"))
    assert sum(again.placements.values()) == 4


def test_scaled_to_zero_while_its_clusters_are_no_longer_allowed_the_object_moves_on():
    decision = schedule(unit(0, current={"a": 3}, cluster_names=frozenset("bc")), fleet("a", "b", "c"))
    assert decision.placements == {"b": 0, "c": 0}


def test_a_new_object_with_0_replicas_is_placed_nowhere():
    decision = schedule(unit(0), fleet("a"))
    assert decision.placements == {}
    assert not decision.unschedulable


def test_sticky_keeps_the_clusters_and_scales_inside_them():
    members = fleet("a", "b", "c")
    held = unit(10, sticky=True, current={"a": 3, "b": 3})
    assert schedule(held, members).placements == {"a": 5, "b": 5}
    assert schedule(msgspec.structs.replace(held, desired_replicas=2), members).placements == {"a": 1, "b": 1}


def test_sticky_moves_nothing_even_where_the_policy_allows_disruption():
    held = unit(8, sticky=True, avoid_disruption=False, current={"a": 7, "b": 1})
    assert schedule(held, fleet("a", "b")).placements == {"a": 7, "b": 1}


def test_sticky_keeps_a_cluster_whose_last_replica_went():
    decision = schedule(unit(1, sticky=True, current={"a": 1, "b": 1}), fleet("a", "b", "c"))
    assert decision.clusters == ("a", "b")
    assert sum(decision.placements.values()) == 1


def test_sticky_does_not_move_replicas_of_a_cluster_it_cannot_see():
    decision = schedule(unit(6, sticky=True, current={"a": 3, "gone": 3}), fleet("a", "b"))
    assert decision.placements == {"a": 3, "gone": 3}


def test_sticky_ignores_weights_that_exclude_every_kept_cluster():
    decision = schedule(unit(6, sticky=True, current={"a": 2, "b": 2}, weights={"c": 1}), fleet("a", "b", "c"))
    assert decision.placements == {"a": 3, "b": 3}


def test_an_object_is_sticky_only_once_it_is_placed():
    assert schedule(unit(sticky=True), fleet("a", "b")).placements == {"a": None, "b": None}


def test_a_noschedule_taint_keeps_replicas_and_adds_none():
    members = fleet(cluster("a", taints=[taint("full")]), "b")
    decision = schedule(unit(8, current={"a": 2, "b": 2}), members)
    assert decision.placements == {"a": 2, "b": 6}
    tolerating = unit(8, current={"a": 2, "b": 2}, tolerations=(Toleration(operator="Exists"),))
    assert schedule(tolerating, members).placements == {"a": 4, "b": 4}


def test_an_unready_cluster_keeps_its_replicas():
    decision = schedule(unit(4, current={"a": 2, "b": 2}), fleet(cluster("a", ready=False), "b"))
    assert decision.placements == {"a": 2, "b": 2}


def test_an_object_whose_wishes_cannot_be_read_stays_and_is_scaled_where_it_is():
    members = fleet("a", "b", "c")
    stays = schedule(unit(6, current={"a": 2, "b": 2}, unreadable="annotation x cannot be read"), members)
    assert stays.placements == {"a": 3, "b": 3}
    assert (stays.unschedulable, stays.message) == (True, "annotation x cannot be read")
    assert not schedule(unit(6, unreadable="annotation x cannot be read"), members).unschedulable, "nothing to lose yet"


def test_nothing_is_stopped_for_the_sake_of_an_unready_cluster():
    members = fleet(cluster("a", ready=False), "b")
    shifted = unit(12, current={"a": 6, "b": 6}, weights={"a": 3, "b": 1}, avoid_disruption=False)
    assert schedule(shifted, members).placements == {"a": 6, "b": 6}
    by_capacity = unit(12, current={"a": 6, "b": 6}, avoid_disruption=False)
    assert schedule(by_capacity, members).placements == {"a": 6, "b": 6}
    growing = unit(12, current={"a": 4, "b": 4}, weights={"a": 1, "b": 1})
    assert schedule(growing, members).placements == {"a": 6, "b": 6}, "what is new is divided as ever"
    alone = unit(10, current={"a": 5, "b": 5}, cluster_names=frozenset({"a"}))
    assert schedule(alone, members).placements == {"a": 10}, "where there is no elsewhere nothing is lost"
    full = unit(
        20, current={"a": 10, "b": 10}, weights={"a": 1, "b": 1}, max_replicas={"b": 10}, avoid_disruption=False
    )
    assert schedule(full, members).placements == {"a": 10, "b": 10}


def test_max_clusters_takes_the_best():
    members = fleet(cluster("busy", cpu="10", free="1"), cluster("idle", cpu="10", free="10"))
    decision = schedule(unit(max_clusters=1), members)
    assert decision.placements == {"idle": None}
    assert decision.scores["idle"] > decision.scores["busy"]


def test_priorities_decide_before_scores():
    members = fleet(cluster("busy", cpu="10", free="1"), cluster("idle", cpu="10", free="10"))
    assert schedule(unit(max_clusters=1, priorities={"busy": 1}), members).placements == {"busy": None}


def test_max_clusters_0_places_nowhere_because_the_policy_says_so():
    decision = schedule(unit(max_clusters=0, current={"a": None}), fleet("a"))
    assert decision.placements == {}
    assert not decision.unschedulable


def test_a_negative_max_clusters_changes_nothing_and_says_why():
    decision = schedule(unit(3, max_clusters=-1, current={"a": 3}), fleet("a", "b"))
    assert decision.placements == {"a": 3}
    assert decision.unschedulable
    assert decision.message == "max cluster is less than 0"


def test_maximums_leave_a_shortfall():
    decision = schedule(unit(10, max_replicas={"a": 2, "b": 3}), fleet("a", "b"))
    assert decision.placements == {"a": 2, "b": 3}
    assert decision.shortfall == 5


def test_selectors_and_affinity_intersect():
    members = fleet(
        cluster("a", labels={"zone": "x", "tier": "1"}),
        cluster("b", labels={"zone": "x", "tier": "2"}),
        cluster("c", labels={"zone": "y", "tier": "2"}),
    )
    term = ClusterSelectorTerm(match_expressions=(ClusterSelectorRequirement("tier", "Gt", ("1",)),))
    decision = schedule(unit(cluster_selector={"zone": "x"}, affinity=Affinity(required=(term,))), members)
    assert decision.clusters == ("b",)


def test_a_policy_that_names_a_missing_cluster_places_in_the_others():
    assert schedule(unit(3, cluster_names=frozenset({"a", "missing"})), fleet("a", "b")).placements == {"a": 3}


def profile(**plugins):
    body = {"metadata": {"name": "p"}, "spec": {"plugins": plugins}}
    return msgspec.convert(body, SchedulingProfile)


def test_a_profile_drops_and_adds_plugins():
    without_taints = profile_of(profile(filter={"disabled": [{"name": "TaintToleration"}]}))
    members = fleet(cluster("a", taints=[taint("full")]))
    assert schedule(unit(), members, without_taints).placements == {"a": None}
    none = profile_of(profile(filter={"disabled": [{"name": "*"}], "enabled": [{"name": "ClusterReady"}]}))
    assert [plugin.name for plugin in none.filters] == ["ClusterReady"]


@pytest.mark.parametrize(("enabled", "complaint"), [("NoSuchPlugin", "no filter plugin"), ("ClusterReady", "twice")])
def test_a_profile_with_a_mistake_is_refused(enabled, complaint):
    with pytest.raises(FrameworkError, match=complaint):
        profile_of(profile(filter={"enabled": [{"name": enabled}]}))


@given(worlds(), st.randoms())
@settings(max_examples=80, deadline=None)
def test_a_placed_object_is_never_removed_everywhere(world, random):
    wanted, members = world
    decision = schedule(wanted, Fleet.of(members))
    if wanted.current:
        assert decision.placements
    shuffled = list(members)
    random.shuffle(shuffled)
    again = schedule(wanted, Fleet.of(shuffled))
    for told in ("placements", "message", "rejected", "scores", "selected", "overflow", "shortfall"):
        assert getattr(again, told) == getattr(decision, told)
