"""Removals: what passes would take away, while it waits, is held, or was just let go.

Nothing of this is stored but what is held (with its object). After a restart passes find everything else again, and it waits
anew.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from argosy.control.brake.counts import Counts, Lately, tally
from argosy.control.brake.waitlist import Wait, Waitlist
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.timings import Timings
from argosy.plan.brake.cause import Cause
from argosy.plan.brake.departure import Departure
from argosy.plan.brake.held_removal import HeldRemoval
from argosy.plan.brake.limits import Limits, exceeded
from argosy.plan.brake.orders import Orders, plan_id

__all__ = ["Answer", "Judgement", "Moment", "Removals"]

#: Of clusters that are emptied because of themselves, the first is an order.
_OF_THE_CLUSTER = frozenset({Cause.CLUSTER, Cause.LEAVING})


#: The ids of plans that are carried out, of a cause.
Planned = Callable[[Cause], Collection[str]]


class Judgement(Enum):
    GO = auto()
    WAIT = auto()
    HELD = auto()


class Answer(NamedTuple):
    judgement: Judgement
    held: HeldRemoval | None = None
    #: Whether it waits since just now.
    begun: bool = False


class Moment(NamedTuple):
    """Now: by the monotonic clock, and as it is written."""

    seconds: float
    text: str


_GO = Answer(Judgement.GO)


class _Emptied(msgspec.Struct, frozen=True):
    """A cluster that is emptied because of itself."""

    since: float
    #: Whether something left it.
    begun: bool = False


class Removals:
    def __init__(self, counts: Counts, limits: Limits, timings: Timings) -> None:
        self._counts = counts
        self._limits = limits
        self._timings = timings
        #: What leaves clusters because of these clusters, and everything else.
        self._emptying = Waitlist()
        self._flood = Waitlist()
        self._held: dict[SourceKey, HeldRemoval] = {}
        #: How many copies are held in each cluster because of it.
        self._kept_in: Counter[str] = Counter()
        #: Copies that are held, and when the last one was, by cause.
        self._copies: Counter[str] = Counter()
        self._held_at: dict[str, float] = {}
        #: Let go, and perhaps not stored yet.
        self._going: dict[SourceKey, frozenset[str]] = {}
        self._lately = Lately(timings.brake_window)
        self._emptied: dict[str, _Emptied] = {}

    @property
    def held(self) -> Mapping[SourceKey, HeldRemoval]:
        return self._held

    @property
    def copies_held(self) -> Mapping[str, int]:
        """By cause."""
        return self._copies

    def concerns(self, key: SourceKey) -> bool:
        return key in self._emptying or key in self._flood or key in self._held

    # Asked by passes.

    def ask(
        self,
        key: SourceKey,
        departure: Departure,
        recorded: HeldRemoval | None,
        orders: Orders,
        now: Moment,
        *,
        protected: bool,
    ) -> Answer:
        """Whether what a pass takes away may go. `recorded` is what the object says is held of it; `protected`, that its policy
        wants all of it confirmed."""
        clusters, cause = departure.counted, departure.cause
        if not clusters:
            self.forget(key)
            return _GO
        held = self._held.get(key) or recorded
        if held is not None:
            # What was confirmed is what was held: more of it, or for another cause, is held anew.
            same = held.cause == cause and set(held.clusters).issuperset(clusters)
            if same and orders.confirms(cause, held.since):
                self._go(key, clusters)
                return _GO
            if key not in self._held and not protected:  # by a former leader: what it had not come to belongs to this
                self._held_at[cause] = now.seconds
            return self._hold(key, HeldRemoval(cause, clusters, held.since if same else now.text))
        if self._going.get(key, frozenset()).issuperset(clusters):
            return _GO
        if orders.confirms(cause, now.text):
            self._go(key, clusters)
            return _GO
        if self._holds(cause, now):
            self._held_at[cause] = now.seconds
            return self._hold(key, HeldRemoval(cause, clusters, now.text))
        if protected:
            return self._hold(key, HeldRemoval(cause, clusters, now.text))
        return self._wait(key, cause, clusters, now.seconds)

    def _wait(self, key: SourceKey, cause: Cause, clusters: tuple[str, ...], now: float) -> Answer:
        if cause in _OF_THE_CLUSTER:
            for cluster in clusters:
                self._emptied.setdefault(cluster, _Emptied(now))
            if self._only_emptied(now, clusters) and self._emptied[clusters[0]].begun:
                self._go(key, clusters)
                return _GO
        here, there = self._emptying, self._flood
        if cause not in _OF_THE_CLUSTER:
            here, there = there, here
        before = there.pop(key)
        since = before.since if before is not None else now
        begun = here.add(key, Wait(cause, clusters, since))
        return Answer(Judgement.WAIT, begun=begun and before is None)

    def forget(self, key: SourceKey) -> None:
        """Nothing is taken away of it (any more)."""
        self._unwait(key)
        self._going.pop(key, None)
        self._unhold(key)

    def _unwait(self, key: SourceKey) -> None:
        self._emptying.pop(key)
        self._flood.pop(key)

    def let_all_go(self) -> list[SourceKey]:
        """While the brake is off."""
        found = {key: each.clusters for key, each in {**self._emptying.items(), **self._flood.items()}.items()}
        found |= {key: each.clusters for key, each in self._held.items()}
        for key, clusters in found.items():
            self._go(key, clusters)
        return list(found)

    def _holds(self, cause: str, now: Moment) -> bool:
        """Whether the same cause has held others just now, and still does: what comes late belongs to them."""
        at = self._held_at.get(cause)
        return at is not None and now.seconds - at < self._timings.brake_window and self._copies[cause] > 0

    def _hold(self, key: SourceKey, held: HeldRemoval) -> Answer:
        self._unwait(key)
        self._unhold(key)
        self._held[key] = held
        self._copies[held.cause] += len(held.clusters)
        if held.cause in _OF_THE_CLUSTER:
            self._kept_in.update(held.clusters)
        return Answer(Judgement.HELD, held)

    def _unhold(self, key: SourceKey) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._copies[held.cause] -= len(held.clusters)
            if held.cause in _OF_THE_CLUSTER:
                self._kept_in.subtract(held.clusters)

    def _go(self, key: SourceKey, clusters: tuple[str, ...]) -> None:
        self.forget(key)
        self._going[key] = frozenset(clusters)

    # Once the flood is over.

    def judge(self, planned: Planned, now: Moment) -> tuple[list[SourceKey], float | None]:
        """What was judged, and in how many seconds to judge again. `planned` are the plans that are carried out."""
        judged: list[SourceKey] = []
        waits: list[float] = []
        ordered = self._is_ordered(now.seconds)
        if ordered:
            judged, waits = self._judge_ordered(now.seconds)
        lists = [self._flood] if ordered else [self._emptying, self._flood]
        if any(lists):
            left = self._until_quiet(lists) - now.seconds
            if left > 0:
                waits.append(left)
            else:
                found, later = self._judge_flood(lists, planned, now)
                judged, waits = judged + found, waits + later
        return judged, min(waits, default=None)

    def _is_ordered(self, now: float) -> bool:
        """Whether what leaves clusters because of them leaves one alone."""
        waiting = self._emptying.clusters
        # One that was spared after all does not count.
        self._emptied = {
            name: each
            for name, each in self._emptied.items()
            if each.begun or name in waiting or self._kept_in[name] > 0
        }
        return self._only_emptied(now, waiting)

    def _only_emptied(self, now: float, clusters: Collection[str]) -> bool:
        window = self._timings.brake_window
        self._emptied = {name: each for name, each in self._emptied.items() if now - each.since < window}
        return len(clusters) == 1 and self._emptied.keys() == set(clusters)

    def _judge_ordered(self, now: float) -> tuple[list[SourceKey], list[float]]:
        (name, cluster), *_ = self._emptied.items()
        left = cluster.since + self._timings.brake_order - now
        if left > 0:
            return [], [left]
        self._emptied[name] = _Emptied(cluster.since, begun=True)
        ordered = self._emptying.items()
        for key, each in ordered.items():
            self._go(key, each.clusters)
        self._emptying.judged()
        return list(ordered), []

    def _until_quiet(self, lists: Iterable[Waitlist]) -> float:
        """When the flood is over."""
        timings = self._timings
        return max(each.quiet_at(timings.brake_settle, timings.brake_longest) for each in lists if each)

    def _judge_flood(
        self, lists: Collection[Waitlist], planned: Planned, now: Moment
    ) -> tuple[list[SourceKey], list[float]]:
        rest: dict[SourceKey, Wait] = {}
        for waitlist in lists:
            rest |= waitlist.items()
            waitlist.judged()
        judged = self._go_as_planned(rest, planned)
        left = {key: each for key, each in rest.items() if key in self._emptying or key in self._flood}
        late = [(key, each) for key, each in left.items() if self._holds(each.cause, now)]
        for key, each in late:
            self._hold(key, HeldRemoval(each.cause, each.clusters, now.text))
            judged.append(key)
            del left[key]
        gone = [*self._lately.since(now.seconds)]
        clusters, objects = tally([*((key, each.clusters) for key, each in left.items()), *gone])
        lately, _ = tally(gone)
        there = {name: self._counts.there[name] + lately.get(name, 0) for name in {*self._counts.there, *lately}}
        emptied = 0
        if any(each.cause in _OF_THE_CLUSTER for each in left.values()):
            emptied = sum(each.begun for name, each in self._emptied.items() if name not in clusters)
        if exceeded(self._limits, clusters, objects, there, emptied):
            for key, each in left.items():
                self._held_at[each.cause] = now.seconds
                self._hold(key, HeldRemoval(each.cause, each.clusters, now.text))
            return judged + list(left), []
        waits = []
        for key, each in left.items():
            unnamed = each.since + self._timings.brake_unnamed - now.seconds
            if each.cause is Cause.POLICY_UNNAMED and unnamed > 0:
                waits.append(unnamed)
                continue
            self._lately.add(now.seconds, key, each.clusters)
            for name in each.clusters if each.cause in _OF_THE_CLUSTER else ():
                self._emptied[name] = _Emptied(each.since, begun=True)
            self._go(key, each.clusters)
            judged.append(key)
        return judged, waits

    def _go_as_planned(self, rest: dict[SourceKey, Wait], planned: Planned) -> list[SourceKey]:
        """All that waits because of one cause, if exactly that was planned."""
        gone: list[SourceKey] = []
        for cause in {each.cause for each in rest.values()}:
            expected = planned(cause)
            if not expected:
                continue
            mine = [(key, each.clusters) for key, each in rest.items() if each.cause is cause]
            removals = ((key.type, key.key, name) for key, clusters in mine for name in clusters)
            if plan_id(removals) in expected:
                for key, clusters in mine:
                    self._go(key, clusters)
                    gone.append(key)
        return gone
