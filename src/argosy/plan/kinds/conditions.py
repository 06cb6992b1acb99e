"""Conditions of many members folded into one, with times that move only when something changed."""

from collections.abc import Sequence

from argosy.api.conditions import CLUSTER_NOT_REACHABLE, MEMBERS_UNREACHABLE
from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.observation import Aggregation

__all__ = ["listed", "settled", "unreachable"]


def listed(clusters: Sequence[str]) -> str:
    return f"[{', '.join(sorted(clusters))}]"


def settled(wanted: Sequence[Json], before: Sequence[Json] | None, now: str) -> list[Json]:
    """The wanted conditions with their times: kept from before where nothing changed, so that nothing is written."""
    return [_settled(condition, find(before, condition["type"]), now) for condition in wanted]


def _settled(wanted: Json, before: Json | None, now: str) -> Json:
    if before is None:
        return {**wanted, "lastUpdateTime": now, "lastTransitionTime": now}
    kept = {key: value for key, value in before.items() if key in ("lastUpdateTime", "lastTransitionTime")}
    if all(before.get(key) == value for key, value in wanted.items()):
        return {**wanted, **kept}
    flipped = before.get("status") != wanted["status"]
    transition = now if flipped else kept.get("lastTransitionTime", now)
    return {**wanted, "lastUpdateTime": now, "lastTransitionTime": transition}


def unreachable(aggregation: Aggregation) -> list[Json]:
    """The condition that marks counts as last known, while they are."""
    if not aggregation.unreachable:
        return []
    reason, _ = CLUSTER_NOT_REACHABLE
    message = f"counts of clusters {listed(aggregation.unreachable)} are the last known ones"
    return [{"type": MEMBERS_UNREACHABLE, "status": "True", "reason": reason, "message": message}]
