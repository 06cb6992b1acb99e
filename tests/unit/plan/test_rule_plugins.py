"""Plugins that look at a policy's further rules: each does nothing without its rule, and what it says with it."""

import datetime

import msgspec
import pytest

from argosy.api import keys
from argosy.api.rules import ComputePower, FailureDomain, Locality, LocalityTerm, TopologySpreadConstraint
from argosy.fleet.workloads import WorkloadKey
from argosy.kube.selectors import from_map
from argosy.plan.explain.record import account_of, record_of
from argosy.plan.plugins import (
    cluster_evicted,
    cluster_resources_fit,
    cluster_resources_most_allocated,
    katalyst_resources_exist,
)
from argosy.plan.plugins.rules import (
    compute_power,
    cost,
    failure_domain,
    locality,
    spread_constraints,
    workload_affinity,
)
from argosy.plan.scheduling.framework import FrameworkError
from argosy.plan.scheduling.rules import CostRule, PreferredWorkloads, Rules, WorkloadRule
from argosy.plan.scheduling.schedule import DEFAULT, schedule
from argosy.plan.scheduling.unit import AppliedMigration, ResourceRequest, UnavailableCluster
from tests.unit.plan.scheduling import cluster, fleet, unit

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
RECLAIMED = "resource.katalyst.kubewharf.io/reclaimed_millicpu"


def in_region(name, region, **facts):
    return cluster(name, labels={REGION: region} if region else {}, **facts)


def ruled(replicas=None, current=None, **rules):
    return unit(replicas, current=current or {}, rules=Rules(**rules))


@pytest.mark.parametrize("plugin", [cluster_evicted, cluster_resources_fit, katalyst_resources_exist])
def test_a_filter_that_is_not_asked_refuses_nobody_at_no_cost(plugin):
    members = fleet("a", "b")
    assert plugin.FILTER.feasible(unit(), members) is members.everyone


@pytest.mark.parametrize("plugin", [workload_affinity, cost, failure_domain])
def test_a_rule_that_is_absent_filters_and_scores_nothing(plugin):
    members = fleet("a", "b")
    assert plugin.FILTER.feasible(unit(), members) is members.everyone
    assert plugin.SCORE.score(unit(), members) is members.zeros


@pytest.mark.parametrize("plugin", [compute_power, locality])
def test_a_preference_that_is_absent_scores_nothing(plugin):
    members = fleet("a", "b")
    assert plugin.SCORE.score(unit(), members) is members.zeros


# Evicted clusters.


@pytest.mark.parametrize(
    ("now", "allowed"), [("2026-05-01T00:00:00+00:00", False), ("2026-07-01T00:00:00+00:00", True), (None, False)]
)
def test_a_cluster_is_left_until_the_time_given(now, allowed):
    wish = AppliedMigration(unavailable_clusters=(UnavailableCluster("a", "2026-06-01T00:00:00Z"),))
    placed = unit(
        current={"a": None}, applied_migration=wish, now=datetime.datetime.fromisoformat(now) if now else None
    )
    assert cluster_evicted.feasible(placed, fleet("a", "b")).tolist() == [allowed, True]


def test_a_time_that_cannot_be_read_is_told():
    wish = AppliedMigration(unavailable_clusters=(UnavailableCluster("a", "soon"),))
    with pytest.raises(FrameworkError, match="soon"):
        cluster_evicted.feasible(unit(applied_migration=wish, now=datetime.datetime.now(datetime.UTC)), fleet("a"))


# Resources.


def test_room_is_asked_for_where_the_unit_does_not_run_yet():
    members = fleet(cluster("a", cpu="10", free="1"), cluster("b", cpu="10", free="9"), cluster("c", free="1"))
    wants = unit(request=ResourceRequest(milli_cpu=2000, memory=2**40), current={"c": None})
    assert cluster_resources_fit.feasible(wants, members).tolist() == [False, False, True]
    assert cluster_resources_fit.FILTER.reason(wants, members, 0) == "Insufficient cpu, Insufficient memory"
    assert cluster_resources_fit.FILTER.reason(wants, members, 1) == "Insufficient memory"


def test_a_cluster_counts_for_each_of_its_reasons():
    """As in kube-scheduler: for all reasons of the first filter that it fails."""
    profile = msgspec.structs.replace(DEFAULT, filters=(cluster_resources_fit.FILTER, spread_constraints.FILTER))
    members = fleet(cluster("a", free="1"), cluster("b", free="9"), cluster("c", free="9"))
    wants = unit(request=ResourceRequest(milli_cpu=2000, memory=2**40))
    short = "0/3 clusters are available: 1 Insufficient cpu, 3 Insufficient memory"
    assert schedule(wants, members, profile).message == short
    keys_needed = tuple(TopologySpreadConstraint(topology_key=key, min_domains=1) for key in (REGION, ZONE))
    told = schedule(ruled(spread=keys_needed), fleet(in_region("a", "eu"), "b"), profile).message
    lacking = "cluster(s) had no label {}, which a spread constraint needs".format
    assert told == f"0/2 clusters are available: 1 {lacking(REGION)}, 2 {lacking(ZONE)}"


