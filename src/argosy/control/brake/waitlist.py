"""Waitlist: removals that wait to be judged, and what is asked of all of them, kept current."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from argosy.control.caches.objectkeys import SourceKey
from argosy.plan.brake.cause import Cause

__all__ = ["Wait", "Waitlist"]


class Wait(NamedTuple):
    cause: Cause
    clusters: tuple[str, ...]
    since: float


class Waitlist:
    def __init__(self) -> None:
        self._waits: dict[SourceKey, Wait] = {}
        self._clusters: Counter[str] = Counter()
        #: When the first and the last of them came that were not judged yet.
        self._first = self._last = 0.0
        self._unjudged = False

    def __len__(self) -> int:
        return len(self._waits)

    def __contains__(self, key: object) -> bool:
        return key in self._waits

    @property
    def clusters(self) -> Mapping[str, int]:
        """How many of its copies are in each cluster; none has 0."""
        return self._clusters

    def items(self) -> dict[SourceKey, Wait]:
        return dict(self._waits)

    def add(self, key: SourceKey, wait: Wait) -> bool:
        """Returns whether it is new here. One that was here waits since then."""
        before = self.pop(key)
        self._waits[key] = wait if before is None else wait._replace(since=before.since)
        self._clusters.update(wait.clusters)
        if before is None:
            self._first = self._first if self._unjudged else wait.since
            self._last = wait.since
            self._unjudged = True
        return before is None

    def pop(self, key: SourceKey) -> Wait | None:
        wait = self._waits.pop(key, None)
        for cluster in wait.clusters if wait is not None else ():
            self._clusters[cluster] -= 1
            if not self._clusters[cluster]:
                del self._clusters[cluster]
        return wait

    def quiet_at(self, settle: float, longest: float) -> float:
        """When the flood is over, or has lasted too long; a time long gone if none came since the last judgement."""
        return min(self._last + settle, self._first + longest) if self._unjudged else float("-inf")

    def judged(self) -> None:
        """Those that stay wait for something else than the end of the flood."""
        self._unjudged = False
