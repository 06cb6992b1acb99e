"""Folding: the conditions of several members as one of each type, that of the worst member, with its cluster's name.

Of most conditions `True` is good news, and counts only if all members say so. Of some it is bad news, and one member is enough.
"""

from collections.abc import Collection, Sequence
from typing import Final

from argosy.api.conditions import MEMBERS_UNREACHABLE, PODS_FAILING
from argosy.plan.fields import Json

__all__ = ["BAD_NEWS", "folded", "unreported"]

#: `True` is bad news, or says that something is not over.
BAD_NEWS: Final = frozenset(
    {
        "ControllerResizeError",
        "Degraded",
        "DisruptionTarget",
        "Failed",
        "Failure",
        "FailureTarget",
        "FileSystemResizePending",
        "InvalidSpec",
        "LoadBalancerPortsError",
        "ModifyVolumeError",
        "NodeResizeError",
        "ReplicaFailure",
        "Resizing",
        "ScalingLimited",
        "Stalled",
        "Reconciling",
    }
)
#: What only some members may have, because of their version or of what happens there: what the others say counts. Anything
#: else is true of all only if every member says it.
_SOMETIMES: Final = frozenset(
    {
        "Issuing",
        "Paused",
        "PodReadyToStartContainers",
        "Progressing",
        "Remediated",
        "Suspended",
        "TestSuccess",
    }
)
#: How types of conditions end that are bad news of any kind: `NamespaceDeletionContentFailure`, `NamespaceContentRemaining`.
_BAD_ENDS: Final = ("Error", "Failed", "Failure", "Remaining")
_UNSTATED: Final = "NotReported"
_UNSTATED_MESSAGE: Final = "{cluster}: it does not report this"
#: Members do not have them.
_OURS: Final = frozenset({MEMBERS_UNREACHABLE, PODS_FAILING})


def folded(
    stated: Sequence[tuple[str, Sequence[Json]]], bad_news: Collection[str] = BAD_NEWS, *, silent: Sequence[str] = ()
) -> list[Json]:
    """`stated` has each cluster's conditions; `silent` are clusters that have not reported any status. Without times."""
    by_type: dict[str, list[tuple[str, Json]]] = {}
    for cluster, conditions in stated:
        for each in conditions:
            if not isinstance(each.get("type"), str):
                continue
            by_type.setdefault(each["type"], []).append((cluster, each))
    clusters = [*(cluster for cluster, _ in stated), *silent]
    return [_worst(type, by_type[type], clusters, _is_bad(type, bad_news)) for type in sorted(by_type)]


def unreported(before: Sequence[Json], clusters: Sequence[str]) -> list[Json]:
    """The conditions there were, of which no cluster says anything now."""
    message = _UNSTATED_MESSAGE.format(cluster=min(clusters)) if clusters else "it is in no cluster"
    types = sorted({each["type"] for each in before if isinstance(each.get("type"), str)} - _OURS)
    return [{"type": type, "status": "Unknown", "reason": _UNSTATED, "message": message} for type in types]


def _worst(type: str, stated: Sequence[tuple[str, Json]], clusters: Sequence[str], bad: bool) -> Json:
    worst_first = ["True", "Unknown", "False"] if bad else ["False", "Unknown", "True"]
    cluster, chosen = min(stated, key=lambda each: (_rank(worst_first, each[1]), each[0]))
    status = str(chosen.get("status"))
    unstated = sorted(set(clusters).difference(each for each, _ in stated))
    if unstated and not bad and type not in _SOMETIMES and status == "True":
        message = _UNSTATED_MESSAGE.format(cluster=unstated[0])
        return {"type": type, "status": "Unknown", "reason": _UNSTATED, "message": message}
    message = str(chosen.get("message") or "")
    agreed = not unstated and len({str(each.get("status")) for _, each in stated}) == 1
    if not agreed:
        message = f"{cluster}: {message}" if message else cluster
    return {"type": type, "status": status, "reason": str(chosen.get("reason") or ""), "message": message}


def _is_bad(type: str, bad_news: Collection[str]) -> bool:
    return type in bad_news or type.endswith(_BAD_ENDS)


def _rank(worst_first: Sequence[str], condition: Json) -> int:
    status = condition.get("status")
    return worst_first.index(status) if status in worst_first else 1
