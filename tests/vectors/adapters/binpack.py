"""The bin-pack planner."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.fleet.snapshot import LARGEST
from argosy.plan.replicas.binpack import bin_pack, desired, is_settled
from argosy.plan.replicas.demand import Demand


def desired_plan(vector: dict[str, Any]) -> dict[str, Any]:
    names = [item["cluster"] for item in vector["preferences"]]
    preferences = {item["cluster"]: item for item in vector["preferences"]}
    demand = _demand(vector, names, preferences, {}, vector["estimated_capacity"] or {})
    plan, overflow = desired(demand)
    return _shown(names, plan, overflow)


def planner(vector: dict[str, Any]) -> dict[str, Any]:
    """Plans again and again as replicas move, until a plan repeats itself."""
    current = vector["initial_current"] or {}
    actual = vector["actual_capacity"] or {}
    last: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    while len(steps) < vector["max_steps"]:
        estimated = {name: capacity for name, capacity in actual.items() if capacity < current.get(name, 0)}
        shown = _planned(vector, current, estimated)
        steps.append({"current": current, "estimated_capacity": estimated, **shown})
        if shown == last:
            break
        last = shown
        plan, overflow = shown["plan"], shown["overflow"]
        current = {name: plan.get(name, 0) + overflow.get(name, 0) for name in {*plan, *overflow}}
    return {**last, "steps": steps}


def _planned(vector: dict[str, Any], current: dict[str, int], estimated: dict[str, int]) -> dict[str, Any]:
    names, scheduled = vector["available_clusters"], vector["scheduled_replicas"] or {}
    limited = vector["limited_capacity"] or {}
    moved = any(name not in names for name in current) or any(
        number > limited.get(name, number) for name, number in current.items()
    )
    if not moved and not is_settled(scheduled, estimated, current):
        return {"plan": current, "overflow": {}}
    demand = _demand(vector, names, vector["preferences"], current, estimated)
    plan, overflow = bin_pack(demand, _column(names, scheduled, 0))
    return _shown(names, plan, overflow)


def _demand(
    vector: dict[str, Any],
    names: list[str],
    preferences: Mapping[str, Any],
    current: Mapping[str, int],
    estimated: Mapping[str, int],
) -> Demand:
    least = {name: item["min_replicas"] for name, item in preferences.items()}
    most = {name: item["max_replicas"] for name, item in preferences.items() if item["max_replicas"] is not None}
    return Demand(
        vector["total_replicas"],
        _column(names, current, 0),
        _column(names, least, 0),
        _column(names, most, LARGEST),
        _column(names, vector["limited_capacity"] or {}, LARGEST),
        _column(names, estimated, LARGEST),
        vector.get("avoid_disruption", False),
        vector.get("keep_unschedulable", True),
    )


def _column(names: list[str], numbers: Mapping[str, int], default: int) -> Any:
    return np.array([numbers.get(name, default) for name in names], dtype=np.int64)


def _shown(names: list[str], plan: Any, overflow: Any) -> dict[str, Any]:
    return {
        "plan": dict(zip(names, plan.tolist(), strict=True)),
        "overflow": {name: number for name, number in zip(names, overflow.tolist(), strict=True) if number},
    }


ADAPTERS = {"binpack_desired": desired_plan, "binpack_planner": planner}
