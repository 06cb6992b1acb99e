"""Arriving kinds: a new object of a kind that members are only beginning to serve waits a moment for the others.

A definition reaches the members one after another. Without the wait everything would be placed in the first member that serves
the kind, and would stay there. Only the first placement waits, never for longer than `Arrival.until`, and only for clusters that
would be feasible if they served the kind.
"""

import datetime
from collections.abc import Sequence
from typing import Final

import msgspec

from argosy.fleet.snapshot import Fleet
from argosy.kube.timestamps import timestamp
from argosy.plan.plugins import api_resources
from argosy.plan.scheduling.framework import Filter, Remote
from argosy.plan.scheduling.unit import Unit

__all__ = ["Arrival", "arrival_of", "awaited", "message"]

WAITS: Final = "waits until {until} at the latest for {clusters} to serve {kind}, which came to the fleet only now"
_NAMES_SHOWN: Final = 5


class Arrival(msgspec.Struct, frozen=True):
    """A kind that came to the fleet lately: until when its members are waited for, and which (None: any of them)."""

    until: datetime.datetime
    clusters: frozenset[str] | None = None


def arrival_of(
    seen: datetime.datetime | None,
    defined: datetime.datetime | None,
    clusters: frozenset[str] | None,
    *,
    now: datetime.datetime,
    patience: float,
) -> Arrival | None:
    """The arrival of a kind that some member was first seen to serve, and whose definition began to be propagated, at these
    times; None if that is long ago. `clusters` are those the definition goes to, None if that is not known.

    A time in the future is another machine's. It is believed only if it is about as good as now.
    """
    wait = datetime.timedelta(seconds=patience)
    lately = [time for time in (seen, defined) if time is not None and abs(now - time) < wait]
    return Arrival(max(lately) + wait, clusters) if lately else None


def awaited(unit: Unit, fleet: Fleet, filters: Sequence[Filter | Remote], expected: frozenset[str] | None) -> list[str]:
    """Those of the clusters expected to serve the kind (None: all) that lack nothing but the kind."""
    lacking = ~fleet.serving((unit.group, unit.version, unit.kind))
    for plugin in filters:
        if isinstance(plugin, Filter) and plugin.name != api_resources.FILTER.name and lacking.any():
            lacking = lacking & plugin.feasible(unit, fleet)
    names = fleet.names_of(lacking.nonzero()[0])
    return [name for name in names if expected is None or name in expected]


def message(unit: Unit, clusters: Sequence[str], arrival: Arrival) -> str:
    more = f" and {len(clusters) - _NAMES_SHOWN} more" if len(clusters) > _NAMES_SHOWN else ""
    kind = f"{unit.group}/{unit.version} {unit.kind}"
    return WAITS.format(until=timestamp(arrival.until), clusters=", ".join(clusters[:_NAMES_SHOWN]) + more, kind=kind)
