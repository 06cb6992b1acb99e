"""Aggregated: as few clusters as have room for the replicas; clusters that already run some come first."""

from functools import partial

import numpy as np

from argosy.fleet.snapshot import Fleet, Rows
from argosy.plan.replicas.aggregated import aggregated
from argosy.plan.replicas.demand import demand_of, planned, pods_free, steps
from argosy.plan.scheduling.framework import Division, Replicas
from argosy.plan.scheduling.unit import Unit


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    demand = demand_of(unit, fleet, rows)
    fits = demand.current + pods_free(unit, fleet, rows)
    # First the clusters that run most, then in the order of selection.
    preference = np.argsort(-demand.current, kind="stable")
    plan, overflow = planned(demand, partial(aggregated, fits=fits, preference=preference))
    used = f"{int((plan > 0).sum())} of {len(rows)} clusters are used"
    return Division(plan, overflow, (*steps(unit, demand), used))


REPLICAS = Replicas("Aggregated", divide)
