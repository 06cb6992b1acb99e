"""Ordinals: which cluster runs which pods of a StatefulSet whose replicas are divided.

Each cluster runs one range of ordinals (`spec.ordinals.start` and its replicas); together they are the ordinals the source
asks for, each in one cluster. An ordinal has an identity and a volume, so it stays in its cluster as long as that cluster
may run it. Growth extends the last range or opens a new one. Shrinking removes the highest ordinals, wherever they are.
Ordinals do not move for balance. Only if a cluster goes, or the user's migration limits it, are its ordinals taken over: by
the neighbours in the order of ordinals, or by clusters that run none.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Range", "gaps_of", "ranges"]


class Range(NamedTuple):
    start: int
    replicas: int

    @property
    def end(self) -> int:
        return self.start + self.replicas


def ranges(
    asked: Range,
    held: Mapping[str, Range],
    wanted: Mapping[str, int],
    room: Mapping[str, int],
    *,
    most_clusters: int | None = None,
) -> dict[str, Range]:
    """The range of each cluster that runs any.

    `held` are the ranges of the clusters that may keep theirs, `wanted` a planner's numbers, `room` the most a cluster may
    run, unlimited if it is not named. The result falls short of the total only for lack of room.
    """
    parts = _kept(asked, held)
    # A cluster that was scaled to 0 keeps the start of its range.
    newcomers = sorted(wanted.keys() - parts.keys(), key=lambda name: (held.get(name, Range(asked.end, 0)).start, name))
    if most_clusters is not None:
        # The planner's choice is dropped last.
        chosen = sorted(newcomers, key=lambda name: -wanted[name])[: max(most_clusters - len(parts), 0)]
        newcomers = [name for name in newcomers if name in chosen]

    def allowed(name: str) -> int:
        return room.get(name, asked.replicas)

    for gap in gaps_of(asked, parts):
        left = _filled(parts, gap, newcomers, lambda name: min(wanted.get(name, 0), allowed(name)))
        _filled(parts, left, newcomers, allowed)
    return parts


def _kept(asked: Range, held: Mapping[str, Range]) -> dict[str, Range]:
    """The held ordinals that are asked for. If two clusters claim one, the range that starts first wins."""
    parts: dict[str, Range] = {}
    taken = asked.start
    for name, part in sorted(held.items(), key=lambda item: (item[1].start, item[0])):
        start, end = max(part.start, taken), min(part.end, asked.end)
        if start < end:
            parts[name] = Range(start, end - start)
            taken = end
    return parts


def gaps_of(asked: Range, parts: Mapping[str, Range]) -> list[Range]:
    """The ordinals that are asked for and in no cluster."""
    gaps, at = [], asked.start
    for part in sorted(parts.values()):
        if part.start > at:
            gaps.append(Range(at, part.start - at))
        at = part.end
    if asked.end > at:
        gaps.append(Range(at, asked.end - at))
    return gaps


def _filled(parts: dict[str, Range], gap: Range, newcomers: list[str], most: Callable[[str], int]) -> Range:
    """Neighbours grow into the gap and clusters that run none open in it, up to their `most`. Returns the rest of the gap."""
    for name, part in list(parts.items()):
        more = min(gap.replicas, max(most(name) - part.replicas, 0))
        if part.end == gap.start:
            parts[name] = Range(part.start, part.replicas + more)
            gap = Range(gap.start + more, gap.replicas - more)
        elif part.start == gap.end:
            parts[name] = Range(part.start - more, part.replicas + more)
            gap = Range(gap.start, gap.replicas - more)
    for name in list(newcomers):
        number = min(gap.replicas, most(name))
        if number > 0:
            newcomers.remove(name)
            parts[name] = Range(gap.start, number)
            gap = Range(gap.start + number, gap.replicas - number)
    return gap
