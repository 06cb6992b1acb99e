"""How a Deployment's replicas are divided between its revisions: the arithmetic of rolling updates and of scaling. Pure.

The rules are those of Kubernetes: the bounds apply to the specs, while pods beyond a reduced spec may still run. Such pods
never count as available.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["Bounds", "Revision", "bounds", "grown_new", "proportional", "scaled_value", "shrunk_old"]


class Bounds(msgspec.Struct, frozen=True):
    """How many pods beyond the desired number may exist, and how many of it may be missing."""

    surge: int
    unavailable: int


class Revision(msgspec.Struct, frozen=True):
    """One ReplicaSet of a Deployment in numbers."""

    name: str
    #: spec.replicas.
    replicas: int
    available: int = 0
    #: Older revisions sort first.
    created: str = ""
    #: The Deployment's replicas plus surge when this set was last scaled; None when not known.
    max_before: int | None = None

    @property
    def dependable(self) -> int:
        """Available pods within its spec."""
        return min(self.available, self.replicas)


def bounds(strategy: Mapping[str, Any], replicas: int) -> Bounds:
    """Surge is rounded up, unavailability down; one of the two must allow a step."""
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate" or rolling is None:
        return Bounds(0, 0)
    surge = scaled_value(rolling.get("maxSurge"), replicas, up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable"), replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(surge, min(unavailable, replicas))


def scaled_value(value: int | str | None, total: int, *, up: bool) -> int:
    """A number, or a percentage of the total rounded up or down."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * total // 100) if up else percent * total // 100


def grown_new(wanted: int, limit: Bounds, new: Revision, old: Sequence[Revision]) -> int:
    """What the newest revision may have now."""
    if new.replicas >= wanted:
        return wanted
    room = wanted + limit.surge - sum(revision.replicas for revision in (new, *old))
    return new.replicas + max(0, min(room, wanted - new.replicas))


def shrunk_old(wanted: int, limit: Bounds, new: Revision, old: Sequence[Revision]) -> dict[str, int]:
    """What each older revision is to have now; only those that change. Pods that are not available go first."""
    least = wanted - limit.unavailable
    left = sum(revision.replicas for revision in (new, *old)) - least - (new.replicas - new.dependable)
    if left <= 0:
        return {}
    sizes = {revision.name: revision.replicas for revision in old}
    oldest_first = sorted(old, key=lambda revision: (revision.created, revision.name))
    for revision in oldest_first:
        useless = min(left, revision.replicas - revision.dependable)
        sizes[revision.name] -= useless
        left -= useless
    dispensable = min(left, sum(revision.dependable for revision in (new, *old)) - least)
    for revision in oldest_first:
        stopped = min(sizes[revision.name], max(dispensable, 0))
        sizes[revision.name] -= stopped
        dispensable -= stopped
    return {revision.name: sizes[revision.name] for revision in old if sizes[revision.name] != revision.replicas}


def proportional(wanted: int, limit: Bounds, current: int, revisions: Sequence[Revision]) -> dict[str, int]:
    """The sizes of all active revisions when a Deployment is scaled in the middle of a rollout, in the order to set them.

    `current` is the Deployment's status.replicas, the base where a set does not say what it was scaled for.
    """
    allowed = wanted + limit.surge if wanted > 0 else 0
    to_add = allowed - sum(revision.replicas for revision in revisions)
    ordered = _by_size(revisions, newer_first=to_add > 0) if to_add else list(revisions)
    sizes = {revision.name: revision.replicas for revision in ordered}
    if to_add == 0:
        return sizes
    added = 0
    for revision in ordered:
        share = _share(revision, wanted, limit, current)
        left = to_add - added
        if revision.replicas == 0 or left == 0:
            continue
        step = min(share, left) if to_add > 0 else max(share, left)
        sizes[revision.name] += step
        added += step
    largest = ordered[0].name
    sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _by_size(revisions: Sequence[Revision], *, newer_first: bool) -> list[Revision]:
    """Largest first; of equal ones the newer or the older first."""
    ordered = sorted(revisions, key=lambda revision: (revision.created, revision.name), reverse=newer_first)
    return sorted(ordered, key=lambda revision: -revision.replicas)


def _share(revision: Revision, wanted: int, limit: Bounds, current: int) -> int:
    if wanted == 0:
        return -revision.replicas
    before = revision.max_before or current
    if before == 0:
        return 0
    size = revision.replicas * (wanted + limit.surge) / before
    # Halves are rounded up, unlike Python's round.
    return int(size + 0.5) - revision.replicas
