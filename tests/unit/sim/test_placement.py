"""Nodes and pods as the scheduler sees them: what fits, what repels, and what the images do."""

from typing import Any

import orjson
import pytest

from argosy.sim.affinity import matches_node
from argosy.sim.images import Fate, fate
from argosy.sim.nodes import Node, stay, tolerates
from argosy.sim.podcontrol import deletion_order
from argosy.sim.pods import Pod, Shape
from argosy.sim.scheduler import unfit
from argosy.sim.spec import MemberSpec, NodePool, default_members


def shape(requests: dict[str, str] | None = None, **spec: Any) -> Shape:
    container = {"name": "a", "image": "x", "resources": {"requests": requests or {}}}
    whole = {"containers": [container], **spec}
    return Shape((orjson.dumps(whole),), whole)


def node(allocatable: dict[str, str], **spec: Any) -> Node:
    one = Node("n")
    metadata = {"name": "n", "labels": spec.pop("labels", {})}
    conditions = [{"type": "Ready", "status": "True"}]
    one.update({"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable, "conditions": conditions}})
    return one


def test_a_node_takes_pods_until_a_resource_is_used_up() -> None:
    host, one = node({"cpu": "1", "memory": "1Gi", "pods": "10"}), shape({"cpu": "300m"})
    assert host.room(one) == 3
    for _ in range(3):
        assert unfit(host, one) == ([], True)
        host.claim(one)
    assert unfit(host, one) == (["Insufficient cpu"], True)
    host.release(one)
    assert unfit(host, one) == ([], True)


def test_sidecars_and_what_a_pod_asks_for_as_a_whole_take_their_room() -> None:
    host = node({"cpu": "1", "pods": "10"})
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}}
    assert host.room(shape({"cpu": "300m"}, initContainers=[sidecar])) == 2
    assert host.room(shape({"cpu": "100m"}, resources={"requests": {"cpu": "500m"}}, overhead={"cpu": "500m"})) == 1


def test_the_number_of_pods_is_a_resource_too() -> None:
    host, one = node({"cpu": "1", "pods": "1"}), shape()
    host.claim(one)
    assert unfit(host, one)[0] == ["Too many pods"]


def test_what_no_node_of_that_size_could_hold_is_not_helped_by_evicting_others() -> None:
    assert unfit(node({"cpu": "1", "pods": "10"}), shape({"cpu": "2"})) == (["Insufficient cpu"], False)
    assert unfit(node({"cpu": "1", "pods": "10"}), shape({"example.com/gpu": "1"})) == (
        ["Insufficient example.com/gpu"],
        False,
    )


def test_taints_and_cordons_keep_pods_off_unless_tolerated() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    tainted = node({"cpu": "1", "pods": "10"}, taints=[taint])
    assert unfit(tainted, shape())[0] == ["node(s) had untolerated taint(s)"]
    tolerant = shape(tolerations=[{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}])
    assert unfit(tainted, tolerant)[0] == []
    cordoned = node({"cpu": "1", "pods": "10"}, unschedulable=True)
    assert unfit(cordoned, shape())[0] == ["node(s) were unschedulable"]


def test_a_selector_that_does_not_match_is_told() -> None:
    host = node({"cpu": "1", "pods": "10"}, labels={"zone": "a"})
    assert unfit(host, shape(nodeSelector={"zone": "b"}))[0] == ["node(s) didn't match Pod's node affinity/selector"]
    assert unfit(host, shape(nodeSelector={"zone": "a"}))[0] == []


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        ("In", ["a", "b"], True),
        ("NotIn", ["a"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["3"], False),
    ],
)
def test_required_node_affinity(operator: str, values: list[str], matches: bool) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert matches_node({"affinity": {"nodeAffinity": required}}, "n", {"zone": "a"}) is matches


def test_a_pod_stays_under_a_taint_as_long_as_its_longest_toleration() -> None:
    taint = {"key": "gone", "effect": "NoExecute"}
    short = {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert stay([], taint) == 0
    assert stay([short], taint) == 5
    assert stay([short, {"operator": "Exists"}], taint) == float("inf")
    assert tolerates([{"key": "gone", "value": "x"}], taint) is None


def pod(name: str, **fields: Any) -> Pod:
    one = Pod(name, "ns", name, name, shape())
    one.node, one.phase, one.ready = "n1", "Running", True
    for field, value in fields.items():
        setattr(one, field, value)
    return one


def test_pods_that_are_missed_least_are_stopped_first() -> None:
    pods = [
        pod("old", node="n1", ready_since=10, created=10),
        pod("crowded", node="n2", ready_since=10, created=10),
        pod("crowded-young", node="n2", ready_since=20, created=20),
        pod("cheap", node="n3", cost=-1),
        pod("unready", node="n4", ready=False),
        pod("pending", node="n5", phase="Pending", ready=False),
        pod("unassigned", node="", phase="Pending", ready=False),
    ]
    names = [one.name for one in deletion_order(pods)]
    assert names == ["unassigned", "pending", "unready", "cheap", "crowded-young", "crowded", "old"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", Fate.RUNS),
        ("registry:5000/team/app:bad", Fate.UNPULLABLE),
        ("app:fail", Fate.UNPULLABLE),
        ("app:crash", Fate.CRASHES),
        ("app:slow@sha256:0", Fate.SLOW),
        ("bad/app:1", Fate.RUNS),
    ],
)
def test_the_tag_says_what_an_image_does(image: str, expected: Fate) -> None:
    assert fate(image) is expected


def test_default_members_differ_in_size_and_place() -> None:
    members = default_members(4)
    assert [len(list(member.nodes())) for member in members] == [3, 5, 8, 4]
    assert len({member.labels["topology.kubernetes.io/region"] for member in members}) == 4


def test_nodes_of_several_pools_have_different_names_and_addresses() -> None:
    spec = MemberSpec("m", (NodePool(2), NodePool(1, extended={"example.com/gpu": "4"}, name="gpu")))
    nodes = list(spec.nodes())
    assert [one.name for one in nodes] == ["m-node-0", "m-node-1", "m-gpu-0"]
    assert [one.index for one in nodes] == [0, 1, 2]
    assert nodes[2].capacity["example.com/gpu"] == "4"
