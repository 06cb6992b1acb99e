"""A placement that is still feasible stays, whatever happens to other clusters and to scores."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.rules import rules_of
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import Affinity, PreferredTerm, unit_of
from tests.unit.plan.any_worlds import MOSTLY, NO_EXECUTE, NO_SCHEDULE, SELDOM
from tests.unit.plan.scheduling import cluster, fleet, policy, taint, template, type_config, unit

NAMES = "abcdef"
AVOIDING_SOME = taint("old", "PreferNoSchedule")
CPUS, TAINTS = st.integers(0, 10), st.integers(0, 3)


def member(name, free="10", **facts):
    return cluster(name, cpu="10", free=free, labels={"region": name}, **facts)


@st.composite
def members(draw):
    """Any state of the same clusters, from which only some can be chosen."""
    return [
        member(
            name,
            str(draw(CPUS)),
            ready=draw(MOSTLY),
            terminating=draw(SELDOM),
            taints=[taint(str(at), "PreferNoSchedule") for at in range(draw(TAINTS))]
            + draw(NO_SCHEDULE)
            + draw(NO_EXECUTE),
        )
        for name in NAMES
    ]


@given(
    st.lists(members(), min_size=2, max_size=4),
    st.integers(1, 3),
    st.sampled_from((None, 4)),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=3),
    st.sampled_from((None, 1, 2)),
)
@settings(max_examples=300, deadline=None)
def test_nobody_leaves_a_cluster_that_will_still_have_it(history, limit, replicas, priorities, domains):
    spread = [{"topologyKey": "region", "maxDomains": domains}] if domains is not None else []
    rules = rules_of(policy(topologySpreadConstraints=spread).spec)
    wanted = unit(replicas, max_clusters=limit, priorities=priorities, rules=rules)
    for clusters in history:
        decision = schedule(wanted, Fleet.of(clusters))
        if decision.unschedulable:
            continue
        for name in wanted.current.keys() - decision.placements.keys():
            took = decision.placements.keys() - wanted.current.keys()
            higher = [other for other in took if priorities.get(other, 0) > priorities.get(name, 0)]
            assert name in decision.rejected or (replicas and not took) or higher, (name, decision.placements)
        wanted = msgspec.structs.replace(wanted, current=decision.placements)


def test_a_taint_elsewhere_moves_no_duplicate():
    """Scores are shares of the worst cluster, so a further taint there makes all others equal."""
    before = fleet(member("a", taints=[AVOIDING_SOME]), member("b", free="3"), member("c"))
    first = schedule(unit(max_clusters=1), before)
    assert first.placements == {"c": None}
    after = fleet(member("a"), member("b"), member("c", free="9"))
    assert schedule(unit(max_clusters=1), after).placements == {"a": None}, "a new one goes elsewhere"
    assert schedule(unit(max_clusters=1, current=first.placements), after).placements == {"c": None}


def test_where_it_cannot_stay_it_goes_to_the_best():
    members = fleet(member("a", free="1"), member("b"), member("c", taints=[taint("gone", "NoExecute")]))
    assert schedule(unit(max_clusters=1, current={"c": None}), members).placements == {"b": None}
    more = schedule(unit(max_clusters=2, current={"a": None}), members)
    assert more.placements == {"a": None, "b": None}
    fewer = schedule(unit(max_clusters=1, current={"a": None, "b": None}), members)
    assert fewer.placements == {"b": None}, "the best of those that have it"


def test_among_equal_priorities_it_stays_and_a_higher_one_is_followed():
    members = fleet("a", "b", "c")
    kept = unit(max_clusters=1, current={"c": None}, priorities={"a": 1, "c": 1})
    assert schedule(kept, members).placements == {"c": None}
    moved = unit(max_clusters=1, current={"c": None}, priorities={"a": 1})
    assert schedule(moved, members).placements == {"a": None}


def test_a_policy_may_ask_to_follow_the_scores():
    members = fleet(member("a"), member("b", free="1"))
    for rescheduling, placed in (({"avoidDisruption": False}, {"a": None}), (None, {"b": None})):
        reschedule = {"rescheduleWhen": {}, **({"replicaRescheduling": rescheduling} if rescheduling else {})}
        rules = policy(schedulingMode="Duplicate", maxClusters=1, reschedulePolicy=reschedule)
        asked = unit_of(template(), {}, {"b": None}, rules, type_config())
        assert schedule(asked, members).placements == placed


def test_objects_that_run_in_the_same_clusters_share_what_was_found():
    members = fleet("a", "b", "c")
    first = schedule(unit(name="one", max_clusters=1, current={"b": None}), members)
    again = schedule(unit(name="two", max_clusters=1, current={"b": None}), members)
    other = schedule(unit(name="three", max_clusters=1, current={"c": None}), members)
    assert first.evaluation is again.evaluation
    assert first.evaluation is not other.evaluation
    assert first.evaluation.filter_run is other.evaluation.filter_run


def test_a_preference_is_for_new_objects():
    """As with every rule: a running copy is not moved because another cluster is preferred now."""
    nvme = msgspec.convert(
        {"weight": 80, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme"]}]}},
        PreferredTerm,
    )
    members = fleet("a", cluster("b", labels={"disk": "nvme"}))
    asked = unit(max_clusters=1, affinity=Affinity(preferred=(nvme,)))
    assert schedule(asked, members).placements == {"b": None}
    assert schedule(msgspec.structs.replace(asked, current={"a": None}), members).placements == {"a": None}


def test_where_some_must_be_left_those_that_take_no_more_are_left_first():
    fleets = fleet(cluster("a", taints=[taint("cordoned")]), "b", "c")
    running = {"a": 2, "b": 2, "c": 2}
    decision = schedule(unit(6, current=running, max_clusters=2), fleets)
    assert set(decision.placements) == {"b", "c"}
    assert sum(number or 0 for number in decision.placements.values()) == 6


def test_among_equals_a_cluster_that_takes_more_is_selected():
    fleets = fleet(cluster("a", taints=[taint("cordoned")]), "b")
    decision = schedule(unit(6, current={"a": 3}, max_clusters=1, avoid_disruption=False), fleets)
    assert decision.placements == {"b": 6}


def test_what_runs_in_a_cluster_that_takes_no_more_stays_there():
    fleets = fleet(cluster("a", taints=[taint("cordoned")]), "b")
    assert schedule(unit(3, current={"a": 3}, max_clusters=1), fleets).placements == {"a": 3}
