"""ClusterCapacityWeight: divide replicas by weight, the policy's own or ones that follow the clusters' capacity."""

import numpy as np

from argosy.fleet.katalyst import RECLAIMED_MILLICPU
from argosy.fleet.snapshot import CPU, GPU, MEMORY, Column, Fleet, Rows
from argosy.plan.plugins.rules import compute_power
from argosy.plan.replicas.demand import Demand, demand_of, pods_assured, replicas_today, steps
from argosy.plan.replicas.weighted import plan_replicas, stays, tie_breaks
from argosy.plan.replicas.weights import dynamic_weights, level_weights
from argosy.plan.scheduling.framework import Division, FrameworkError, Replicas
from argosy.plan.scheduling.unit import Unit


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    # In the order of names, whatever the order of selection.
    named = np.sort(rows)
    demand = demand_of(unit, fleet, named)
    weights, told = weights_of(unit, fleet, named)
    if stays(demand, weights):
        replicas, overflow = demand.current, fleet.zeros[: len(named)]
    else:
        replicas, overflow = plan_replicas(demand, weights, tie_breaks(fleet.name_hashes[named], unit.key))
        if not unit.weights:
            replicas, overflow = _with_the_homeless(demand, replicas, overflow)
    return Division(_as_asked(replicas, named, rows), _as_asked(overflow, named, rows), (told, *steps(unit, demand)))


def _with_the_homeless(demand: Demand, replicas: Column, overflow: Column) -> tuple[Column, Column]:
    """What runs today and found no cluster stays where it is: a full cluster weighs nothing, and so was offered nothing.

    If nobody found a cluster, the caller keeps what runs, and says so.
    """
    planned = replicas + overflow
    missing = demand.total - int(planned.sum())
    if missing <= 0 or not planned.any():
        return replicas, overflow
    homeless = np.maximum(np.minimum(demand.current, demand.ceilings) - planned, 0)
    staying = np.minimum(np.maximum(missing - (homeless.cumsum() - homeless), 0), homeless)
    fitting = np.minimum(staying, np.maximum(demand.estimated - replicas, 0))
    return replicas + fitting, overflow + staying - fitting


def weights_of(unit: Unit, fleet: Fleet, rows: Rows) -> tuple[Column, str]:
    """The weights of the clusters at these rows (in the order of names), and their origin."""
    if unit.weights:
        return fleet.column(unit.weights)[rows], "weights are those of the policy"
    weights, told = _by_capacity(unit, fleet, rows)
    if unit.rules.within_available:
        # Without any weight, what runs in a full cluster, or has room in one that weighs nothing, would go elsewhere.
        holds = fleet.column(replicas_today(unit))[rows] + pods_assured(unit, fleet, rows)
        weights = np.where(holds > 0, np.maximum(weights, 1), 0)
    return weights, told


def _by_capacity(unit: Unit, fleet: Fleet, rows: Rows) -> tuple[Column, str]:
    resource = weighed_resource(unit)
    if resource == CPU and compute_power.counts_power(unit):
        told = "weights follow free cpu by its power"
        question = ("weights by power", resource, rows.tobytes())
        weights = fleet.remembered(question, lambda: dynamic_weights(*_effective_cores(unit, fleet, rows)))
        return weights, told
    if unit.rules.within_available:
        added = (unit.desired_replicas or 0) - sum(number or 0 for number in unit.current.values())
        per_replica = unit.pod_request.milli_cpu if resource == CPU else unit.request.scalars.get(resource, 0)
        if added > 0 and per_replica > 0:
            fits = pods_assured(unit, fleet, rows) > 0
            held, free = fleet.allocatable(resource)[rows], fleet.free(resource)[rows]
            weights = level_weights(held, np.where(fits, free, -held), added * per_replica)
            return weights, f"weights lead to the same level of {resource} everywhere"
    # Objects that can be placed in the same clusters share the weights.
    question = ("weights", resource, rows.tobytes())
    weights = fleet.remembered(question, lambda: dynamic_weights(*amounts(fleet, rows, resource)))
    return weights, f"weights follow free {resource}"


def weighed_resource(unit: Unit) -> str:
    """The resource that capacity is measured by: the scarcest one the unit requests."""
    for resource in (GPU, RECLAIMED_MILLICPU):
        if unit.request.scalars.get(resource):
            return resource
    return CPU


def amounts(fleet: Fleet, rows: Rows, resource: str) -> tuple[Column, Column]:
    """Allocatable and available of the clusters at these rows, in whole units: a started core counts as one.

    A cluster that does not report cpu, memory or GPUs has none. Any other resource must be reported by all of them.
    """
    if resource not in (CPU, MEMORY, GPU) and not fleet.reports(resource)[rows].all():
        raise FrameworkError(f"no {resource} resource")
    allocatable, available = fleet.allocatable(resource)[rows], fleet.free(resource)[rows]
    if resource == CPU:
        return -(-allocatable // 1000), -(-available // 1000)
    return allocatable, available


def _effective_cores(unit: Unit, fleet: Fleet, rows: Rows) -> tuple[Column, Column]:
    """Allocatable and available in whole cores of the fleet's reference: a started core counts as one."""
    allocatable, available = fleet.allocatable(CPU), fleet.free(CPU)
    return (
        -(-compute_power.effective(unit, fleet, allocatable)[rows] // 1000),
        -(-compute_power.effective(unit, fleet, available)[rows] // 1000),
    )


def _as_asked(column: Column, named: Rows, rows: Rows) -> Column:
    whole = np.empty(int(named[-1]) + 1 if len(named) else 0, dtype=np.int64)
    whole[named] = column
    return whole[rows]


REPLICAS = Replicas("ClusterCapacityWeight", divide)
