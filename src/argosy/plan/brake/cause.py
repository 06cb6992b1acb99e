"""Causes: why a copy is taken from a cluster. The more likely a cause is a mistake that hits many, the later it stands here."""

from enum import StrEnum
from typing import Final

__all__ = ["COUNTED", "Cause", "gravest", "text_of"]


class Cause(StrEnum):
    #: The object's own replicas, annotations or requests.
    OWN = "Own"
    #: The cluster was unjoined or drained.
    ORDERED = "Ordered"
    #: Replicas come back to a cluster that has recovered: their substitutes are not needed any more.
    FAILBACK = "Failback"
    #: The cluster has failed. Its copies are removed once others are available elsewhere.
    FAILOVER = "Failover"
    #: What it follows left the cluster before.
    FOLLOWED = "Followed"
    #: The taints, labels, APIs or room of the cluster that is left: emptying one cluster is an order, a second one may be a loop.
    CLUSTER = "ClusterChanged"
    #: The cluster is being deleted from the federation while others are, too.
    LEAVING = "ClustersDeleted"
    #: Other clusters changed, came or went.
    FLEET = "FleetChanged"
    OVERRIDES = "OverridesChanged"
    #: What it follows is still there, and takes it along no more.
    NOT_FOLLOWED = "NoLongerFollowed"
    PLUGIN = "PluginAnswered"
    PROFILE = "ProfileChanged"
    POLICY_CHANGED = "PolicyChanged"
    OTHER_POLICY = "OtherPolicy"
    POLICY_UNNAMED = "PolicyNoLongerNamed"
    #: Another controller took it out of its placements.
    OTHERS = "OtherController"
    UNKNOWN = "Unknown"
    #: The source was deleted, together with most others.
    SOURCES_DELETED = "SourcesDeleted"


_ORDER: Final = {cause: number for number, cause in enumerate(Cause)}

#: Those that may be a mistake that hits many.
COUNTED: Final = frozenset(cause for cause in Cause if _ORDER[cause] >= _ORDER[Cause.CLUSTER])

_TEXTS: Final = {
    Cause.OWN: "the object itself was changed",
    Cause.ORDERED: "the cluster left the federation or is drained",
    Cause.FAILBACK: "its replicas are back in a cluster that has recovered",
    Cause.FAILOVER: "the cluster has failed",
    Cause.FOLLOWED: "what it follows has left the cluster",
    Cause.CLUSTER: "taints, labels or APIs of the cluster changed",
    Cause.LEAVING: "several clusters are being deleted",
    Cause.FLEET: "other clusters changed",
    Cause.OVERRIDES: "its overrides set its replicas to 0",
    Cause.NOT_FOLLOWED: "what it follows takes it along no more",
    Cause.PLUGIN: "a plugin refuses the cluster",
    Cause.PROFILE: "its scheduling profile changed",
    Cause.POLICY_CHANGED: "its propagation policy changed",
    Cause.OTHER_POLICY: "another propagation policy is in force",
    Cause.POLICY_UNNAMED: "its propagation policy is no longer named",
    Cause.OTHERS: "another controller changed its placements",
    Cause.UNKNOWN: "for a reason that is not known",
    Cause.SOURCES_DELETED: "most sources were deleted within a minute",
}


def text_of(cause: str) -> str:
    """In words; of a later version's cause, its name."""
    try:
        return _TEXTS[Cause(cause)]
    except ValueError:
        return cause


def gravest(causes: "set[Cause] | frozenset[Cause]") -> Cause:
    """The most likely mistake among several causes."""
    return max(causes, key=_ORDER.__getitem__)
