"""Allocation: shared by the resource score plugins: how much of each relevant resource is in use, and would be."""

from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

import numpy as np

from argosy.fleet.snapshot import CPU, GPU, MEMORY, Column, Fleet
from argosy.plan.scheduling.framework import MAX_SCORE
from argosy.plan.scheduling.unit import EPHEMERAL_STORAGE, Unit

#: An idle GPU costs more than an idle core.
_WEIGHTS = {GPU: 4}
#: Larger amounts are scaled down together, so that percentages of them fit 64 bits.
_LARGEST = 2**55


class Allocation(NamedTuple):
    """One resource over all clusters: its capacity, and the amount in use with the unit placed."""

    resource: str
    allocatable: Column
    requested: Column


def asked(unit: Unit) -> Hashable:
    """What a score of these plugins depends on besides the fleet: objects with the same requests score the same."""
    request = unit.request
    scalars = tuple(sorted(request.scalars.items()))
    return request.milli_cpu, request.memory, request.ephemeral_storage, scalars


def allocations(unit: Unit, fleet: Fleet) -> Iterator[Allocation]:
    """cpu, memory, and whatever else the unit asks for."""
    wanted = {CPU: unit.request.milli_cpu, MEMORY: unit.request.memory, **unit.request.scalars}
    if unit.request.ephemeral_storage:
        wanted[EPHEMERAL_STORAGE] = unit.request.ephemeral_storage
    for resource, request in wanted.items():
        allocatable = fleet.allocatable(resource)
        # A member may report more free than it has while nodes come and go; then nothing is in use.
        used = np.maximum(allocatable - fleet.available(resource), 0)
        requested = used + request
        if int(allocatable.max(initial=0)) > _LARGEST:
            allocatable, requested = allocatable >> 8, requested >> 8
        yield Allocation(resource, allocatable, requested)


def weighted_percentage(unit: Unit, fleet: Fleet, amount: Callable[[Allocation], Column]) -> Column:
    """This amount in per cent of each resource's capacity, averaged by weight; integer division throughout.

    A resource with more requested than its capacity counts as 0.
    """
    total = np.zeros(len(fleet), dtype=np.int64)
    weights = 0
    for allocation in allocations(unit, fleet):
        weight = _WEIGHTS.get(allocation.resource, 1)
        counted = np.where(allocation.requested > allocation.allocatable, 0, amount(allocation))
        total += weight * (counted * MAX_SCORE // np.maximum(allocation.allocatable, 1))
        weights += weight
    return total // weights