def test_the_fuller_cluster_scores_higher():
    members = fleet(cluster("a", cpu="10", free="1"), cluster("b", cpu="10", free="9"), cluster("c", cpu="0"))
    assert cluster_resources_most_allocated.score(unit(), members).tolist() == [45, 5, 0]


def test_what_asks_for_katalyst_goes_where_it_is():
    has = {"allocatable": {RECLAIMED: "1k"}, "available": {RECLAIMED: "1k"}}
    members = fleet(cluster("a", resources=has), "b", "c")
    wants = unit(request=ResourceRequest(scalars={RECLAIMED: 1}), current={"c": None})
    assert katalyst_resources_exist.feasible(wants, members).tolist() == [True, False, True]


# Other workloads.


def beside(*clusters, labels=None, name="cache", namespace="default", members):
    members.workloads.set(WorkloadKey("apps", "Deployment", namespace, name), labels or {"app": "cache"}, clusters)
    return members


CACHE = WorkloadRule(from_map({"app": "cache"}))
CACHE_BY_REGION = WorkloadRule(from_map({"app": "cache"}), (), REGION)


def regions():
    return fleet(in_region("a", "eu"), in_region("b", "eu"), in_region("c", "us"), in_region("d", ""))


def test_required_affinity_allows_the_domains_of_the_others():
    members = beside("a", members=regions())
    assert workload_affinity.feasible(ruled(affinity=(CACHE,)), members).tolist() == [True, False, False, False]
    assert workload_affinity.feasible(ruled(affinity=(CACHE_BY_REGION,)), members).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert workload_affinity.reason(ruled(affinity=(CACHE,)), members, 1) == workload_affinity.REASON_AFFINITY


def test_required_anti_affinity_refuses_the_domains_of_the_others():
    members = beside("a", members=regions())
    away = ruled(anti_affinity=(CACHE_BY_REGION,))
    assert workload_affinity.feasible(away, members).tolist() == [False, False, True, True]
    assert workload_affinity.reason(away, members, 0) == workload_affinity.REASON_ANTI_AFFINITY


def test_reasons_of_many_rows_are_those_of_each():
    members = beside("a", "c", members=regions())
    both = ruled(affinity=(CACHE,), anti_affinity=(CACHE_BY_REGION,))
    refused = (~workload_affinity.feasible(both, members)).nonzero()[0]
    texts, codes = workload_affinity.reasons(both, members, refused)
    assert [texts[code] for code in codes] == [workload_affinity.reason(both, members, row) for row in refused]


def test_a_reason_that_no_cluster_has_is_not_told():
    members = beside("a", "b", members=fleet("a", "b"))
    decision = schedule(ruled(anti_affinity=(CACHE,)), members)
    assert decision.message == f"0/2 clusters are available: 2 {workload_affinity.REASON_ANTI_AFFINITY}"
    (refusal,) = account_of(record_of(decision), members.names).refused
    assert (refusal.plugin, refusal.count) == ("WorkloadAffinity", 2)


def test_where_a_unit_runs_it_stays_whatever_others_do():
    members = beside("a", members=regions())
    assert workload_affinity.feasible(ruled(current={"a": 1}, anti_affinity=(CACHE,)), members).all()


SPREAD_EVENLY = {"a": 2, "b": 2, "c": 2}
STRATEGIES = ("Spread", "Webster", "Binpack", "Aggregated")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("avoid_disruption", [True, False])
@pytest.mark.parametrize(
    "rules",
    [
        {"anti_affinity": (CACHE,)},
        {"affinity": (WorkloadRule(from_map({"app": "db"})),)},
        {"cost": CostRule(max_price=5)},
    ],
    ids=["apart", "beside", "price"],
)
def test_new_replicas_obey_a_rule_also_where_others_run(rules, strategy, avoid_disruption):
    """Since it was placed, a cache arrived in c, the database left it, and it became dear."""
    cheap, dear = {keys.PRICE_PER_CORE_HOUR: "0.000000001"}, {keys.PRICE_PER_CORE_HOUR: "9"}
    members = fleet(cluster("a", annotations=cheap), cluster("b", annotations=cheap), cluster("c", annotations=dear))
    beside("c", members=members)
    beside("a", "b", labels={"app": "db"}, name="db", members=members)
    asked = {"replicas_strategy": strategy, "avoid_disruption": avoid_disruption, "rules": Rules(**rules)}
    grown = schedule(unit(12, current=SPREAD_EVENLY, min_replicas={"c": 4}, **asked), members).placements
    assert (grown["c"], sum(grown.values())) == (2, 12)
    assert schedule(unit(6, current=SPREAD_EVENLY, min_replicas={"c": 2}, **asked), members).placements["c"] == 2


