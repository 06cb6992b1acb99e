"""Pacing: how much of what runs in failed clusters is started elsewhere at once.

Of each zone, at most a share of its copies leaves within a minute: the clusters that take them over can keep up, and a failure
that is none is noticed before all has moved. While too many clusters are unready at once, nothing leaves: then more likely the
control plane is cut off than that they all failed. Pure; `control/scheduling/evictions` has the clock and counts.
"""

import math

import msgspec

from argosy.fleet.snapshot import Fleet

__all__ = [
    "ZONE_LABEL",
    "Pacing",
    "are_too_many",
    "is_suspended",
    "most_that_leave",
    "of_shard",
    "told_suspended",
    "told_waiting",
    "zones_of",
]

#: Clusters without it are in one zone together.
ZONE_LABEL = "topology.kubernetes.io/zone"


class Pacing(msgspec.Struct, frozen=True):
    #: Of a zone's copies, those that may leave it within a minute,
    share: float = 0.35
    #: ... and so many in any case.
    least: int = 10
    #: While more than this share of the clusters is unready, nothing leaves.
    unready: float = 0.5


def of_shard(pacing: Pacing, shards: int) -> Pacing:
    """For the objects of one of so many processes: together they let `least` go, but each at least one."""
    return msgspec.structs.replace(pacing, least=max(pacing.least // shards, 1)) if shards > 1 else pacing


def zones_of(fleet: Fleet) -> dict[str, str]:
    """The zone of each cluster."""

    def found() -> dict[str, str]:
        return {member.name: member.labels.get(ZONE_LABEL, "") for member in fleet.members}

    return fleet.remembered("zones", found, among="facts")


def most_that_leave(pacing: Pacing, copies: int) -> int:
    """How many copies may leave a zone within a minute that had so many at its beginning."""
    return max(pacing.least, math.floor(pacing.share * copies + 1e-9))


def are_too_many(pacing: Pacing, unready: int, clusters: int) -> bool:
    return unready > pacing.unready * clusters


def told_suspended(pacing: Pacing, unready: int, clusters: int) -> str:
    return (
        f"failover is suspended: {unready} of {clusters} clusters are unready, more than {_percent(pacing.unready)}:"
        " perhaps only the control plane is cut off"
    )


def told_waiting(pacing: Pacing, objects: int) -> str:
    share = _percent(pacing.share)
    return f"failover is paced: {objects} objects wait for their turn, at most {share} of a zone leave in a minute"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def is_suspended(pacing: Pacing, fleet: Fleet) -> bool:
    """Whether so many joined clusters are unready that none of them is believed to have failed."""

    def asked() -> bool:
        known = fleet.joined & fleet.staying
        return are_too_many(pacing, int((known & ~fleet.ready).sum()), int(known.sum()))

    return fleet.remembered(("failover is suspended", pacing), asked, among="facts")
