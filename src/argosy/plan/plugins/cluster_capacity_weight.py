"""ClusterCapacityWeight: divide replicas by weight, the policy's own or ones that follow the clusters' capacity."""

from collections.abc import Mapping, Sequence

import numpy as np

from argosy.fleet.snapshot import CPU, GPU, MEMORY, Fleet, Rows
from argosy.fleet.taints import NO_SCHEDULE
from argosy.plan.framework import Division, FrameworkError, Replicas
from argosy.plan.replicas import Preference, plan_replicas
from argosy.plan.unit import Unit
from argosy.plan.weights import MissingResource, dynamic_weights, reported


def divide(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    clusters = fleet.names_of(rows)
    total = unit.desired_replicas or 0
    # Placed without a number: it was duplicated until now, so the whole count runs there.
    current = {name: total if number is None else number for name, number in unit.current.items()}
    weights = unit.weights or capacity_weights(unit, fleet, clusters)
    repelling = fleet.taints.untolerated(unit.tolerations, NO_SCHEDULE)
    migration, applied = unit.migration_info, unit.applied_migration
    estimated = migration.estimated_capacity if unit.auto_migration and migration is not None else {}
    plan = plan_replicas(
        {
            name: Preference(
                unit.min_replicas.get(name, 0),
                _maximum(unit, name, current.get(name, 0), repelled=bool(repelling[fleet.index[name]])),
                weights.get(name, 0),
            )
            for name in clusters
        },
        total,
        clusters,
        key=unit.key,
        current=current,
        estimated_capacity=_not_negative(estimated),
        limited_capacity=_not_negative(applied.limited_capacity) if applied is not None else {},
        avoid_disruption=unit.avoid_disruption,
        keep_unschedulable=unit.keep_unschedulable,
    )
    return Division(
        np.array([plan.replicas[name] for name in clusters], dtype=np.int64),
        np.array([plan.overflow.get(name, 0) for name in clusters], dtype=np.int64),
    )


def capacity_weights(unit: Unit, fleet: Fleet, clusters: Sequence[str]) -> dict[str, int]:
    """Dynamic weights by GPU where the unit asks for one, else by cores."""
    names = sorted(clusters)
    resource = GPU if unit.request.scalars.get(GPU) else CPU
    try:
        weights = dynamic_weights(*amounts(fleet, names, resource))
    except MissingResource as error:
        raise FrameworkError(str(error)) from None
    return dict(zip(names, weights, strict=True))


def amounts(fleet: Fleet, names: Sequence[str], resource: str) -> tuple[list[int], list[int]]:
    """Allocatable and available of the clusters named, in whole units: a started core counts as one.

    A cluster that says nothing of cpu, memory or GPUs has none; of another resource it must say something.
    """
    rows = [fleet.index[name] for name in names]
    allocatable, available = fleet.allocatable(resource)[rows], fleet.available(resource)[rows]
    if resource == CPU:
        allocatable, available = -(-allocatable // 1000), -(-available // 1000)
    if resource not in (CPU, MEMORY, GPU):
        reported(resource, (1 if present else None for present in fleet.reports(resource)[rows]))
    return allocatable.tolist(), available.tolist()


def _maximum(unit: Unit, name: str, running: int, *, repelled: bool) -> int | None:
    """A cluster with an untolerated NoSchedule taint is here only because it runs some: it gets no more."""
    stated = unit.max_replicas.get(name)
    if repelled and (stated is None or running < stated):
        return running
    return stated


def _not_negative(capacities: Mapping[str, int]) -> dict[str, int]:
    """They come from annotations, where anything may stand."""
    return {name: capacity for name, capacity in capacities.items() if capacity >= 0}


REPLICAS = Replicas("ClusterCapacityWeight", divide)
