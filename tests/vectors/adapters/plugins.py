"""The scheduling plugins, each through the functions the framework calls."""

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy.plan.plugins import (
    api_resources,
    cluster_affinity,
    cluster_resources_balanced_allocation,
    cluster_resources_least_allocated,
    cluster_terminating,
    max_cluster,
    placement_filter,
    priority_sort,
    taint_toleration,
)
from argosy.plan.scheduling.framework import Filter, FrameworkError, Ranked, Score, Select
from tests.vectors.adapters import units

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def filtering(plugin: Filter) -> Answer:
    def answer(vector: dict[str, Any]) -> dict[str, Any]:
        unit, fleet = units.unit(vector["scheduling_unit"]), units.fleet([vector["cluster"]])
        if plugin.feasible(unit, fleet)[0]:
            return {"result": {"code": "Success", "reasons": []}}
        return {"result": {"code": "Unschedulable", "reasons": [plugin.reason(unit, fleet, 0)]}}

    return answer


def filtering_with_success(plugin: Filter) -> Answer:
    def answer(vector: dict[str, Any]) -> dict[str, Any]:
        result = filtering(plugin)(vector)["result"]
        return {"success": result["code"] == "Success", "actual_result": result}

    return answer


def scoring(plugin: Score) -> Answer:
    def answer(vector: dict[str, Any]) -> dict[str, Any]:
        unit, fleet = units.unit(vector["scheduling_unit"]), units.fleet(vector["clusters"])
        raw = plugin.score(unit, fleet)
        named = dict(zip(fleet.names, plugin.normalize(raw).tolist(), strict=True))
        return {"scores": named, "raw_scores": dict(zip(fleet.names, raw.tolist(), strict=True))}

    return answer


def selecting(plugin: Select) -> Answer:
    def answer(vector: dict[str, Any]) -> dict[str, Any]:
        scored = vector["cluster_scores"]
        fleet = units.fleet([{"metadata": {"name": item["cluster"]}} for item in scored])
        ranked = Ranked(
            fleet.rows_of(item["cluster"] for item in scored),
            np.array([item["score"] for item in scored], dtype=np.int64),
        )
        try:
            chosen = plugin.select(units.unit(vector["scheduling_unit"]), fleet, ranked)
        except FrameworkError as error:
            return {"clusters": [], "result": {"code": "Unschedulable", "reasons": [str(error)]}}
        return {"clusters": fleet.names_of(chosen.rows), "result": {"code": "Success", "reasons": []}}

    return answer


def same_scores(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    """Raw scores are compared where they are recorded."""
    return all(actual[part] == scores for part, scores in expected.items())


ADAPTERS = {
    "plugin_apiresources_filter": filtering(api_resources.FILTER),
    "plugin_clusteraffinity_filter": filtering(cluster_affinity.FILTER),
    "plugin_clusteraffinity_score": scoring(cluster_affinity.SCORE),
    "plugin_clusterresources_balanced": scoring(cluster_resources_balanced_allocation.SCORE),
    "plugin_clusterresources_least": scoring(cluster_resources_least_allocated.SCORE),
    "plugin_clusterterminating_filter": filtering(cluster_terminating.FILTER),
    "plugin_maxcluster_select": selecting(max_cluster.SELECT),
    "plugin_placement_filter": filtering_with_success(placement_filter.FILTER),
    "plugin_prioritysort_select": selecting(priority_sort.SELECT),
    "plugin_tainttoleration_filter": filtering(taint_toleration.FILTER),
    "plugin_tainttoleration_score": scoring(taint_toleration.SCORE),
}
_SCORES = [name for name, answer in ADAPTERS.items() if answer.__qualname__.startswith(scoring.__name__)]
SAME = dict.fromkeys(_SCORES, same_scores)
