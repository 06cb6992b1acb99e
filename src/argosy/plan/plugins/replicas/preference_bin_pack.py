"""PreferenceBinPack: fill one cluster after another, in the order of selection."""

import numpy as np

from argosy.fleet.snapshot import Column, Fleet, Rows
from argosy.plan.replicas.binpack import bin_pack, is_settled
from argosy.plan.replicas.demand import Demand, demand_of, estimated_capacity, replicas_today, steps
from argosy.plan.scheduling.framework import Division, Replicas
from argosy.plan.scheduling.unit import Unit

WAITS = "pods are still being scheduled: no new plan until it is known which clusters have room"


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    demand = demand_of(unit, fleet, rows)
    if not _is_due(unit, fleet, rows, demand):
        return Division(demand.current, np.zeros_like(demand.current), (WAITS,))
    plan, overflow = bin_pack(demand, _scheduled(unit, fleet)[rows])
    return Division(plan, overflow, steps(unit, demand))


def _is_due(unit: Unit, fleet: Fleet, rows: Rows, demand: Demand) -> bool:
    """Whether to plan anew. Replicas that must leave a cluster never wait; else all pods must be seen to fit or not to fit."""
    info = unit.migration_info if unit.auto_migration else None
    if info is None or (demand.current > demand.limited).any():
        return True
    today = replicas_today(unit)
    left = today.keys() - set(fleet.names_of(rows))
    return bool(left) or is_settled(info.scheduled_replicas, estimated_capacity(unit), today)


def _scheduled(unit: Unit, fleet: Fleet) -> Column:
    info = unit.migration_info if unit.auto_migration else None
    return fleet.zeros if info is None else np.maximum(fleet.column(info.scheduled_replicas), 0)


REPLICAS = Replicas("PreferenceBinPack", divide)
