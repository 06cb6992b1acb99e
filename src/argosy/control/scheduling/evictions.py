"""Evictions: whose turn it is to leave a failed cluster (`plan.failover.pacing`).

An object that is to wait is decided as if its cluster had not failed. What left is counted in memory, and after a restart again
by the notes of removals, which have their time. A shard paces its own objects.
"""

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable
from typing import Any

from argosy.api import keys
from argosy.control.brake.counts import Counts
from argosy.control.caches.informers import Caches
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView
from argosy.control.timings import Timings
from argosy.control.wake import Follow
from argosy.kube import clock, timestamps
from argosy.kube.informer import Change
from argosy.plan.brake.cause import Cause
from argosy.plan.copies.placement import removals
from argosy.plan.failover.failover import all_failed
from argosy.plan.failover.pacing import Pacing, is_suspended, most_that_leave, zones_of

__all__ = ["Evictions"]


class Evictions:
    name = "evictions"

    def __init__(self, caches: Caches, fleet: LiveFleet, pacing: Pacing, timings: Timings) -> None:
        self.pacing = pacing
        self._caches = caches
        self._fleet = fleet
        self._window = timings.failover_window
        self._counts = Counts()
        #: By cluster: when a copy left it, in the order of time. (Zones are looked up when asked: they may not be known yet.)
        self._left: dict[str, deque[float]] = {}
        #: By zone: how many copies it had, and when. Their replacements may be in the same zone.
        self._there: dict[str, tuple[float, int]] = {}
        #: Objects that left a failed cluster, by cluster. What stays there for lack of room may follow.
        self._had: dict[str, set[SourceKey]] = {}
        #: Where objects wait for their turn.
        self._waiting: dict[SourceKey, frozenset[str]] = {}

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._caches.federated_changes, self._federated_changed, "how much is in each zone, and left it")

    @property
    def waiting(self) -> Counter[str]:
        """How many objects wait for their turn to leave each failed cluster."""
        failed = all_failed(self._fleet.snapshot)
        return Counter(name for clusters in self._waiting.values() for name in clusters & failed)

    def bound(self, key: SourceKey) -> frozenset[str]:
        """The failed clusters that an object is in and may not leave yet."""
        inside = self.inside(key)
        bound = frozenset(name for name in inside if not self._is_turn(key, name))
        if bound:
            self._waiting[key] = bound
        else:
            self._waiting.pop(key, None)
        return bound

    def inside(self, key: SourceKey) -> frozenset[str]:
        """The failed clusters that an object is in."""
        view, failed = self._caches.federated_view(key), all_failed(self._fleet.snapshot)
        if not self._had.keys() <= failed:
            self._had = {name: had for name, had in self._had.items() if name in failed}
        return view.placed & failed if view is not None and failed else frozenset()

    def pause(self, bound: Collection[str]) -> float | None:
        """Seconds until an object that is bound to these clusters is to ask again. None: something else wakes it, if at all.
        (The fleet's change that ends a suspension does: it counts as decided in a fleet without these failures.)"""
        if not bound or is_suspended(self.pacing, self._fleet.snapshot):
            return None
        zones, now = zones_of(self._fleet.snapshot), clock.monotonic()
        first = [times[0] for name in bound for times in self._lately(zones.get(name, ""))]
        return min(first) + self._window - now if first else self._window

    def had_turn(self, key: SourceKey, left: Collection[str]) -> None:
        """A pass decided that an object leaves these failed clusters."""
        for name in left:
            had = self._had.setdefault(name, set())
            if key not in had:
                self._left.setdefault(name, deque()).append(clock.monotonic())
                had.add(key)

    def _is_turn(self, key: SourceKey, cluster: str) -> bool:
        fleet = self._fleet.snapshot
        if is_suspended(self.pacing, fleet):
            return False
        if key in self._had.get(cluster, ()):
            return True
        zones = zones_of(fleet)
        zone = zones.get(cluster, "")
        gone, now = sum(map(len, self._lately(zone))), clock.monotonic()
        since, there = self._there.get(zone, (-math.inf, 0))
        if not gone or now - since >= self._window:
            there = sum(copies for name, copies in self._counts.there.items() if zones.get(name, "") == zone)
            self._there[zone] = now, there
        return gone < most_that_leave(self.pacing, there)

    def _lately(self, zone: str) -> list[deque[float]]:
        """When copies left clusters of a zone within the window."""
        zones, since = zones_of(self._fleet.snapshot), clock.monotonic() - self._window
        found = [times for name, times in self._left.items() if zones.get(name, "") == zone]
        for times in found:
            while times and times[0] <= since:
                times.popleft()
        return [times for times in found if times]

    def _federated_changed(self, change: Change[FederatedView]) -> None:
        self._counts.observe(change)
        view = change.new or change.old
        if view is None or (change.new is not None and keys.TO_BE_REMOVED not in view.metadata.annotations):
            return
        key = self._caches.source_of(view)
        if key is not None and change.new is None:
            self._waiting.pop(key, None)
        elif change.old is None:
            self._recount(view)

    def _recount(self, view: FederatedView) -> None:
        """What left shortly before this process began."""
        for note in removals(view.metadata.annotations):
            then = timestamps.parse(note.since)
            age = (clock.now() - then).total_seconds() if then is not None else math.inf
            if note.cause == Cause.FAILOVER and age < self._window:
                times = [*self._left.get(note.cluster, ()), clock.monotonic() - max(age, 0.0)]
                self._left[note.cluster] = deque(sorted(times))
