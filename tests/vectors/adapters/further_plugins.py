"""The plugins that are off by default or look at migration, and Katalyst's resources."""

import datetime
from typing import Any

import msgspec

from argosy.fleet.capacity import Capacity, NodeView, PodView
from argosy.fleet.katalyst import CustomNodeResourceView, NodeResources, ResourcePluginsError, resource_plugins
from argosy.kube import quantity
from argosy.plan.plugins import (
    cluster_evicted,
    cluster_resources_fit,
    cluster_resources_most_allocated,
    katalyst_resources_exist,
)
from argosy.plan.scheduling.framework import Filter
from tests.vectors.adapters import units
from tests.vectors.adapters.plugins import Answer, same_scores, scoring

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def filtering(plugin: Filter) -> Answer:
    def answer(vector: dict[str, Any]) -> dict[str, Any]:
        unit = msgspec.structs.replace(units.unit(vector["scheduling_unit"]), now=NOW)
        fleet = units.fleet([vector["cluster"]])
        if plugin.feasible(unit, fleet)[0]:
            return {"result": {"code": "Success", "reasons": []}}
        return {"result": {"code": "Unschedulable", "reasons": plugin.reason(unit, fleet, 0).split(", ")}}

    return answer


def evicted(vector: dict[str, Any]) -> dict[str, Any]:
    result = filtering(cluster_evicted.FILTER)(vector)["result"]
    return {"success": result["code"] == "Success", "actual_result": result}


def plugins_named(vector: dict[str, Any]) -> dict[str, Any]:
    try:
        named = resource_plugins(vector["annotations"] or {}, frozenset(vector["registered"]))
    except ResourcePluginsError:
        return {"error": True, "plugins": None}
    return {"error": False, "plugins": list(named)}


def katalyst_resources(vector: dict[str, Any]) -> dict[str, Any]:
    """No lister, or one that fails, is a watch here that has brought nothing."""
    lister = vector["cnr_lister"] or {"custom_node_resources": []}
    capacity, further = Capacity(), NodeResources()
    for node in vector["nodes"]:
        capacity.set_node(node["metadata"]["name"], units.read(node, NodeView))
    for number, pod in enumerate(vector["pods"]):
        capacity.set_pod(str(number), units.read(pod, PodView))
    for item in lister["custom_node_resources"]:
        further.set(item["metadata"]["name"], units.read(item, CustomNodeResourceView))
    totals = capacity.resources(further)
    return {"error": False, "allocatable": totals.allocatable, "available": totals.available}


def same_amounts(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    return expected["error"] == actual["error"] and all(
        {name: quantity.parse(amount) for name, amount in (expected[part] or {}).items()}
        == {name: quantity.parse(amount) for name, amount in (actual[part] or {}).items()}
        for part in ("allocatable", "available")
    )


ADAPTERS = {
    "plugin_clusterevicted_filter": evicted,
    "plugin_clusterresources_fit": filtering(cluster_resources_fit.FILTER),
    "plugin_clusterresources_most": scoring(cluster_resources_most_allocated.SCORE),
    "plugin_katalyst_filter": filtering(katalyst_resources_exist.FILTER),
    "cluster_katalyst_resources": katalyst_resources,
    "cluster_resource_plugins": plugins_named,
}
SAME = {"plugin_clusterresources_most": same_scores, "cluster_katalyst_resources": same_amounts}
