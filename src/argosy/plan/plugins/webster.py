"""Webster: every cluster as near to its share by weight as whole replicas allow, by the policy's weights or by capacity."""

from functools import partial

import numpy as np

from argosy.fleet.snapshot import Column, Fleet, Rows
from argosy.plan.demand import demand_of, planned, steps
from argosy.plan.framework import Division, Replicas
from argosy.plan.plugins.cluster_capacity_weight import capacity_weights
from argosy.plan.replicas import Preference, _tie_breaks
from argosy.plan.unit import Unit
from argosy.plan.webster import apportioned


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    demand = demand_of(unit, fleet, rows)
    weights = np.maximum(fleet.column(unit.weights or capacity_weights(unit, fleet, fleet.names_of(rows)))[rows], 0)
    # A cluster without weight runs its minimum and no more.
    demand = demand._replace(most=np.where(weights == 0, np.minimum(demand.most, demand.least), demand.most))
    plan, overflow = planned(demand, partial(apportioned, weights=weights, ties=_ties(unit, fleet, rows)))
    return Division(plan, overflow, steps(demand))


def _ties(unit: Unit, fleet: Fleet, rows: Rows) -> Column:
    """By the hash of cluster and workload, so that remainders of different workloads fall on different clusters."""
    names = fleet.names_of(rows)
    hashes = _tie_breaks(dict.fromkeys(names, Preference()), unit.key)
    return np.array([hashes[name] for name in names], dtype=np.int64) << 24 | rows


REPLICAS = Replicas("Webster", divide)