def test_replicas_that_a_rule_allows_nowhere_wait_and_that_is_told():
    members = beside("a", "b", "c", members=fleet("a", "b", "c"))
    for sticky in (False, True):
        asked = unit(12, current=SPREAD_EVENLY, rules=Rules(anti_affinity=(CACHE,)), sticky=sticky)
        decision = schedule(asked, members)
        assert (decision.placements, decision.shortfall, decision.waiting) == (SPREAD_EVENLY, 6, 6)
        assert not decision.unschedulable
        assert decision.message == (
            "6 of 12 replicas found no cluster: WorkloadAffinity allows no new ones where it runs (a, b, c)"
        )


def test_what_waits_for_room_and_what_a_rule_forbids_are_told_apart():
    members = beside("b", members=fleet(cluster("a", free="1"), "b"))
    rules = Rules(anti_affinity=(CACHE,), within_available=True)
    one_core = ResourceRequest(milli_cpu=1000)
    bounded = unit(9, current={"a": 1, "b": 1}, max_replicas={"a": 4}, pod_request=one_core, rules=rules)
    decision = schedule(bounded, members)
    assert (decision.placements, decision.waiting) == ({"a": 2, "b": 1}, 6)
    assert decision.message == (
        "2 of 9 replicas wait for room: no cluster that may take them has it available; "
        "4 of 9 replicas found no cluster: WorkloadAffinity allows no new ones where it runs (b)"
    )


def test_a_profile_without_the_filter_has_no_such_rule():
    profile = msgspec.structs.replace(DEFAULT, filters=())
    members = beside("a", "b", "c", members=fleet("a", "b", "c"))
    asked = unit(12, current=SPREAD_EVENLY, rules=Rules(anti_affinity=(CACHE,)))
    assert sum(schedule(asked, members, profile).placements.values()) == 12


def test_only_the_namespaces_asked_for_count():
    members = beside("a", namespace="other", members=regions())
    assert not workload_affinity.feasible(ruled(affinity=(CACHE,)), members).any()
    other = WorkloadRule(CACHE.selector, ("other",))
    assert workload_affinity.feasible(ruled(affinity=(other,)), members).tolist() == [True, False, False, False]


def test_the_first_of_those_that_want_to_be_together_may_begin():
    own = WorkloadRule(from_map({"app": "web"}), (), REGION)
    first = unit(labels={"app": "web"}, rules=Rules(affinity=(own,)))
    members = regions()
    assert workload_affinity.feasible(first, members).tolist() == [True, True, True, False]
    beside("web", "c", labels={"app": "web"}, name="other", members=members)
    assert workload_affinity.feasible(first, members).tolist() == [False, False, True, False]


def test_a_unit_is_not_kept_apart_from_itself():
    own = WorkloadRule(from_map({"app": "web"}))
    members = beside("a", labels={"app": "web"}, name="web", members=regions())
    assert workload_affinity.feasible(unit(labels={"app": "web"}, rules=Rules(anti_affinity=(own,))), members).all()


def test_preferred_terms_attract_and_repel_for_each_workload():
    members = beside("a", "c", members=regions())
    beside("b", labels={"app": "noisy"}, name="noisy", members=members)
    noisy = WorkloadRule(from_map({"app": "noisy"}))
    wants = ruled(preferred=(PreferredWorkloads(10, CACHE), PreferredWorkloads(-5, noisy)))
    scores = workload_affinity.score(wants, members)
    assert scores.tolist() == [10, -5, 10, 0]
    assert workload_affinity.normalize(scores).tolist() == [100, 0, 100, 33]
    assert workload_affinity.normalize(scores[:0]).tolist() == []


# Power and price.


def declared(name, *, power=None, price=None, **facts):
    annotations = {keys.COMPUTE_POWER: power, keys.PRICE_PER_CORE_HOUR: price}
    return cluster(name, annotations={key: text for key, text in annotations.items() if text}, **facts)


