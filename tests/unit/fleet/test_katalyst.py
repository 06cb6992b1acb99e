"""What Katalyst reclaims on nodes: who is asked for it, and what it adds up to."""

import msgspec
import pytest

from argosy.api import keys
from argosy.fleet.capacity import Capacity, NodeView, PodView
from argosy.fleet.katalyst import (
    PLUGIN,
    RECLAIMED_MILLICPU,
    CustomNodeResourceView,
    NodeResources,
    ResourcePluginsError,
    asks_for_katalyst,
    resource_plugins,
)


def annotated(text):
    return {keys.CLUSTER_RESOURCE_PLUGINS: text}


def test_unknown_plugins_are_left_out():
    assert resource_plugins(annotated(f'["other", "{PLUGIN}"]')) == (PLUGIN,)
    assert resource_plugins(annotated("[]")) == ()
    assert resource_plugins({}) == ()


@pytest.mark.parametrize("text", ["", "[", "{}", '"x"', "[1]"])
def test_an_annotation_that_cannot_be_read_is_told_and_asks_for_nothing(text):
    with pytest.raises(ResourcePluginsError, match="cluster-resource-plugins"):
        resource_plugins(annotated(text))
    assert not asks_for_katalyst(annotated(text))


def node(**spec):
    return msgspec.convert({"spec": spec, "status": {"allocatable": {"cpu": "4"}}}, NodeView)


def reclaimed(amount):
    return msgspec.convert({"status": {"resources": {"allocatable": amount}}}, CustomNodeResourceView)


def pod(phase="Running"):
    container = {"resources": {"requests": {RECLAIMED_MILLICPU: "1k"}}}
    return msgspec.convert({"spec": {"containers": [container]}, "status": {"phase": phase}}, PodView)


def test_only_nodes_that_count_and_pods_that_run_matter():
    capacity, further = Capacity(), NodeResources()
    capacity.set_node("a", node())
    capacity.set_node("b", node(unschedulable=True))
    for name in ("a", "b", "gone"):
        further.set(name, reclaimed({RECLAIMED_MILLICPU: "4k", "broken": "many"}))
    capacity.set_pod("p", pod())
    capacity.set_pod("q", pod("Succeeded"))
    totals = capacity.resources(further)
    assert totals.allocatable == {"cpu": "4", RECLAIMED_MILLICPU: "4k"}
    assert totals.available == {"cpu": "4", RECLAIMED_MILLICPU: "3k"}
    assert capacity.resources().allocatable == {"cpu": "4"}


def test_a_node_that_reclaims_nothing_any_more_counts_no_more():
    capacity, further = Capacity(), NodeResources()
    capacity.set_node("a", node())
    further.set("a", reclaimed({RECLAIMED_MILLICPU: "4k"}))
    further.set("a", reclaimed(None))
    assert RECLAIMED_MILLICPU not in capacity.resources(further).allocatable
    further.set("a", None)
    assert further.allocatable({"a"}) == {}
