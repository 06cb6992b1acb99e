"""The weighted planner asked in names: what tests and recorded cases state, as the columns it works on and back."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from argosy.fleet.snapshot import LARGEST
from argosy.kube.hashing import fnv1_32
from argosy.plan.replicas.demand import Demand
from argosy.plan.replicas.weighted import plan_replicas as plan_columns
from argosy.plan.replicas.weighted import tie_breaks

Preference = tuple[int, int | None, int]
"""Minimum, maximum or None, weight."""


class ReplicaPlan(NamedTuple):
    replicas: dict[str, int]
    overflow: dict[str, int]

    def total(self, cluster: str) -> int:
        return self.replicas.get(cluster, 0) + self.overflow.get(cluster, 0)


def plan_replicas(
    preferences: Mapping[str, Preference],
    total: int,
    clusters: Iterable[str],
    *,
    key: str,
    current: Mapping[str, int],
    estimated_capacity: Mapping[str, int],
    limited_capacity: Mapping[str, int],
    avoid_disruption: bool,
    keep_unschedulable: bool,
) -> ReplicaPlan:
    """The preference named `*` serves every cluster that has none of its own; one with neither does not appear."""
    default = preferences.get("*")
    stated = {name: pref for name in sorted(clusters) if (pref := preferences.get(name, default)) is not None}

    def column(numbers: Iterable[int | None], default: int = LARGEST) -> np.ndarray:
        return np.array([default if number is None else number for number in numbers], dtype=np.int64)

    demand = Demand(
        total=max(total, 0),
        current=column(current.get(name, 0) for name in stated),
        least=column(pref[0] for pref in stated.values()),
        most=column(pref[1] for pref in stated.values()),
        limited=column(limited_capacity.get(name) for name in stated),
        estimated=column(estimated_capacity.get(name) for name in stated),
        avoid_disruption=avoid_disruption,
        keep_unschedulable=keep_unschedulable,
    )
    hashes = np.array([fnv1_32(name.encode()) for name in stated], dtype=np.uint32)
    weights = column(pref[2] for pref in stated.values())
    replicas, overflow = plan_columns(demand, weights, tie_breaks(hashes, key))
    return ReplicaPlan(
        dict(zip(stated, replicas.tolist(), strict=True)),
        {name: number for name, number in zip(stated, overflow.tolist(), strict=True) if number},
    )
