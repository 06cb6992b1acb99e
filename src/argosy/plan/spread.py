"""Spread: which clusters to choose, and how many replicas to give each domain, so that spread constraints hold.

Numbers only; what a domain is and what happens when a constraint cannot be held is the SpreadConstraints plugin's matter.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence

import msgspec

__all__ = ["Limit", "choose", "domain_targets"]


class Limit(msgspec.Struct, frozen=True):
    """One constraint over candidates, best first: their domains (-1: none), and the bounds on domains and difference."""

    domains: Sequence[int]
    least: int = 0
    most: int | None = None
    skew: int | None = None
    #: Whether it may be given up for the sake of more clusters.
    soft: bool = False


def choose(limits: Sequence[Limit], candidates: int, most: int | None = None, settled: Iterable[int] = ()) -> list[int]:
    """Positions of the clusters to take, best first, at most `most` of them. All bounds but the least domains are held.

    Domains of `settled` candidates are used before others, so that a better score elsewhere moves no whole domain. One
    constraint alone is held whenever it can be; of several the first are served first.
    """
    choice = _Choice(limits, candidates, candidates if most is None else min(most, candidates), frozenset(settled))
    choice.open_domains()
    choice.fill(range(len(limits)))
    if any(limit.soft for limit in limits):
        choice.fill([number for number, limit in enumerate(limits) if not limit.soft])
    return sorted(choice.taken)


class _Choice:
    """The state of a choice: who is taken, and how many of each domain."""

    def __init__(self, limits: Sequence[Limit], candidates: int, room: int, settled: frozenset[int]) -> None:
        self._limits = limits
        self._room = room
        self._settled = settled
        self.taken: set[int] = set()
        #: By constraint: clusters taken of each domain in use.
        self._counts: list[dict[int, int]] = [{} for _ in limits]
        #: Candidates that are alike to all constraints, best first.
        self._alike: dict[tuple[int, ...], list[int]] = {}
        for position in range(candidates):
            cell = tuple(limit.domains[position] for limit in limits)
            if all(code >= 0 or limit.soft for code, limit in zip(cell, limits, strict=True)):
                self._alike.setdefault(cell, []).append(position)

    def open_domains(self) -> None:
        """One cluster in each of the domains that are wanted, those in use first."""
        for number, limit in enumerate(self._limits):
            in_use = {limit.domains[position] for position in self._settled} - {-1}
            wanted = max(limit.least, min(len(in_use), limit.most or 0))
            if limit.skew is not None:
                # As many as there may be: a difference is one between the domains in use.
                wanted = len(set(limit.domains) - {-1})
            wanted = wanted if limit.most is None else min(wanted, limit.most)
            for preferred in (in_use, None):
                self._open(number, wanted, preferred)

    def _open(self, number: int, wanted: int, among: set[int] | None) -> None:
        every = range(len(self._limits))
        counts = self._counts[number]
        heads = sorted((positions[0], cell) for cell, positions in self._alike.items() if positions)
        for position, cell in heads:
            if len(counts) >= wanted or len(self.taken) >= self._room:
                return
            code = cell[number]
            if code < 0 or code in counts or (among is not None and code not in among):
                continue
            if position not in self.taken and all(self._opens(other, cell[other]) for other in every):
                self._take(position, cell)

    def _opens(self, number: int, code: int) -> bool:
        """Whether a domain is in use already or one more is allowed."""
        most = self._limits[number].most
        return code < 0 or most is None or code in self._counts[number] or len(self._counts[number]) < most

    def fill(self, enforced: Sequence[int]) -> None:
        """Whoever may still be taken without breaking the constraints enforced, the best first."""
        heads = [(positions[0], cell) for cell, positions in self._alike.items() if positions]
        heapq.heapify(heads)
        waiting: list[tuple[int, tuple[int, ...]]] = []
        while heads and len(self.taken) < self._room:
            position, cell = heapq.heappop(heads)
            if not all(self._opens(number, cell[number]) and self._level(number, cell[number]) for number in enforced):
                waiting.append((position, cell))
                continue
            floors = self._floors(enforced)
            self._take(position, cell)
            if self._alike[cell]:
                heapq.heappush(heads, (self._alike[cell][0], cell))
            if waiting and self._floors(enforced) != floors:
                heads += waiting
                heapq.heapify(heads)
                waiting = []

    def _level(self, number: int, code: int) -> bool:
        """Whether one more of this domain keeps the difference."""
        skew, counts = self._limits[number].skew, self._counts[number]
        if skew is None or code < 0 or not counts:
            return True
        if code not in counts:
            return max(counts.values()) - 1 <= skew
        return counts[code] + 1 - min(counts.values()) <= skew

    def _floors(self, enforced: Sequence[int]) -> list[int]:
        return [
            min(self._counts[number].values(), default=0)
            for number in enforced
            if self._limits[number].skew is not None
        ]

    def _take(self, position: int, cell: tuple[int, ...]) -> None:
        self.taken.add(position)
        self._alike[cell].remove(position)
        for counts, code in zip(self._counts, cell, strict=True):
            if code >= 0:
                counts[code] = counts.get(code, 0) + 1


def domain_targets(
    wanted: Sequence[int], total: int, room: Sequence[int], *, skew: int | None, least: int = 0, soft: bool = False
) -> list[int]:
    """Replicas for each domain, as near to `wanted` as the bounds allow; less than `total` in all where they must.

    No domain gets more than its room. `least` domains get one at least, as far as there are replicas and domains with room.
    Two domains differ by `skew` at most; a soft one gives way as far as the total needs.
    """
    floor = _floors(wanted, total, room, least)
    total = min(total, sum(room))
    if skew is None:
        return _nearest(wanted, total, floor, room)
    lowest = min(room)
    if sum(min(most, lowest + skew) for most in room) < total:
        if not soft:
            return [min(most, lowest + skew) for most in room]
        skew = _first(lambda more: sum(min(most, lowest + more) for most in room) >= total, skew, max(room))
    highest_base = min(lowest, total // len(room))
    lowest_base = _first(lambda base: sum(min(most, base + skew) for most in room) >= total, 0, highest_base)

    def plan(base: int) -> list[int]:
        return _nearest(wanted, total, [max(base, one) for one in floor], [min(most, base + skew) for most in room])

    def moves(base: int) -> int:
        return sum(abs(after - before) for after, before in zip(plan(base), wanted, strict=True))

    # The number of moves is convex in the base.
    return plan(_first(lambda base: moves(base) <= moves(base + 1), lowest_base, highest_base))


def _floors(wanted: Sequence[int], total: int, room: Sequence[int], least: int) -> list[int]:
    able = sorted(
        (domain for domain, most in enumerate(room) if most > 0), key=lambda domain: (-wanted[domain], -room[domain])
    )
    held = set(able[: min(least, total)])
    return [int(domain in held) for domain in range(len(room))]


def _nearest(wanted: Sequence[int], total: int, low: Sequence[int], high: Sequence[int]) -> list[int]:
    """Numbers within their bounds that sum to the total, near to those wanted; what is left evens them out."""
    plan = [min(max(number, least), most) for number, least, most in zip(wanted, low, high, strict=True)]
    missing = total - sum(plan)
    if missing > 0:
        return _raised(plan, missing, high, wanted)
    if missing < 0:
        lowered = _raised([-number for number in plan], -missing, [-least for least in low], [-one for one in wanted])
        return [-number for number in lowered]
    return plan


def _raised(plan: list[int], by: int, high: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """The lowest are raised first; of equals those of which more is wanted, then those with more room."""

    def at(level: int) -> list[int]:
        return [max(number, min(most, level)) for number, most in zip(plan, high, strict=True)]

    goal = sum(plan) + by
    level = _first(lambda height: sum(at(height)) >= goal, min(plan), max(high))
    raised = at(level - 1)
    left = goal - sum(raised)
    order = sorted(range(len(plan)), key=lambda domain: (-wanted[domain], -high[domain], domain))
    for domain in [domain for domain in order if raised[domain] < at(level)[domain]][:left]:
        raised[domain] += 1
    return raised


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number for which it holds, which then holds for all above; `high` where it holds for none below."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
