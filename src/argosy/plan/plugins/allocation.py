"""Allocation: what the resource score plugins share: requested and allocatable amounts of each relevant resource."""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np

from argosy.fleet.snapshot import CPU, MEMORY, Column, Fleet
from argosy.plan.scheduling.unit import EPHEMERAL_STORAGE, Unit

#: Amounts above this are scaled down together, so that a percentage of them fits 64 bits.
_LARGEST = 2**55


class Allocation(NamedTuple):
    """One resource over all clusters: capacity, and what would be taken with the unit placed."""

    resource: str
    allocatable: Column
    requested: Column


def asked(unit: Unit) -> Hashable:
    """What a score of this module's plugins depends on besides the fleet: objects that ask for the same score the same."""
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
        # A member may report more free than it holds while nodes come and go; that is nothing in use.
        used = np.maximum(allocatable - fleet.available(resource), 0)
        requested = used + request
        if int(allocatable.max(initial=0)) > _LARGEST:
            allocatable, requested = allocatable >> 8, requested >> 8
        yield Allocation(resource, allocatable, requested)
