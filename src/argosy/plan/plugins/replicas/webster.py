"""Webster: each cluster as near to its share by weight as whole replicas allow. Weights are the policy's, or by capacity."""

from functools import partial

import numpy as np

from argosy.fleet.snapshot import Column, Fleet, Rows
from argosy.plan.plugins.replicas.cluster_capacity_weight import weights_of
from argosy.plan.replicas.demand import demand_of, planned, steps
from argosy.plan.replicas.webster import apportioned
from argosy.plan.replicas.weighted import tie_breaks
from argosy.plan.scheduling.framework import Division, Replicas
from argosy.plan.scheduling.unit import Unit


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    demand = demand_of(unit, fleet, rows)
    named = np.sort(rows)
    weights = np.maximum(weights_of(unit, fleet, named)[0], 0)[np.searchsorted(named, rows)]
    # A cluster without weight runs only its minimum.
    demand = demand._replace(most=np.where(weights == 0, np.minimum(demand.most, demand.least), demand.most))
    plan, overflow = planned(demand, partial(apportioned, weights=weights, ties=_ties(unit, fleet, rows)))
    return Division(plan, overflow, steps(unit, demand))


def _ties(unit: Unit, fleet: Fleet, rows: Rows) -> Column:
    """Order by hash of cluster and workload, so that remainders of different workloads go to different clusters."""
    return tie_breaks(fleet.name_hashes[rows], unit.key) << 24 | rows


REPLICAS = Replicas("Webster", divide)
