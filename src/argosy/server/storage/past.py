"""The past of a set of records, computed by undoing changes."""

from collections.abc import Iterable

from argosy.server.storage.base import Change, Record

__all__ = ["undo"]


def undo(changes: Iterable[Change]) -> dict[str, Record | None]:
    """For each changed key, its record before the first of `changes` (given in order); None if it was absent."""
    before: dict[str, Record | None] = {}
    for change in changes:
        if change.key not in before:
            before[change.key] = change.previous
    return before
