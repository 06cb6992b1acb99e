"""Aggregated: as few clusters as have room for the replicas, those that run some already first."""

from functools import partial

import numpy as np

from argosy.fleet.snapshot import CPU, LARGEST, MEMORY, Column, Fleet, Rows
from argosy.plan.aggregated import aggregated
from argosy.plan.demand import demand_of, planned, steps
from argosy.plan.framework import Division, Replicas
from argosy.plan.unit import Unit


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    demand = demand_of(unit, fleet, rows)
    fits = np.minimum(demand.current, LARGEST // 2) + np.minimum(free(unit, fleet)[rows], LARGEST // 2)
    # Where most runs already, then in the order of selection.
    preference = np.argsort(-demand.current, kind="stable")
    plan, overflow = planned(demand, partial(aggregated, fits=fits, preference=preference))
    used = f"{int((plan > 0).sum())} of {len(rows)} clusters are used"
    return Division(plan, overflow, (*steps(demand), used))


def free(unit: Unit, fleet: Fleet) -> Column:
    """How many more pods each cluster has resources for, as far as the pods say what they need."""
    request = unit.pod_request
    wanted = {CPU: request.milli_cpu, MEMORY: request.memory, **request.scalars}
    pods = np.full(len(fleet), LARGEST, dtype=np.int64)
    for resource, amount in wanted.items():
        if amount > 0:
            pods = np.minimum(pods, np.maximum(fleet.available(resource), 0) // amount)
    return pods


REPLICAS = Replicas("Aggregated", divide)
