"""Sources that have just got our finalizer, and those of them that were deleted in spite of it.

kube-apiserver checks finalizers when a delete request starts: a finalizer that is added during the request does not stop it. So
a source that disappears within the length of a request after it got our finalizer was deleted by a user, and its copies are
deleted as well. Other sources that disappear are not taken as deleted: somebody removed the finalizer, or the object was lost
in the store.
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
        #: When sources got our finalizer, the latest last; old entries are dropped.
        self._since: dict[SourceKey, float] = {}
        #: Uids of sources that were deleted in spite of it.
        self._slipped: dict[SourceKey, str] = {}

    def note(self, key: SourceKey) -> None:
        """The source is about to get the finalizer."""
        now = clock.monotonic()
        self._since.pop(key, None)
        self._since[key] = now
        while now - next(iter(self._since.values())) > self._longest_request:
            del self._since[next(iter(self._since))]

    def gone(self, told: SourceChange) -> bool:
        """A source is gone. Returns whether it was deleted in spite of the finalizer, which is remembered until `settled`."""
        last, key = told.change.old, told.key
        just_finalized = clock.monotonic() - self._since.pop(key, -math.inf) <= self._longest_request
        if last is None or not just_finalized or told.change.missing:
            return False
        if keys.FEDERATE_FINALIZER not in last.metadata.finalizers or last.metadata.deletion_timestamp:
            return False
        self._slipped[key] = last.metadata.uid
        return True

    def slipped(self, key: SourceKey) -> str | None:
        """The uid of the source that was deleted in spite of the finalizer, under this key."""
        return self._slipped.get(key)

    def settled(self, key: SourceKey) -> None:
        self._slipped.pop(key, None)
