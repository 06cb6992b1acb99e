"""Sources that have just got our finalizer, and those of them that were deleted in spite of it.

kube-apiserver looks for finalizers before it deletes, not while: one that comes in between keeps nothing. So a source that goes
within the length of a request after it got our finalizer was deleted by somebody's word, and its copies are to go as well. Of
others that is not said: who takes the finalizer away first, or loses the object otherwise (in the store, say), did not say that
its copies should go.
"""

import math

from argosy.api import keys
from argosy.control.caches.informers import SourceChange
from argosy.control.caches.objectkeys import SourceKey
from argosy.kube import clock

__all__ = ["JustFinalized"]


class JustFinalized:
    def __init__(self, longest_request: float):
        self._longest_request = longest_request
        #: When sources got our finalizer, the latest last; those of long ago are forgotten.
        self._since: dict[SourceKey, float] = {}
        #: Uids of sources that were deleted in spite of it.
        self._slipped: dict[SourceKey, str] = {}

    def note(self, key: SourceKey) -> None:
        """The source is about to get it."""
        now = clock.monotonic()
        self._since.pop(key, None)
        self._since[key] = now
        while now - next(iter(self._since.values())) > self._longest_request:
            del self._since[next(iter(self._since))]

    def gone(self, told: SourceChange) -> bool:
        """A source is gone; whether it slipped through, which is remembered until it is taken."""
        last, key = told.change.old, told.key
        just_finalized = clock.monotonic() - self._since.pop(key, -math.inf) <= self._longest_request
        if last is None or not just_finalized or told.change.missing:
            return False
        if keys.FEDERATE_FINALIZER not in last.metadata.finalizers or last.metadata.deletion_timestamp:
            return False
        self._slipped[key] = last.metadata.uid
        return True

    def slipped(self, key: SourceKey) -> str | None:
        """The uid of the source that slipped through under this key."""
        return self._slipped.get(key)

    def settled(self, key: SourceKey) -> None:
        self._slipped.pop(key, None)
