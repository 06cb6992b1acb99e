"""Spread search: the first choice of clusters that satisfies several spread constraints, found by trying.

Taking the best cluster of each domain may miss every choice that satisfies all constraints: the best region may have too few
zones. Clusters that are in the same domains are alike and form a group; the search tries how many to take of each group. It
tries groups in the order given, and prefers to take one of a group to taking none, so the same input has the same answer.
It looks for enough clusters only; others are added later.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Bounds", "Group", "TooManyGroups", "enough"]

#: Steps before the search gives up: some 20 ms, since decisions share the event loop.
_MOST_STEPS: Final = 1_500


class TooManyGroups(Exception):
    """Nothing was found, and there are too many possibilities to try all."""

    def __init__(self, groups: int) -> None:
        super().__init__(f"{groups} groups of clusters are too many to try all choices")
        self.groups = groups


class Bounds(NamedTuple):
    """Of one constraint."""

    least: int
    most: int | None
    skew: int | None


class Group(NamedTuple):
    """The domain of its clusters in each constraint, and how many clusters there are."""

    domains: tuple[int, ...]
    size: int


_Chosen = tuple[Any, int, int]
"""What was chosen before (None at first), a group, and how many of it."""


class _Step(NamedTuple):
    #: The next group to decide about, and how many more clusters may be taken.
    group: int
    room: int
    #: For each constraint the domains in use, as bits, and the clusters in each.
    used: tuple[int, ...]
    counts: tuple[Mapping[int, int], ...]
    chosen: _Chosen | None


def enough(bounds: Sequence[Bounds], groups: Sequence[Group], room: int) -> dict[int, int] | None:
    """How many clusters to take of which groups, at most `room` in all; None if no choice satisfies all constraints.

    Raises TooManyGroups if that remains open.
    """
    if any(bound.least > len({group.domains[at] for group in groups}) for at, bound in enumerate(bounds)):
        return None
    search = _Search(bounds, groups)
    none: Mapping[int, int] = {}
    steps = [_Step(0, room, (0,) * len(bounds), (none,) * len(bounds), None)]
    for _ in range(_MOST_STEPS):
        if not steps:
            return None
        step = steps.pop()
        if search.satisfied(step):
            return dict(_unlinked(step.chosen))
        if step.group < len(groups) and search.is_open(step):
            steps.extend(reversed([search.taking(step, number) for number in search.numbers(step)]))
    raise TooManyGroups(len(groups))


class _Search:
    def __init__(self, bounds: Sequence[Bounds], groups: Sequence[Group]) -> None:
        self._bounds, self._groups = bounds, groups
        self._skewed = any(bound.skew is not None for bound in bounds)
        #: For each group and constraint: the domains of this group and of those after it, and their clusters.
        self._later = [(0,) * len(bounds)]
        self._clusters: list[tuple[Mapping[int, int], ...]] = [tuple({} for _ in bounds)]
        for group in reversed(groups):
            later, clusters = self._later[-1], self._clusters[-1]
            self._later.append(tuple(bits | 1 << domain for bits, domain in zip(later, group.domains, strict=True)))
            self._clusters.append(_added(clusters, group.domains, group.size) if self._skewed else clusters)
        self._later.reverse()
        self._clusters.reverse()

    def satisfied(self, step: _Step) -> bool:
        return all(
            bound.least <= used.bit_count() and (bound.skew is None or _skew(counts) <= bound.skew)
            for bound, used, counts in zip(self._bounds, step.used, step.counts, strict=True)
        )

    def is_open(self, step: _Step) -> bool:
        """Whether the remaining groups may lead to a choice."""
        for bound, used, later in zip(self._bounds, step.used, self._later[step.group], strict=True):
            missing = bound.least - used.bit_count()
            if missing > step.room or (used | later).bit_count() < bound.least:
                return False
        return not self._skewed or self._can_even_out(step)

    def _can_even_out(self, step: _Step) -> bool:
        for bound, counts, later in zip(self._bounds, step.counts, self._clusters[step.group], strict=True):
            if bound.skew is None or not counts:
                continue
            floor = max(counts.values()) - bound.skew
            lacking = {domain: floor - count for domain, count in counts.items() if count < floor}
            if sum(lacking.values()) > step.room:
                return False
            if any(more > later.get(domain, 0) for domain, more in lacking.items()):
                return False
        return True

    def numbers(self, step: _Step) -> list[int]:
        """How many clusters to try to take of the next group, in order."""
        group = self._groups[step.group]
        fits = step.room > 0 and all(
            bound.most is None or used >> domain & 1 or used.bit_count() < bound.most
            for bound, used, domain in zip(self._bounds, step.used, group.domains, strict=True)
        )
        if not fits:
            return [0]
        if self._skewed:
            return [1, 0, *range(2, min(group.size, step.room) + 1)]
        # Without skews, a cluster is of use only in a new domain of a constraint that has too few.
        useful = any(
            used.bit_count() < bound.least and not used >> domain & 1
            for bound, used, domain in zip(self._bounds, step.used, group.domains, strict=True)
        )
        return [1, 0] if useful else [0]

    def taking(self, step: _Step, number: int) -> _Step:
        if not number:
            return step._replace(group=step.group + 1)
        domains = self._groups[step.group].domains
        return _Step(
            step.group + 1,
            step.room - number,
            tuple(used | 1 << domain for used, domain in zip(step.used, domains, strict=True)),
            _added(step.counts, domains, number) if self._skewed else step.counts,
            (step.chosen, step.group, number),
        )


def _added(counts: Sequence[Mapping[int, int]], domains: Sequence[int], number: int) -> tuple[Mapping[int, int], ...]:
    return tuple({**each, domain: each.get(domain, 0) + number} for each, domain in zip(counts, domains, strict=True))


def _skew(counts: Mapping[int, int]) -> int:
    return max(counts.values(), default=0) - min(counts.values(), default=0)


def _unlinked(chosen: _Chosen | None) -> Iterator[tuple[int, int]]:
    while chosen is not None:
        chosen, group, number = chosen
        yield group, number
