"""Deletions: sources that are being deleted, and whether their copies go with them.

One that comes alone goes on after a moment. If more than half of all sources were deleted within a minute, none of them does:
their copies stay as they are, until that is confirmed, or they are rescued: released from the federation and left running.
"""

from bisect import bisect_left, bisect_right, insort
from enum import Enum, auto

from argosy.control.brake.counts import Counts
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.timings import Timings
from argosy.kube import timestamps
from argosy.plan.brake.cause import Cause
from argosy.plan.brake.held_removal import HeldRemoval
from argosy.plan.brake.limits import Limits, is_mass_deletion
from argosy.plan.brake.orders import Orders

__all__ = ["Deletion", "Deletions"]

#: While more than this share of all was deleted within a minute, it may become most of them.
_MANY = 0.1


class Deletion(Enum):
    GO = auto()
    WAIT = auto()
    HELD = auto()
    #: The copies stay in the members, and are ours no more.
    RESCUE = auto()


class Deletions:
    def __init__(self, counts: Counts, limits: Limits, timings: Timings) -> None:
        self._counts = counts
        self._limits = limits
        self._timings = timings
        #: Federated sources that are being deleted: since when (seconds since 1970), and when we heard of it.
        self._deleted: dict[SourceKey, tuple[float, float]] = {}
        #: When sources were deleted, lately; and those of them that are gone.
        self._times: list[float] = []
        self._finished: list[float] = []
        self._last = float("-inf")
        self._held: dict[SourceKey, HeldRemoval] = {}
        self._going: set[SourceKey] = set()

    @property
    def held(self) -> dict[SourceKey, HeldRemoval]:
        return self._held

    def observe(self, key: SourceKey, deleted: str | None, now: float) -> bool:
        """A federated source is being deleted since then. Returns whether that is news."""
        at = timestamps.parse(deleted)
        if at is None or key in self._deleted:
            return False
        self._deleted[key] = (at.timestamp(), now)
        insort(self._times, at.timestamp())
        self._last = now
        return True

    def gone(self, key: SourceKey, time: float) -> None:
        """The source is no more, `time` being the time of day. That it was deleted counts for another minute."""
        deleted = self._deleted.pop(key, None)
        self._held.pop(key, None)
        self._going.discard(key)
        if deleted is not None:
            insort(self._finished, deleted[0])
        # What is held says so itself, however long ago it was deleted.
        for times in (self._times, self._finished):
            del times[: bisect_left(times, time - 2 * self._timings.brake_minute)]

    def ask(self, key: SourceKey, recorded: HeldRemoval | None, orders: Orders, now: float, at: str) -> Deletion:
        """Whether the copies of a source that is being deleted go with it."""
        if self._limits.never or key in self._going:
            return Deletion.GO
        if recorded is not None and recorded.cause != Cause.SOURCES_DELETED:
            recorded = None
        held = self._held.get(key) or recorded
        if orders.rescues(held.since if held is not None else at):
            self._held.pop(key, None)
            return Deletion.RESCUE
        if orders.confirms(Cause.SOURCES_DELETED, held.since if held is not None else at):
            self._held.pop(key, None)
            self._going.add(key)
            return Deletion.GO
        deleted, of = self._within_a_minute(key)
        if held is not None or is_mass_deletion(self._limits, deleted, of):
            self._held[key] = held or HeldRemoval(Cause.SOURCES_DELETED, (), at)
            return Deletion.HELD
        if self._counts.objects >= self._limits.deleted and not self._is_over(key, deleted, of, now):
            return Deletion.WAIT
        self._going.add(key)
        return Deletion.GO

    def let_go(self, key: SourceKey) -> None:
        """While the brake is off. What has begun is then finished."""
        self._held.pop(key, None)
        self._going.add(key)

    def _is_over(self, key: SourceKey, deleted: int, of: int, now: float) -> bool:
        """Whether no more deletions come, or they have come for so long that it cannot be most of all."""
        _, heard = self._deleted.get(key, (0.0, float("-inf")))
        many = deleted >= self._limits.deleted and deleted > _MANY * of
        longest = self._timings.brake_minute if many else self._timings.brake_longest
        return now - self._last >= self._timings.brake_deletions or now - heard >= longest

    def _within_a_minute(self, key: SourceKey) -> tuple[int, int]:
        """How many sources were deleted within the minute around this one, and of how many."""
        if key not in self._deleted:
            return 0, self._counts.objects
        at, minute = self._deleted[key][0], self._timings.brake_minute
        before = _between(self._times, at - minute, at)
        after = _between(self._times, at, at + minute)
        # Those that are gone already are not among the objects any more.
        return max(before, after), self._counts.objects + _between(self._finished, at - minute, at + minute)


def _between(times: list[float], first: float, last: float) -> int:
    return bisect_right(times, last) - bisect_left(times, first)
