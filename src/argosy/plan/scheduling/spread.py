"""Spread: which clusters to select, and how many replicas to give each domain, so that spread constraints are satisfied.

Numbers only; the SpreadConstraints plugin defines domains and what happens if a constraint cannot be satisfied.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence

import msgspec

from argosy.plan.scheduling.spread_search import Bounds, Group, enough

__all__ = ["Limit", "choose", "domain_targets"]


class Limit(msgspec.Struct, frozen=True):
    """One constraint over candidates, best first: their domains (-1: none), and the bounds on domains and skew."""

    domains: Sequence[int]
    least: int = 0
    most: int | None = None
    skew: int | None = None
    #: Whether it may be violated in favour of more clusters.
    soft: bool = False


def choose(limits: Sequence[Limit], candidates: int, most: int | None = None, settled: Iterable[int] = ()) -> list[int]:
    """Positions of the clusters to take, best first, at most `most`. All bounds are kept except the minimum of domains.

    Domains of `settled` candidates are used before others, so that a better score elsewhere does not move a whole domain. The
    minimums are satisfied whenever that is possible, too; of soft constraints, earlier ones come first. Raises TooManyGroups if
    it remains open whether it is possible.
    """
    room = candidates if most is None else min(most, candidates)
    if room == candidates and not any(map(_excludes, limits)):
        return list(range(candidates))
    choice = _Choice(limits, room, frozenset(settled))
    choice.open_domains()
    choice.fill()
    if not choice.satisfies_minimums():
        another = _Choice(limits, room, frozenset(settled))
        if another.begin_with_enough():
            another.fill()
            choice = another
    return sorted(choice.taken)


def _excludes(limit: Limit) -> bool:
    """Whether the constraint could exclude a candidate."""
    return limit.most is not None or limit.skew is not None or (not limit.soft and min(limit.domains, default=0) < 0)


class _Tally:
    """For one constraint: the number of taken clusters of each domain in use."""

    __slots__ = ("_at_floor", "_floor", "_most", "_skew", "counts", "limit", "number")

    def __init__(self, number: int, limit: Limit) -> None:
        self.number, self.limit = number, limit
        self.counts: dict[int, int] = {}
        self._most, self._skew = limit.most, limit.skew
        self._floor = self._at_floor = 0

    def may_use(self, domain: int) -> bool:
        """Whether the domain is in use already, or one more is allowed."""
        return domain < 0 or self._most is None or domain in self.counts or len(self.counts) < self._most

    def may_add(self, domain: int) -> bool:
        """Whether one more cluster of this domain violates nothing."""
        if domain < 0:
            return True
        count = self.counts.get(domain)
        if count is None:
            within = self._skew is None or max(self.counts.values(), default=1) - 1 <= self._skew
            return within and self.may_use(domain)
        return self._skew is None or count + 1 - self._floor <= self._skew

    def add(self, domain: int) -> bool:
        """Adds a cluster. Returns whether the lowest count rose, so that other domains may grow now."""
        if domain < 0:
            return False
        count = self.counts.get(domain, 0) + 1
        self.counts[domain] = count
        if count == 1:
            self._at_floor = self._at_floor + 1 if self._floor == 1 else 1
            self._floor = 1
            return False
        if count - 1 > self._floor:
            return False
        self._at_floor -= 1
        if self._at_floor:
            return False
        self._floor = count
        self._at_floor = sum(number == count for number in self.counts.values())
        return True


_Cell = tuple[int, ...]


class _Choice:
    """The state of a choice: the taken clusters, and their number per domain."""

    def __init__(self, limits: Sequence[Limit], room: int, settled: frozenset[int]) -> None:
        self.tallies = [_Tally(number, limit) for number, limit in enumerate(limits)]
        self._hard = [tally for tally in self.tallies if not tally.limit.soft]
        self.taken: set[int] = set()
        self._room = room
        self._settled = settled
        #: Candidates in the same domains of all constraints, the best last.
        self._alike: dict[_Cell, list[int]] = {}
        for position, cell in enumerate(zip(*(limit.domains for limit in limits), strict=True)):
            self._alike.setdefault(cell, []).append(position)
        for cell in list(self._alike):
            if any(domain < 0 and not limit.soft for domain, limit in zip(cell, limits, strict=True)):
                del self._alike[cell]
        for positions in self._alike.values():
            positions.reverse()

    def open_domains(self) -> None:
        for number in range(len(self.tallies)):
            self._open_domains_of(number)

    def _open_domains_of(self, number: int) -> None:
        """Takes one cluster in each domain that a constraint needs, domains in use first."""
        tally = self.tallies[number]
        limit = tally.limit
        in_use = {limit.domains[position] for position in self._settled}
        if limit.skew is not None:
            # As many as allowed: the skew is between domains in use.
            wanted = len(limit.domains)
        else:
            wanted = max(limit.least, min(len(in_use), limit.most or 0))
        for head, cell in sorted(self._heads(), key=lambda item: (item[1][number] not in in_use, item)):
            if len(tally.counts) >= wanted or len(self.taken) >= self._room:
                return
            domain = cell[number]
            if domain < 0 or domain in tally.counts or head in self.taken:
                continue
            if all(other.may_add(code) for other, code in zip(self.tallies, cell, strict=True)):
                self._take(cell)

    def satisfies_minimums(self) -> bool:
        return all(len(tally.counts) >= tally.limit.least for tally in self._hard)

    def begin_with_enough(self) -> bool:
        """Takes clusters that satisfy all hard constraints, if there are such; those of settled groups first."""
        groups: dict[_Cell, list[_Cell]] = {}
        for _, cell in sorted((self._preference(cell), cell) for cell in self._alike):
            groups.setdefault(tuple(cell[tally.number] for tally in self._hard), []).append(cell)
        bounds = [Bounds(tally.limit.least, tally.limit.most, tally.limit.skew) for tally in self._hard]
        sizes = [sum(len(self._alike[cell]) for cell in cells) for cells in groups.values()]
        found = enough(bounds, [Group(*each) for each in zip(groups, sizes, strict=True)], self._room)
        if found is None:
            return False
        for number, cells in enumerate(groups.values()):
            for _ in range(found.get(number, 0)):
                self._take(min((cell for cell in cells if self._alike[cell]), key=self._preference))
        if all(bound.skew is None for bound in bounds):
            self.open_domains()
        return True

    def _preference(self, cell: _Cell) -> tuple[bool, int]:
        """For groups that are not empty."""
        positions = self._alike[cell]
        return self._settled.isdisjoint(positions), positions[-1]

    def fill(self) -> None:
        """First within all constraints, then soft ones give way."""
        self._fill(self.tallies)
        if len(self._hard) < len(self.tallies):
            self._fill(self._hard)

    def _fill(self, enforced: Sequence[_Tally]) -> None:
        """Takes candidates, best first, as long as no enforced constraint is violated."""
        heads = self._heads()
        heapq.heapify(heads)
        waiting: list[tuple[int, _Cell]] = []
        while heads and len(self.taken) < self._room:
            head = heapq.heappop(heads)
            cell = head[1]
            for tally in enforced:
                if not tally.may_add(cell[tally.number]):
                    waiting.append(head)
                    break
            else:
                rose = self._take(cell)
                if self._alike[cell]:
                    heapq.heappush(heads, (self._alike[cell][-1], cell))
                if rose and waiting:
                    heads += waiting
                    heapq.heapify(heads)
                    waiting = []

    def _heads(self) -> list[tuple[int, _Cell]]:
        """The best remaining candidate of each cell."""
        return [(positions[-1], cell) for cell, positions in self._alike.items() if positions]

    def _take(self, cell: _Cell) -> bool:
        self.taken.add(self._alike[cell].pop())
        rose = False
        for tally, domain in zip(self.tallies, cell, strict=True):
            rose |= tally.add(domain)
        return rose


def domain_targets(
    wanted: Sequence[int], total: int, room: Sequence[int], *, skew: int | None, least: int = 0, soft: bool = False
) -> list[int]:
    """Replicas for each domain, as near to `wanted` as the bounds allow; in all less than `total` only if the bounds require.

    No domain gets more than its room. `least` domains get at least one, as far as there are replicas and domains with room.
    Two domains differ by at most `skew`; a soft skew gives way as far as the total needs.
    """
    # In case of a choice, domains with most wanted come first, then those with most room.
    order = sorted(range(len(room)), key=lambda domain: (-wanted[domain], -room[domain]))
    held = set([domain for domain in order if room[domain] > 0][: min(least, total)])
    floor = [int(domain in held) for domain in range(len(room))]
    total = min(total, sum(room))
    if skew is None:
        return _nearest(wanted, total, floor, room, order)
    lowest = min(room)
    if sum(min(most, lowest + skew) for most in room) < total:
        if not soft:
            return [min(most, lowest + skew) for most in room]
        skew = _first(lambda more: sum(min(most, lowest + more) for most in room) >= total, skew, max(room))
    highest_base = min(lowest, total // len(room))
    lowest_base = _first(lambda base: sum(min(most, base + skew) for most in room) >= total, 0, highest_base)

    def plan(base: int) -> list[int]:
        low, high = [max(base, one) for one in floor], [min(most, base + skew) for most in room]
        return _nearest(wanted, total, low, high, order)

    def moves(base: int) -> int:
        return sum(abs(after - before) for after, before in zip(plan(base), wanted, strict=True))

    # The number of moves is convex in the base.
    return plan(_first(lambda base: moves(base) <= moves(base + 1), lowest_base, highest_base))


def _nearest(
    wanted: Sequence[int], total: int, low: Sequence[int], high: Sequence[int], order: Sequence[int]
) -> list[int]:
    """Numbers within their bounds that add up to the total, near to the wanted ones; the rest evens them out."""
    plan = [min(max(number, least), most) for number, least, most in zip(wanted, low, high, strict=True)]
    missing = total - sum(plan)
    if missing > 0:
        return _raised(plan, missing, high, order)
    if missing < 0:
        lowered = _raised([-number for number in plan], -missing, [-least for least in low], order[::-1])
        return [-number for number in lowered]
    return plan


def _raised(plan: list[int], by: int, high: Sequence[int], order: Sequence[int]) -> list[int]:
    """Raises the lowest first, equals in the given order."""

    def at(level: int) -> list[int]:
        return [max(number, min(most, level)) for number, most in zip(plan, high, strict=True)]

    goal = sum(plan) + by
    level = _first(lambda height: sum(at(height)) >= goal, min(plan), max(high))
    raised = at(level - 1)
    left = goal - sum(raised)
    full = at(level)
    for domain in [domain for domain in order if raised[domain] < full[domain]][:left]:
        raised[domain] += 1
    return raised


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number for which `holds` is true, if it is true for all above; `high` if it is true for none below."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
