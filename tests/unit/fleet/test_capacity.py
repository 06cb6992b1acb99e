"""Capacity: which nodes and pods count, and that events in any order end in the same sums."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api.clusters import ClusterResources
from argosy.fleet.capacity import Capacity, NodeView, PodView, node_counts, requests_of
from argosy.kube.selectors import parse_label_selector


def node(cpu="4", memory="8Gi", *, labels=None, unschedulable=False, taints=(), ready=None, **others):
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return msgspec.convert(
        {
            "metadata": {"name": "n", "labels": labels or {}},
            "spec": {"unschedulable": unschedulable, "taints": [{"key": "k", "effect": effect} for effect in taints]},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, **others}, "conditions": conditions},
        },
        NodeView,
    )


def container(requests=None, limits=None):
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


def pod(*containers, init=(), overhead=None, phase="Running", **more):
    spec = {"containers": list(containers), "initContainers": list(init), "overhead": overhead or {}, **more}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}}, PodView)


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        (node(), True),
        (node(ready="True"), True),
        (node(ready="Unknown"), False),
        (node(unschedulable=True), False),
        (node(taints=["NoSchedule"]), False),
        (node(taints=["NoExecute"]), False),
        (node(taints=["PreferNoSchedule"]), True),
        (node(labels={"type": "virtual-kubelet"}), False),
    ],
)
def test_only_nodes_that_take_pods_count(seen, counts):
    assert node_counts(seen, [parse_label_selector("type=virtual-kubelet")]) is counts


def test_a_pod_asks_for_its_containers_or_its_largest_init_container():
    small, large = container({"cpu": "100m", "memory": "1Gi"}), container({"cpu": "2", "memory": "1Mi"})
    assert requests_of(pod(small, small, init=[large]).spec) == {"cpu": 2000, "memory": 2 * 2**30}


def test_a_limit_stands_for_a_missing_request_except_in_init_containers():
    limited = container({"cpu": "100m"}, {"cpu": "1", "memory": "1Gi"})
    assert requests_of(pod(limited).spec) == {"cpu": 100, "memory": 2**30}
    assert requests_of(pod(container(), init=[limited]).spec) == {"cpu": 100}


def test_a_sidecar_counts_as_any_init_container_and_the_pod_as_a_whole_not_at_all():
    """As KubeAdmiral counts, which knows neither."""
    sidecar = container({"cpu": "300m"}) | {"restartPolicy": "Always"}
    seen = pod(
        container({"cpu": "200m"}), init=[sidecar, container({"cpu": "250m"})], resources={"requests": {"cpu": "9"}}
    )
    assert requests_of(seen.spec) == {"cpu": 300}


def test_overhead_comes_on_top():
    assert requests_of(pod(container({"cpu": "1"}), overhead={"cpu": "250m"}).spec) == {"cpu": 1250}


def test_resources_are_shown_as_kubernetes_writes_them():
    capacity = Capacity()
    capacity.set_node("n1", node(cpu="4", memory="8Gi", pods="110"))
    capacity.set_node("n2", node(cpu="1500m", memory="8Gi", **{"nvidia.com/gpu": "2000"}))
    capacity.set_pod("a/p", pod(container({"cpu": "250m", "memory": "512Mi", "other.io/x": "1"})))
    assert capacity.resources() == ClusterResources(
        schedulable_nodes=2,
        allocatable={"cpu": "5500m", "memory": "16Gi", "nvidia.com/gpu": "2k"},
        available={"cpu": "5250m", "memory": "15872Mi", "nvidia.com/gpu": "2k"},
    )


def test_available_may_be_negative():
    capacity = Capacity()
    capacity.set_node("n", node(cpu="1"))
    capacity.set_pod("a/p", pod(container({"cpu": "3"})))
    assert capacity.resources().available["cpu"] == "-2"


def test_a_finished_pod_gives_back_what_it_took():
    capacity = Capacity()
    capacity.set_node("n", node(cpu="4"))
    for phase in ("Running", "Succeeded"):
        capacity.set_pod("a/p", pod(container({"cpu": "1"}), phase=phase))
    assert capacity.resources().available["cpu"] == "4"


def test_a_node_that_is_cordoned_and_back_counts_once():
    capacity = Capacity()
    for seen in (node(), node(unschedulable=True), node()):
        capacity.set_node("n", seen)
    assert capacity.resources().schedulable_nodes == 1
    assert capacity.resources().allocatable["cpu"] == "4"


def test_a_resource_disappears_with_the_last_node_that_has_it():
    capacity = Capacity()
    capacity.set_node("n", node(**{"nvidia.com/gpu": "1"}))
    capacity.set_node("n", node())
    assert set(capacity.resources().allocatable) == {"cpu", "memory"}
    capacity.set_node("n", None)
    assert capacity.resources() == ClusterResources(schedulable_nodes=0)


def test_a_broken_quantity_counts_as_nothing():
    capacity = Capacity()
    capacity.set_node("n", node(cpu="many"))
    assert set(capacity.resources().allocatable) == {"memory"}


nodes = st.one_of(
    st.none(),
    st.builds(node, cpu=st.sampled_from(["1", "1500m"]), unschedulable=st.booleans(), pods=st.just("110")),
)
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "x.io/y"]), st.sampled_from(["1", "2", "10m", "1Gi"]))
pods = st.one_of(
    st.none(),
    st.builds(
        lambda requests, phase: pod(container(requests), phase=phase),
        amounts,
        st.sampled_from(["Pending", "Running", "Failed"]),
    ),
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from("ab"), nodes),
        st.tuples(st.just("pod"), st.sampled_from("pqr"), pods),
    ),
    max_size=20,
)


@given(events)
@settings(max_examples=150, deadline=None)
def test_any_history_ends_in_the_sums_of_what_is_there(happened):
    capacity, present = Capacity(), {}
    for kind, name, seen in happened:
        (capacity.set_node if kind == "node" else capacity.set_pod)(name, seen)
        present[kind, name] = seen
    anew = Capacity()
    for (kind, name), seen in reversed(present.items()):
        (anew.set_node if kind == "node" else anew.set_pod)(name, seen)
    assert capacity.resources() == anew.resources()
