"""The fleet snapshot: columns in name order, and updates that equal a fleet built anew."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.snapshot import LARGEST, Fleet
from tests.unit.plan.scheduling import DEPLOYMENTS, cluster, fleet, taint

APPS_V1 = ("apps", "v1", "Deployment")


def test_columns_are_in_the_order_of_names():
    members = fleet(cluster("b", cpu="2", ready=False), cluster("a", cpu="1500m", joined=False))
    assert members.names == ("a", "b")
    assert members.allocatable("cpu").tolist() == [1500, 2000]
    assert members.ready.tolist() == [True, False]
    assert members.joined.tolist() == [False, True]
    assert members.joined_only().names == ("b",)


def test_a_resource_nobody_reports_is_zero():
    assert fleet("a").allocatable("nvidia.com/gpu").tolist() == [0]
    assert fleet("a").reports("nvidia.com/gpu").tolist() == [False]


def test_a_broken_quantity_is_as_good_as_none():
    members = fleet(cluster("a", resources={"allocatable": {"cpu": "lots", "memory": "1Gi"}, "available": {}}))
    assert members.allocatable("cpu").tolist() == [0]
    assert members.allocatable("memory").tolist() == [2**30]


def test_an_api_must_match_in_group_version_and_kind():
    members = fleet("a", cluster("b", apis=[DEPLOYMENTS | {"version": "v2"}]), cluster("c", apis=[]))
    assert members.serving(APPS_V1).tolist() == [True, False, False]


def test_a_heartbeat_leaves_the_same_fleet():
    members = fleet("a", "b")
    assert members.with_cluster(cluster("a")) is members


def test_an_update_shares_the_tables_it_does_not_touch():
    before = fleet("a", "b")
    untouched = before.taints, before.hashes
    after = before.with_cluster(cluster("a", free="1"))
    assert (after.taints, after.hashes) == untouched
    assert after.available("cpu").tolist() == [1000, 10000]
    assert before.available("cpu").tolist() == [10000, 10000]


def test_snapshots_cannot_be_changed_through_a_mask():
    with pytest.raises(ValueError, match="read-only"):
        fleet("a").ready[0] = False


def test_label_answers_are_forgotten_when_labels_change():
    def is_x(member):
        return member.labels.get("zone") == "x"

    before = fleet(cluster("a", labels={"zone": "x"}), "b")
    assert before.where(is_x, question="zone=x").tolist() == [True, False]
    after = before.with_cluster(cluster("b", labels={"zone": "x"}))
    assert after.where(is_x, question="zone=x").tolist() == [True, True]


facts = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["1", "2", "1500m"]),
        "free": st.sampled_from(["0", "1", "-1"]),
        "ready": st.booleans(),
        "joined": st.booleans(),
        "terminating": st.booleans(),
        "labels": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2),
        "taints": st.lists(st.sampled_from([taint("t"), taint("u", "NoExecute")]), max_size=2),
        "apis": st.sampled_from([[], [DEPLOYMENTS]]),
        "resources": st.sampled_from([None, {"allocatable": {"nvidia.com/gpu": "4"}, "available": {"memory": "1"}}]),
    }
)
events = st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), facts)), max_size=12)


def shown(members: Fleet):
    """Everything a decision can read."""
    return (
        members.names,
        members.ready.tolist(),
        members.terminating.tolist(),
        members.staying.tolist(),
        members.joined.tolist(),
        members.stale.tolist(),
        members.tainted_or_unready.tolist(),
        [member.name for member in members.members],
        [[f(name).tolist() for f in (members.allocatable, members.available)] for name in ("cpu", "nvidia.com/gpu")],
        members.reports("nvidia.com/gpu").tolist(),
        members.serving(APPS_V1).tolist(),
        [members.taints.untolerated((), effect).tolist() for effect in ("NoSchedule", "NoExecute")],
        members.where(lambda member: member.labels.get("x") == "1", question="x=1").tolist(),
        members.hashes.fingerprint,
    )


@given(events)
@settings(max_examples=100, deadline=None)
def test_updates_one_by_one_equal_a_fleet_built_anew(happened):
    members, present = Fleet(), {}
    for name, facts_now in happened:
        if facts_now is None:
            present.pop(name, None)
            members = members.without_cluster(name)
        else:
            present[name] = cluster(name, **facts_now)
            members = members.with_cluster(present[name])
        anew = Fleet.of(present.values())
        assert shown(members) == shown(anew)
        assert shown(members.joined_only()) == shown(anew.joined_only())
        assert shown(members.discovered_only()) == shown(anew.discovered_only())


def test_sums_that_go_on_changing_are_read_as_they_are():
    members = fleet("a", "b")
    sums = {"cpu": {"a": 1000}}
    assert members.with_reserved(sums).available("cpu").tolist() == [9000, 10000]
    del sums["cpu"]["a"]
    sums["cpu"]["b"] = 2000
    assert members.with_reserved(sums).available("cpu").tolist() == [10000, 8000]


def test_a_column_has_known_names_only_and_numbers_that_fit():
    members = fleet("a", "b", "c")
    assert members.column({"c": 3, "nobody": 9, "a": 2**70}, 7).tolist() == [LARGEST, 7, 3]
    assert members.mask_of({"b": None, "nobody": 1}).tolist() == [False, True, False]
    assert members.rows_of(name for name in ("c", "nobody", "a")).tolist() == [2, 0]


def test_a_label_is_a_coded_column_kept_while_labels_stay():
    members = Fleet.of([cluster("a", labels={"zone": "y"}), cluster("b"), cluster("c", labels={"zone": "x"})])
    assert members.labelled("zone").values == ("x", "y")
    assert members.labelled("zone").codes.tolist() == [1, -1, 0]
    busier = members.with_cluster(cluster("b", free="1"))
    assert busier.labelled("zone") is members.labelled("zone")
    moved = members.with_cluster(cluster("b", labels={"zone": "x"}))
    assert moved.labelled("zone").codes.tolist() == [1, 0, 0]
