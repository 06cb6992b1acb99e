"""Conditions of many members folded into one, with times that move only when something changed."""

from collections.abc import Sequence

from argosy.api.conditions import CLUSTER_NOT_REACHABLE, MEMBERS_UNREACHABLE, NOT_HEARD_OF_MESSAGE
from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.observation import Aggregation, Observation

__all__ = ["listed", "settled", "unreachable"]


def listed(clusters: Sequence[str]) -> str:
    return f"[{', '.join(sorted(clusters))}]"


def settled(
    wanted: Sequence[Json], before: Sequence[Json] | None, now: str, *, update_time: bool = False
) -> list[Json]:
    """The wanted conditions with their times, kept from before if nothing changed, so that nothing is written.

    `update_time` is for kinds whose conditions have a lastUpdateTime. For others the API server would drop it, and the status
    would seem to differ forever.
    """
    return [_settled(condition, find(before, condition["type"]) or {}, now, update_time) for condition in wanted]


def _settled(wanted: Json, before: Json, now: str, update_time: bool) -> Json:
    flipped = before.get("status") != wanted["status"]
    changed = any(before.get(key) != value for key, value in wanted.items())
    times = {"lastTransitionTime": now if flipped else before.get("lastTransitionTime") or now}
    if update_time:
        times["lastUpdateTime"] = now if changed else before.get("lastUpdateTime") or now
    return {**wanted, **times}


def unreachable(aggregation: Aggregation) -> list[Json]:
    """The condition that marks counts as the last known ones, while some clusters are unreachable."""
    if not aggregation.unreachable:
        return []
    reason, _ = CLUSTER_NOT_REACHABLE
    clusters = listed([_named(each) for each in aggregation.unreachable])
    message = f"counts of clusters {clusters} are the last known ones"
    return [{"type": MEMBERS_UNREACHABLE, "status": "True", "reason": reason, "message": message}]


def _named(unreachable: Observation) -> str:
    if not unreachable.silent_since:
        return unreachable.cluster
    return f"{unreachable.cluster} ({NOT_HEARD_OF_MESSAGE.format(since=unreachable.silent_since)})"
