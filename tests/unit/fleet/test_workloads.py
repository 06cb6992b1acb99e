"""The index of placed workloads: who is where, by labels."""

from hypothesis import given
from hypothesis import strategies as st

from argosy.fleet.workloads import WorkloadKey, Workloads
from argosy.kube.selectors import EVERYTHING, from_map
from tests.unit.plan.scheduling import cluster, fleet

WEB = from_map({"app": "web"})


def key(name, namespace="default"):
    return WorkloadKey("apps", "Deployment", namespace, name)


def test_matching_workloads_are_counted_per_cluster():
    index = Workloads()
    index.set(key("a"), {"app": "web", "tier": "front"}, ["m1", "m2"])
    index.set(key("b"), {"app": "web"}, ["m2"])
    index.set(key("c"), {"app": "db"}, ["m2", "m3"])
    index.set(key("d", "other"), {"app": "web"}, ["m3"])
    assert index.placed(WEB, ["default"]) == {"m1": 1, "m2": 2}
    assert index.placed(WEB, ["default", "other"]) == {"m1": 1, "m2": 2, "m3": 1}
    assert index.placed(EVERYTHING, ["default"]) == {"m1": 1, "m2": 3, "m3": 1}
    assert index.placed(WEB, ["nowhere"]) == {}


def test_a_workload_does_not_count_for_itself():
    index = Workloads()
    index.set(key("a"), {"app": "web"}, ["m1", "m2"])
    index.set(key("b"), {"app": "web"}, ["m2"])
    assert index.placed(WEB, ["default"], apart_from=key("a")) == {"m2": 1}
    assert index.placed(WEB, ["default"], apart_from=key("unknown")) == {"m1": 1, "m2": 2}
    assert index.placed(WEB, ["other"], apart_from=key("a")) == {}


def test_it_tells_whether_something_changed():
    index = Workloads()
    assert not index.set(key("a"), {"app": "web"}, [])
    assert index.set(key("a"), {"app": "web"}, ["m1"])
    assert not index.set(key("a"), {"app": "web"}, ["m1"])
    assert index.set(key("a"), {"app": "db"}, ["m1"])
    assert index.placed(WEB, ["default"]) == {}
    assert index.set(key("a"), {}, [])
    assert len(index) == 0


def test_every_next_snapshot_has_the_same_index():
    index = Workloads()
    members = fleet("a", cluster("b", joined=False)).with_workloads(index)
    later = members.with_cluster(cluster("a", ready=False)).with_cluster(cluster("c")).without_cluster("c")
    assert {id(each.workloads) for each in (later, later.joined_only(), later.discovered_only())} == {id(index)}


CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["web", "db"]), st.sets(st.sampled_from(["m1", "m2", "m3"])))
)


@given(CHANGES)
def test_whatever_the_order_of_changes_the_last_word_of_each_counts(changes):
    index, last = Workloads(), {}
    for name, app, clusters in changes:
        index.set(key(name), {"app": app}, clusters)
        last[name] = (app, clusters)
    expected = {}
    for app, clusters in last.values():
        for name in clusters if app == "web" else ():
            expected[name] = expected.get(name, 0) + 1
    assert index.placed(WEB, ["default"]) == expected
    assert len(index) == sum(bool(clusters) for _, clusters in last.values())
