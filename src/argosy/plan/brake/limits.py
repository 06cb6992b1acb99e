"""Limits: how much may be taken away at once."""

from collections.abc import Mapping

import msgspec

__all__ = ["Limits", "exceeded", "is_mass_deletion"]


class Limits(msgspec.Struct, frozen=True):
    """More than `share` of the copies of the fleet or of a cluster, if that concerns at least `objects`; or all of more than one
    cluster, and more than `several` of the fleet's copies, of more than one object. With a share of 1 nothing is ever held."""

    share: float = 0.3
    objects: int = 3
    several: float = 0.1
    #: More than `deletions` of all sources are deleted within a minute, and at least `deleted` of them.
    deletions: float = 0.5
    deleted: int = 20

    @property
    def never(self) -> bool:
        return self.share >= 1


def exceeded(
    limits: Limits, leaving: Mapping[str, int], objects: int, there: Mapping[str, int], emptied: int = 0
) -> bool:
    """Whether that is too much: copies that leave each cluster, of `objects`, where `there` were so many. `emptied` other
    clusters were emptied for the same reason just before."""
    total, gone = sum(there.values()), sum(leaving.values())
    if objects >= limits.objects:
        if gone > limits.share * total:
            return True
        if any(number > limits.share * there.get(name, 0) for name, number in leaving.items()):
            return True
    emptied += sum(number >= there.get(name, 0) for name, number in leaving.items() if number)
    # A single object is no fleet yet.
    return emptied > 1 and objects > 1 and gone > limits.several * total


def is_mass_deletion(limits: Limits, deleted: int, of: int) -> bool:
    """Whether so many of all sources were deleted within a minute that more likely the deletion went wrong."""
    return deleted >= limits.deleted and deleted > limits.deletions * of
