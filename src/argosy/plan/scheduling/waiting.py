"""Waiting: replicas that were not started and would be, if there was room or if a rule allowed them where the object runs.

What a policy's own maximums forbid does not wait.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import Filter, Remote
from argosy.plan.scheduling.unit import Unit

__all__ = ["NOTHING_WAITS", "Waiting", "closed_clusters", "sum_of", "waiting_of"]

FOR_ROOM: Final = "{number} of {total} replicas wait for room: no cluster that may take them has it available"
BARRED: Final = "{number} of {total} replicas found no cluster: {filters} allows no new ones where it runs ({clusters})"
_NAMES_SHOWN: Final = 5


class Waiting(NamedTuple):
    for_room: int = 0
    #: Refused by rules in the clusters that run some.
    barred: int = 0
    message: str = ""

    @property
    def replicas(self) -> int:
        return self.for_room + self.barred


NOTHING_WAITS: Final = Waiting()


def closed_clusters(unit: Unit, fleet: Fleet, filters: Sequence[Filter | Remote]) -> dict[str, str]:
    """Clusters that run some replicas and would be refused to a new object, each with the filter. May raise FrameworkError."""
    if not unit.divides or not unit.current:
        return {}
    new = msgspec.structs.replace(unit, current={})
    closed: dict[str, str] = {}
    for plugin in filters:
        if isinstance(plugin, Filter) and plugin.spares_running:
            allowed = plugin.feasible(new, fleet)
            if allowed is not fleet.everyone:
                refused = fleet.names_of((fleet.mask_of(unit.current) > allowed).nonzero()[0])
                closed = {**dict.fromkeys(refused, plugin.name), **closed}
    return closed


def waiting_of(unit: Unit, placed: Mapping[str, int | None], possible: Callable[[Unit], int]) -> Waiting:
    """What waits beside what is placed. `possible` tells how many replicas of a unit can be placed in all."""
    running, total = sum_of(placed), unit.desired_replicas or 0
    if running >= total or not (unit.rules.within_available or unit.closed):
        return NOTHING_WAITS
    rules = msgspec.structs.replace(unit.rules, within_available=False)
    roomy = msgspec.structs.replace(unit, rules=rules, current=dict(placed), avoid_disruption=True)
    with_room = max(min(possible(roomy), total), running) if unit.rules.within_available else running
    opened = (
        max(min(possible(msgspec.structs.replace(roomy, closed={})), total), with_room) if unit.closed else with_room
    )
    for_room, barred = with_room - running, opened - with_room
    told = []
    if for_room:
        told.append(FOR_ROOM.format(number=for_room, total=total))
    if barred:
        told.append(_barred(barred, total, unit.closed))
    return Waiting(for_room, barred, "; ".join(told))


def _barred(number: int, total: int, closed: Mapping[str, str]) -> str:
    names = sorted(closed)
    more = ["…"] if len(names) > _NAMES_SHOWN else []
    filters, clusters = ", ".join(sorted({*closed.values()})), ", ".join(names[:_NAMES_SHOWN] + more)
    return BARRED.format(number=number, total=total, filters=filters, clusters=clusters)


def sum_of(placements: Mapping[str, int | None]) -> int:
    return sum(number or 0 for number in placements.values())
