"""Unwritten: the last decisions that changed nothing, and so are not on record. Kept for this process alone.

With them an object is decided once for each change of the fleet, although its record stays behind.
"""

from argosy.control.caches.objectkeys import SourceKey
from argosy.plan.scheduling.triggers import Unwritten

__all__ = ["UnwrittenDecisions"]


class UnwrittenDecisions:
    def __init__(self) -> None:
        self._known: dict[SourceKey, Unwritten] = {}

    def of(self, key: SourceKey) -> Unwritten | None:
        return self._known.get(key)

    def note(self, key: SourceKey, left: Unwritten | None) -> None:
        """It was decided; None if the decision is on record or about to be, or the object is gone."""
        if left is None:
            self._known.pop(key, None)
        else:
            self._known[key] = left
