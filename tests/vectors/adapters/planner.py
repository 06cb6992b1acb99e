"""The replica planner, its weights and the replicas plugin."""

from typing import Any

import numpy as np

from argosy.plan.plugins.replicas import cluster_capacity_weight
from argosy.plan.replicas.weights import available_weights, weight_limits
from tests.unit.plan.planning import ReplicaPlan, plan_replicas
from tests.vectors.adapters import units


def planner_step(vector: dict[str, Any]) -> dict[str, Any]:
    return _shown(_plan(vector, vector["current"] or {}, vector["estimated_capacity"] or {}))


def planner(vector: dict[str, Any]) -> dict[str, Any]:
    """Plans again and again as replicas move, until a plan repeats itself."""
    current = vector["initial_current"] or {}
    actual = vector["actual_capacity"] or {}
    before = ReplicaPlan({}, {})
    steps: list[dict[str, Any]] = []
    while len(steps) < vector["max_steps"]:
        estimated = {name: capacity for name, capacity in actual.items() if capacity < current.get(name, 0)}
        plan = _plan(vector, current, estimated)
        steps.append({"current": current, "estimated_capacity": estimated, **_shown(plan)})
        if plan == before:
            break
        before = plan
        current = {name: plan.total(name) for name in {*plan.replicas, *plan.overflow}}
    return {**_shown(before), "steps": steps}


def weight_limit(vector: dict[str, Any]) -> dict[str, Any]:
    fleet, resource = units.fleet(vector["clusters"]), vector["resource_name"]
    allocatable, _ = cluster_capacity_weight.amounts(fleet, np.arange(len(fleet)), resource)
    limits = weight_limits(allocatable, vector["supply_limit_ratio"])
    return {"weight_limit": dict(zip(fleet.names, limits.tolist(), strict=True)), "error": False}


def available_to_percentage(vector: dict[str, Any]) -> dict[str, Any]:
    clusters = [
        {"metadata": {"name": name}, "status": {"resources": {"available": available}}}
        for name, available in vector["cluster_availables"].items()
    ]
    fleet = units.fleet(clusters)
    resource = vector["resource_name"]
    if any(resource not in member.available for member in fleet.members):
        return {"cluster_weights": {}, "error": True, "error_message": f"no {resource} resource"}
    _, available = cluster_capacity_weight.amounts(fleet, np.arange(len(fleet)), resource)
    weights = available_weights(available, fleet.column(vector["weight_limit"] or {}))
    return {"cluster_weights": dict(zip(fleet.names, weights.tolist(), strict=True)), "error": False}


def replicas(vector: dict[str, Any]) -> dict[str, Any]:
    # Upstream's stage does not look at readiness, of which these say nothing: its filter has done that.
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    clusters = [{**cluster, "status": {**(cluster.get("status") or {}), **ready}} for cluster in vector["clusters"]]
    unit, fleet = units.unit(vector["scheduling_unit"]), units.fleet(clusters)
    names = [cluster["metadata"]["name"] for cluster in vector["clusters"]]
    division = cluster_capacity_weight.divide(unit, fleet, fleet.rows_of(names))
    numbers = (division.replicas + division.overflow).tolist()
    given = [{"cluster": name, "replicas": number} for name, number in zip(names, numbers, strict=True) if number]
    return {"replicas": given, "result": {"code": "Success", "reasons": []}}


def same_up_to_ties(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    """The rounding remainder may go to any of the clusters that tie for the largest weight."""
    if expected["error"] or actual["error"]:
        return bool(expected["error"] == actual["error"])
    wanted, got = expected["cluster_weights"], actual["cluster_weights"]
    moved = [name for name in wanted if wanted[name] != got.get(name)]
    return wanted.keys() == got.keys() and sorted(wanted.values()) == sorted(got.values()) and len(moved) in (0, 2)


def _plan(vector: dict[str, Any], current: dict[str, int], estimated: dict[str, int]) -> ReplicaPlan:
    return plan_replicas(
        {
            name: (item["min_replicas"], item["max_replicas"], item["weight"])
            for name, item in vector["preferences"].items()
        },
        vector["total_replicas"],
        vector["available_clusters"],
        key=vector["key"],
        current=current,
        estimated_capacity=estimated,
        limited_capacity=vector["limited_capacity"] or {},
        avoid_disruption=vector["avoid_disruption"],
        keep_unschedulable=vector["keep_unschedulable"],
    )


def _shown(plan: ReplicaPlan) -> dict[str, Any]:
    return {"plan": plan.replicas, "overflow": plan.overflow}


ADAPTERS = {
    "planner": planner,
    "planner_steps": planner_step,
    "rsp_weight_limit": weight_limit,
    "rsp_available_to_percentage": available_to_percentage,
    "rsp_replicas": replicas,
}
SAME = {"rsp_available_to_percentage": same_up_to_ties}