def test_a_service_prefers_cores_like_those_it_has():
    members = fleet(declared("a", power="1.0"), declared("b", power="2.0"), declared("c", power="1.2"))
    running = ruled(4, current={"a": 3, "gone": 1}, compute_power=ComputePower())
    assert compute_power.score(running, members).tolist() == [100, 50, 83]
    assert compute_power.score(ruled(4, compute_power=ComputePower()), members) is members.zeros
    off = ComputePower(prefer_consistent=False)
    assert compute_power.score(ruled(4, current={"a": 3}, compute_power=off), members) is members.zeros


def test_alike_cores_say_nothing():
    members = fleet("a", "b")
    assert compute_power.score(ruled(4, current={"a": 3}, compute_power=ComputePower()), members) is members.zeros


def test_cores_count_by_their_power_where_asked():
    members = fleet(declared("a", power="0.5", cpu="8"), declared("b", power="1.5", cpu="8"), cluster("c", cpu="8"))
    cores = members.allocatable("cpu")
    assert compute_power.effective(ruled(compute_power=ComputePower()), members, cores).tolist() == [4000, 12000, 8000]
    assert compute_power.effective(unit(), members, cores) is cores


def test_weights_follow_effective_cores_where_asked():
    members = fleet(declared("a", power="0.5", cpu="30"), declared("b", power="1.5", cpu="30"))
    plain = schedule(unit(12), members).placements
    assert plain == {"a": 6, "b": 6}
    assert schedule(ruled(12, compute_power=ComputePower()), members).placements == {"a": 3, "b": 9}
    assert schedule(ruled(12, compute_power=ComputePower(normalize_capacity=False)), members).placements == plain


def test_weights_follow_reclaimed_cores_where_those_are_asked_for():
    def reclaiming(name, amount):
        return cluster(name, resources={"allocatable": {RECLAIMED: amount}, "available": {RECLAIMED: amount}})

    members = fleet(reclaiming("a", "3k"), reclaiming("b", "6k"))
    assert schedule(unit(12, request=ResourceRequest(scalars={RECLAIMED: 1})), members).placements == {"a": 3, "b": 9}


def test_the_cheaper_cluster_scores_higher():
    members = fleet(declared("a", price="0.04"), declared("b", price="0.02"), "c")
    prices = cost.score(ruled(cost=CostRule()), members)
    assert cost.normalize(prices).tolist() == [50, 100, 0]
    assert cost.normalize(prices[2:]).tolist() == [0]
    free = fleet(declared("a", price="0"), declared("b", price="1"))
    assert cost.normalize(cost.score(ruled(cost=CostRule()), free)).tolist() == [100, 0]


def test_a_price_is_for_what_a_core_does():
    members = fleet(declared("a", price="0.04", power="2"), declared("b", price="0.03"), "c")
    wants = ruled(cost=CostRule(), compute_power=ComputePower())
    assert cost.normalize(cost.score(wants, members)).tolist() == [100, 66, 0]


def test_nothing_new_goes_above_the_price_limit():
    members = fleet(declared("a", price="0.04"), declared("b", price="0.02"), "c", declared("d", price="9"))
    limited = ruled(current={"d": 1}, cost=CostRule(prefer_lowest=False, max_price=30_000_000))
    assert cost.feasible(limited, members).tolist() == [False, True, False, True]
    assert cost.score(limited, members) is members.zeros


# Places.


def test_nearer_is_better():
    members = fleet(
        cluster("a", labels={ZONE: "eu-1a", REGION: "eu-1"}),
        cluster("b", labels={ZONE: "eu-1b", REGION: "eu-1"}),
        cluster("c", labels={ZONE: "us-1a", REGION: "us-1"}),
        "d",
    )
    near = Locality((LocalityTerm(ZONE, "eu-1a"), LocalityTerm(REGION, "eu-1")))
    assert locality.score(ruled(locality=near), members).tolist() == [100, 50, 0, 0]


def failing_region():
    return fleet(
        in_region("a", "eu", ready=False), in_region("b", "eu"), in_region("c", "us"), cluster("d", ready=False)
    )


def test_failing_domains_score_by_what_is_left_of_them():
    rule = FailureDomain(REGION, 40)
    members = failing_region()
    assert failure_domain.score(ruled(failure_domain=rule), members).tolist() == [50, 50, 100, 100]
    assert failure_domain.feasible(ruled(failure_domain=rule), members) is members.everyone


def test_a_share_that_is_just_reached_is_allowed():
    members = failing_region()
    assert failure_domain.score(ruled(failure_domain=FailureDomain(REGION, 50)), members) is members.zeros


def test_nothing_new_goes_to_failing_domains_where_that_is_asked():
    rule = FailureDomain(REGION, 40, "DoNotSchedule")
    assert failure_domain.feasible(ruled(current={"a": 1}, failure_domain=rule), failing_region()).tolist() == [
        True,
        False,
        True,
        True,
    ]
