"""Reservations: room that decisions have taken and that members' figures do not show yet.

Placed minus observed: for each workload and cluster, the replicas that were placed and do not exist yet, times the requests of
a pod. Derived from stored and observed state, and stored nowhere, so it is right after any restart. Sums are updated with every
change, so that a decision need not iterate over workloads.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from argosy.fleet.capacity import Requests

__all__ = ["NOTHING_HELD", "Copy", "Held", "Reservations", "asked", "outstanding"]

K = TypeVar("K", bound=Hashable)


class Copy(NamedTuple):
    """A workload's copy in one cluster, as far as it is known."""

    #: Replicas that exist, and so are in the cluster's figures.
    replicas: int
    #: The replicas the copy asks for, if it is the last decided version; None while that is still being written.
    wanted: int | None = None


def outstanding(placed: int, copy: Copy | None) -> int:
    """How many replicas are still to come; an unknown copy counts as complete.

    In the member, an override or an autoscaler may ask for fewer than were placed. The rest never comes.
    """
    if copy is None:
        return 0
    return max(asked(placed, copy) - copy.replicas, 0)


def asked(placed: int, copy: Copy | None) -> int:
    """How many replicas the cluster has to hold in the end."""
    return placed if copy is None or copy.wanted is None else min(placed, copy.wanted)


class Held(NamedTuple):
    """A workload's requests, and its replicas by cluster."""

    request: Requests
    placed: Mapping[str, int]

    def at_least(self, request: Requests, placed: Mapping[str, int]) -> "Held":
        """The larger of both, where they differ."""
        return Held(_larger(self.request, request), _larger(self.placed, placed))


NOTHING_HELD = Held({}, {})


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}


class _Workload(NamedTuple):
    request: Requests
    #: Sorted.
    clusters: tuple[str, ...]
    placed: tuple[int, ...]
    #: Only positive numbers.
    coming: dict[str, int]
    #: Replicas that the cluster has to hold, where there are fewer than placed.
    fewer: dict[str, int]

    def asked(self, position: int) -> int:
        return self.fewer.get(self.clusters[position], self.placed[position])


class Reservations(Generic[K]):
    """Fed with changes of placements and copies."""

    def __init__(self) -> None:
        self._workloads: dict[K, _Workload] = {}
        #: The reserved amounts, by resource and cluster, without zeros.
        self.totals: dict[str, dict[str, int]] = {}
        #: What all placements together ask for, whether it runs or not, in the same form.
        self.committed: dict[str, dict[str, int]] = {}
        #: `version` grows with every change of these, `released` with every change that leaves more room.
        self.version = 0
        self.released = 0
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}

    def place(self, key: K, request: Requests, placed: Mapping[str, int], seen: Callable[[str], Copy | None]) -> None:
        """Set a workload's decided replicas by cluster; `seen` gives its copies."""
        clusters = tuple(sorted(name for name, number in placed.items() if number > 0))
        before = self._workloads.get(key)
        if before is not None and (before.request != request or not clusters):
            self.drop(key)
            before = None
        if not clusters or not any(request.values()):
            return
        if len(self._shared) > 4 * len(self._workloads) + 1024:
            self._shared.clear()
        clusters = self._shared.setdefault(clusters, clusters)
        coming = before.coming if before is not None else {}
        held = {name: before.asked(at) for at, name in enumerate(before.clusters)} if before is not None else {}
        workload = _Workload(request, clusters, tuple(placed[name] for name in clusters), coming, {})
        self._workloads[key] = workload
        for cluster in [name for name in coming if name not in clusters]:
            self._reserve(workload, cluster, 0)
        for cluster, number in zip(clusters, workload.placed, strict=True):
            copy = seen(cluster)
            self._reserve(workload, cluster, outstanding(number, copy))
            self._commit(workload, cluster, held.pop(cluster, 0), number, copy)
        for cluster, number in held.items():
            self._add(self.committed, workload.request, cluster, -number)

    def observe(self, key: K, cluster: str, copy: Copy | None) -> None:
        """A workload's copy in one cluster has changed."""
        workload = self._workloads.get(key)
        if workload is None:
            return
        position = bisect_left(workload.clusters, cluster)
        if position < len(workload.clusters) and workload.clusters[position] == cluster:
            self._observe(workload, position, copy)

    def observe_all(self, key: K, seen: Callable[[str], Copy | None]) -> None:
        """All copies of a workload may have changed."""
        workload = self._workloads.get(key)
        if workload is not None:
            for position, cluster in enumerate(workload.clusters):
                self._observe(workload, position, seen(cluster))

    def drop(self, key: K) -> None:
        """The workload is gone, or placed nowhere."""
        workload = self._workloads.pop(key, None)
        if workload is not None:
            for cluster in list(workload.coming):
                self._reserve(workload, cluster, 0)
            for position, cluster in enumerate(workload.clusters):
                self._add(self.committed, workload.request, cluster, -workload.asked(position))

    def held(self, key: K) -> "Held":
        """What was decided for a workload before."""
        workload = self._workloads.get(key)
        if workload is None:
            return NOTHING_HELD
        return Held(workload.request, dict(zip(workload.clusters, workload.placed, strict=True)))

    def without(self, key: K) -> dict[str, dict[str, int]]:
        """The totals without those of this workload, which are free for its own decision."""
        own = self._workloads.get(key)
        if own is None or not own.coming:
            return self.totals
        others = dict(self.totals)
        for resource, amount in own.request.items():
            if amount:
                column = dict(others[resource])
                for cluster, number in own.coming.items():
                    column[cluster] -= number * amount
                others[resource] = column
        return others

    def _observe(self, workload: _Workload, position: int, copy: Copy | None) -> None:
        cluster, number, before = workload.clusters[position], workload.placed[position], workload.asked(position)
        self._reserve(workload, cluster, outstanding(number, copy))
        self._commit(workload, cluster, before, number, copy)

    def _reserve(self, workload: _Workload, cluster: str, number: int) -> None:
        change = number - workload.coming.get(cluster, 0)
        if not change:
            return
        if number:
            workload.coming[cluster] = number
        else:
            del workload.coming[cluster]
        self._add(self.totals, workload.request, cluster, change)

    def _commit(self, workload: _Workload, cluster: str, before: int, placed: int, copy: Copy | None) -> None:
        number = asked(placed, copy)
        if number < placed:
            workload.fewer[cluster] = number
        else:
            workload.fewer.pop(cluster, None)
        if number != before:
            self._add(self.committed, workload.request, cluster, number - before)

    def _add(self, sums: dict[str, dict[str, int]], request: Requests, cluster: str, replicas: int) -> None:
        self.version += 1
        self.released += replicas < 0
        for resource, amount in request.items():
            if not amount:
                continue
            column = sums.setdefault(resource, {})
            total = column.get(cluster, 0) + replicas * amount
            if total:
                column[cluster] = total
                continue
            column.pop(cluster, None)
            if not column:
                del sums[resource]
