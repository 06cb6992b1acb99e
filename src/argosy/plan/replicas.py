"""The weighted replica planner: how many replicas each selected cluster runs.

Arithmetic only: it knows preferences (minimum, maximum, weight), the present distribution and capacities, and
nothing of objects, policies or the fleet. All numbers are Python integers, so weights of any size divide exactly.

Two ideas. The *desired* distribution divides by weight after serving the minimums, whatever runs today. With
`avoid_disruption` the plan then only walks from the present towards it: scaling in stops replicas only where there are
more than desired, scaling out starts them only where there are fewer, and nothing moves.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
import numpy as np

from argosy.kube.hashing import fnv1_32

__all__ = ["ANY_CLUSTER", "Preference", "ReplicaPlan", "plan_replicas"]

ANY_CLUSTER = "*"
"""The preference under this name serves every cluster that has none of its own."""

_FNV_PRIME = np.uint32(16777619)


class Preference(msgspec.Struct, frozen=True):
    """What is wanted of one cluster. No maximum means unbounded."""

    min_replicas: int = 0
    max_replicas: int | None = None
    weight: int = 0


class ReplicaPlan(msgspec.Struct, frozen=True):
    """Replicas per cluster (zeros included), and those kept beyond a cluster's estimated capacity."""

    replicas: dict[str, int]
    overflow: dict[str, int]

    def total(self, cluster: str) -> int:
        """What the cluster is told to run."""
        return self.replicas.get(cluster, 0) + self.overflow.get(cluster, 0)


# One cluster's part in a division: (-weight, tie-break, cluster, minimum, maximum, limited, estimated); None = no limit.
# A plain tuple because it sorts by itself into the order of service, heavier clusters first, and costs little to make.
_Share = tuple[int, int, str, int, int | None, int | None, int | None]


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
    """Divide `total` replicas over `clusters`.

    `key` names the workload and decides ties, so that remainders of different workloads fall on different clusters.
    `estimated_capacity` is soft (what did not fit comes back as overflow), `limited_capacity` is hard. A cluster with
    neither an own preference nor the `*` one does not appear in the result. The order of the inputs is irrelevant.
    """
    default = preferences.get(ANY_CLUSTER)
    wanted = {name: pref for name in clusters if (pref := preferences.get(name, default)) is not None}
    ties = _tie_breaks(wanted, key)
    limited, estimated = limited_capacity.get, estimated_capacity.get
    shares: list[_Share] = [
        (-pref.weight, ties[name], name, pref.min_replicas, pref.max_replicas, limited(name), estimated(name))
        for name, pref in wanted.items()
    ]
    desired, overflow, homeless = _divide(shares, total)
    if not avoid_disruption:
        # The overflow stays even where it is not to be kept: dropping it would raise the estimate again, the next plan
        # would put the replicas back, and the two plans would alternate for ever.
        return ReplicaPlan(desired, overflow)
    if not keep_unschedulable and overflow:
        overflow = {name: kept for name, surplus in overflow.items() if (kept := min(surplus, homeless)) > 0}

    present = {name: _present(current.get(name, 0), lim, est) for _, _, name, _, _, lim, est in shares}
    change = sum(desired.values()) - sum(present.values())
    if change < 0:
        surplus: list[_Share] = [
            (desired[name] - have, ties[name], name, 0, have, None, None)
            for name, have in present.items()
            if have > desired[name]
        ]
        stopped, _, _ = _divide(surplus, -change)
        present.update((name, present[name] - number) for name, number in stopped.items())
    elif change > 0:
        room: list[_Share] = [
            (have - desired[name], ties[name], name, 0, None if most is None else most - have, None, None)
            for _, _, name, _, most, _, _ in shares
            if (have := present[name]) < desired[name]
        ]
        started, _, _ = _divide(room, change)
        present.update((name, present[name] + number) for name, number in started.items())
    return ReplicaPlan(present, overflow)


def _divide(shares: list[_Share], total: int) -> tuple[dict[str, int], dict[str, int], int]:
    """Minimums first, then by weight in rounds until nothing is left or every cluster is full.

    Returns the replicas and overflow per cluster, and how many replicas found no home.
    """
    shares.sort()
    plan: dict[str, int] = {}
    overflow: dict[str, int] = {}
    remaining = max(total, 0)
    for _, _, name, minimum, _, limited, estimated in shares:
        given = minimum if minimum < remaining else remaining
        if limited is not None and limited < given:
            given = limited
        if estimated is not None and estimated < given:
            overflow[name] = given - estimated
            given = estimated
        plan[name] = given
        remaining -= given

    active = shares
    progressed = True
    while progressed and remaining > 0:
        weights = sum([share[0] for share in active])  # negated, like every weight here
        if weights >= 0:
            break
        progressed = False
        pool = remaining
        not_full = []
        for share in active:
            weight, _, name, _, maximum, limited, estimated = share
            before = plan[name]
            extra = -(-pool * weight // weights)
            after = before + (extra if extra < remaining else remaining)
            full = False
            if maximum is not None and after > maximum:
                after, full = maximum, True
            if limited is not None and after > limited:
                after, full = limited, True
            if estimated is not None and after > estimated:
                overflow[name] = overflow.get(name, 0) + after - estimated
                after, full = estimated, True
            if not full:
                not_full.append(share)
            if after != before:
                progressed = progressed or after > before
                remaining -= after - before
                plan[name] = after
            if remaining <= 0:
                break
        active = not_full
    return plan, overflow, remaining


def _present(running: int, limited: int | None, estimated: int | None) -> int:
    """What runs today as far as the cluster can hold it."""
    if limited is not None and limited < running:
        running = limited
    if estimated is not None and estimated < running:
        running = estimated
    return running


def _tie_breaks(wanted: Mapping[str, Preference], key: str) -> dict[str, int]:
    """32-bit FNV-1 of cluster name followed by key, for all clusters at once (the key is the same for all)."""
    hashes = np.array([_hash_of_name(name) for name in wanted], dtype=np.uint32)
    for byte in key.encode():
        hashes *= _FNV_PRIME
        hashes ^= byte
    return dict(zip(wanted, hashes.tolist(), strict=True))


@lru_cache(maxsize=4096)
def _hash_of_name(name: str) -> int:
    return fnv1_32(name.encode())
