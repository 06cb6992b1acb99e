"""Conditions of many members folded into one, with times that move only when something changed."""

from collections.abc import Sequence
from typing import Final

from argosy.api.conditions import (
    CLUSTER_NOT_REACHABLE,
    MEMBERS_UNREACHABLE,
    NOT_AS_WANTED_REASON,
    NOT_HEARD_OF_MESSAGE,
    PODS_FAILING,
)
from argosy.kube.conditions import find, stated
from argosy.plan.fields import Json
from argosy.plan.kinds.cause import causes_text
from argosy.plan.kinds.lack import About
from argosy.plan.kinds.observation import Aggregation, Observation

__all__ = ["concluded", "listed", "settled", "unreachable", "with_update_times"]


#: They say that all is done, as `Ready` of most kinds does, and what they are about.
_DONE: Final = frozenset({"Completed", "Healthy", "Ready", "Released", "Succeeded", "Synced"})
_FOR_DONE: Final = (
    About.DECISION,
    About.HOLD,
    About.PLACEMENT,
    About.CLUSTER,
    About.PROPAGATION,
    About.OBSERVATION,
    About.COMPLETION,
)
#: They say how it is where it is: nobody knows that of a cluster that cannot be read, and replicas in no cluster are not.
_AS_IT_IS: Final = frozenset({"Available", "ContainersReady", "Established", "Initialized", "PodScheduled"})
#: The end of a Job, which cannot be taken back once it is stored: it waits for what is still to be sent somewhere.
_END: Final = frozenset({"Complete", "SuccessCriteriaMet"})
_FOR_END: Final = (About.DECISION, About.HOLD, About.PLACEMENT, About.PROPAGATION)


def listed(clusters: Sequence[str]) -> str:
    return f"[{', '.join(sorted(clusters))}]"


def settled(
    wanted: Sequence[Json], before: Sequence[Json] | None, now: str, *, update_time: bool = False
) -> list[Json]:
    """The wanted conditions with their times, kept from before if nothing changed, so that nothing is written.

    `update_time` is for kinds whose conditions have a lastUpdateTime, which some require. For others the API server would drop
    it, and the status would seem to differ forever.
    """
    by_type = {str(each.get("type")): each for each in reversed(before or ())}
    return [_settled(condition, by_type.get(condition["type"], {}), now, update_time) for condition in wanted]


def _settled(wanted: Json, before: Json, now: str, update_time: bool) -> Json:
    if before:
        # A server either drops empty texts or always has them; and it adds a time nobody sets to conditions of some kinds.
        wanted = {key: value for key, value in wanted.items() if value != "" or key in before}
        if "lastProbeTime" in before:
            wanted["lastProbeTime"] = before["lastProbeTime"]
    flipped = before.get("status") != wanted["status"]
    changed = any(before.get(key) != value for key, value in wanted.items())
    times = {"lastTransitionTime": now if flipped else before.get("lastTransitionTime") or now}
    if update_time:
        times["lastUpdateTime"] = now if changed else before.get("lastUpdateTime") or now
    return {**wanted, **times}


def with_update_times(conditions: Sequence[Json]) -> bool:
    """Whether these are of a kind whose conditions have a lastUpdateTime: all of them do."""
    return bool(conditions) and all("lastUpdateTime" in each for each in conditions)


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


def concluded(status: Json, aggregation: Aggregation, *, has_pods: bool, update_time: bool) -> Json:
    """A merged status of any kind, without claims that what is missing refutes; and if its kind has pods, with the reason why
    they are not ready. Other kinds may have no room for it, and an API server would drop it again and again."""
    if "conditions" in status and stated(status) is None:
        return status
    before = stated(aggregation.status)
    conditions = list(stated(status) or ())
    wanted = [each for each in conditions if each.get("type") != PODS_FAILING]
    if find(before, "Complete") is None and aggregation.lacks(*_FOR_END):
        wanted = [each for each in wanted if each.get("type") not in _END]
        if len(wanted) < len(conditions):
            status = {key: value for key, value in status.items() if key != "completionTime"}
    added = [*_unproven(wanted, aggregation), *(_failing(aggregation) if has_pods else [])]
    if not added and wanted == conditions:
        return status
    timed = update_time or with_update_times(conditions)
    told = {each["type"]: each for each in settled(added, before, aggregation.now, update_time=timed)}
    wanted = [told.pop(each.get("type"), each) for each in wanted] + list(told.values())
    rest = {key: value for key, value in status.items() if key != "conditions"}
    return {**rest, "conditions": wanted} if wanted else rest


def _unproven(conditions: Sequence[Json], aggregation: Aggregation) -> list[Json]:
    """What is not true of all as long as something is missing, though the members' conditions say so."""
    done, placed = aggregation.lacks(*_FOR_DONE), aggregation.lacks(About.PLACEMENT)
    seen = placed or aggregation.lacks(About.CLUSTER)
    found = []
    for type in sorted({each["type"] for each in conditions if each.get("type") and each.get("status") == "True"}):
        if type in _DONE and done:
            status, why = "False", done[0].text
        elif type in _AS_IT_IS and seen:
            status, why = "False" if placed else "Unknown", seen[0].text
        else:
            continue
        found.append({"type": type, "status": status, "reason": NOT_AS_WANTED_REASON, "message": why})
    return found


def _failing(aggregation: Aggregation) -> list[Json]:
    """One condition for all clusters, with the reason of the first."""
    causes = aggregation.causes
    if not causes:
        return []
    reason = causes[min(causes)].reason
    return [{"type": PODS_FAILING, "status": "True", "reason": reason, "message": causes_text(causes)}]
