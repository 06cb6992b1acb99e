"""The weighted replica planner: how many replicas each selected cluster runs.

Arithmetic only: it knows preferences (minimum, maximum, weight), the present distribution and capacities, and
nothing of objects, policies or the fleet. All numbers are Python integers, so weights of any size divide exactly.

Two ideas. The *desired* distribution divides by weight after serving the minimums, whatever runs today. With
`avoid_disruption` the plan then only walks from the present towards it: scaling in stops replicas only where there are
more than desired, scaling out starts them only where there are fewer, and nothing moves.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

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


class _Share(NamedTuple):
    """One cluster's part in a division; `None` = unlimited."""

    cluster: str
    minimum: int
    maximum: int | None
    weight: int
    limited: int | None = None
    estimated: int | None = None


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
    rank = _Ranking(wanted, key)
    shares = rank.ordered(
        _Share(name, pref.min_replicas, pref.max_replicas, pref.weight, limited_capacity.get(name), estimated_capacity.get(name))
        for name, pref in wanted.items()
    )
    # Without avoid_disruption, dropping the replicas that could not be scheduled would raise the estimate again and
    # the next plan would put them back: the two plans would alternate for ever.
    desired, overflow, homeless = _divide(shares, total)
    if avoid_disruption and not keep_unschedulable:
        overflow = {name: kept for name, surplus in overflow.items() if (kept := min(surplus, homeless)) > 0}
    if not avoid_disruption:
        return ReplicaPlan(desired, overflow)

    present = {share.cluster: _present(share, current.get(share.cluster, 0)) for share in shares}
    change = sum(desired.values()) - sum(present.values())
    if change < 0:
        surplus = rank.ordered(
            _Share(name, 0, have, have - desired[name]) for name, have in present.items() if desired[name] < have
        )
        stopped, _, _ = _divide(surplus, -change)
        return ReplicaPlan({name: have - stopped.get(name, 0) for name, have in present.items()}, overflow)
    if change > 0:
        room = rank.ordered(
            _Share(share.cluster, 0, _remaining(share.maximum, have), desired[share.cluster] - have)
            for share in shares
            if (have := present[share.cluster]) < desired[share.cluster]
        )
        started, _, _ = _divide(room, change)
        return ReplicaPlan({name: have + started.get(name, 0) for name, have in present.items()}, overflow)
    return ReplicaPlan(present, overflow)


def _divide(shares: Sequence[_Share], total: int) -> tuple[dict[str, int], dict[str, int], int]:
    """Minimums first, then by weight in rounds until nothing is left or every cluster is full.

    Returns the replicas and overflow per cluster, and how many replicas found no home.
    """
    plan: dict[str, int] = {}
    overflow: dict[str, int] = {}
    remaining = max(total, 0)
    for share in shares:
        given = min(share.minimum, remaining)
        if share.limited is not None and share.limited < given:
            given = share.limited
        if share.estimated is not None and share.estimated < given:
            overflow[share.cluster] = given - share.estimated
            given = share.estimated
        plan[share.cluster] = given
        remaining -= given

    active = shares
    progressed = True
    while progressed and remaining > 0:
        weights = sum(share.weight for share in active)
        if weights <= 0:
            break
        progressed = False
        pool = remaining
        not_full = []
        for share in active:
            if remaining <= 0:
                break
            name, _, maximum, weight, limited, estimated = share
            before = plan[name]
            after = before + min(-(-pool * weight // weights), remaining)
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
        active = not_full
    return plan, overflow, remaining


def _present(share: _Share, running: int) -> int:
    """What runs today as far as the cluster can hold it."""
    for cap in (share.limited, share.estimated):
        if cap is not None and cap < running:
            running = cap
    return running


def _remaining(maximum: int | None, have: int) -> int | None:
    return None if maximum is None else maximum - have


class _Ranking:
    """The order in which clusters are served: heavier first, ties by a hash of cluster and workload."""

    __slots__ = ("_hashes", "_key", "_names")

    def __init__(self, names: Iterable[str], key: str) -> None:
        self._names = list(names)
        self._key = key
        self._hashes: dict[str, int] | None = None

    def ordered(self, shares: Iterable[_Share]) -> list[_Share]:
        found = list(shares)
        # Distinct weights need no tie-break, and the hashes are what costs here.
        if len({share.weight for share in found}) == len(found):
            found.sort(key=lambda share: -share.weight)
            return found
        if self._hashes is None:
            self._hashes = dict(zip(self._names, _tie_breaks(self._names, self._key), strict=True))
        hashes = self._hashes
        found.sort(key=lambda share: (-share.weight, hashes[share.cluster], share.cluster))
        return found


def _tie_breaks(names: Sequence[str], key: str) -> list[int]:
    """32-bit FNV-1 of cluster name followed by key, for all clusters at once (the key is the same for all)."""
    hashes = np.array([_hash_of_name(name) for name in names], dtype=np.uint32)
    for byte in key.encode():
        hashes *= _FNV_PRIME
        hashes ^= np.uint32(byte)
    return [int(value) for value in hashes]


@lru_cache(maxsize=4096)
def _hash_of_name(name: str) -> int:
    return fnv1_32(name.encode())
