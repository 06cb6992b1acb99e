"""Deployment: counts added up, the revision left to members, the conditions `kubectl rollout status` and `wait` need."""

from collections.abc import Collection, Sequence
from typing import Final

from argosy.api.conditions import CLUSTER_NOT_REACHABLE, HELD_REASON
from argosy.kube.conditions import find
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.cause import causes_text
from argosy.plan.kinds.conditions import listed, settled, unreachable
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.lack import About
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.rollout import count, missing_replicas, replicas_of, status_of, surplus, unobserved

__all__ = ["KIND"]

_COUNTS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
#: What keeps a roll-out from being complete while it goes on.
_UNDER_WAY: Final = (
    About.DECISION,
    About.PLACEMENT,
    About.PROPAGATION,
    About.OBSERVATION,
    About.COMPLETION,
    About.REPORT,
)
#: Each cluster's deployment controller counts revisions; a propagated one would be overwritten back and forth forever.
_REVISION: Final = ("metadata", "annotations", "deployment.kubernetes.io/revision")


def _retain(desired: Json, observed: Json) -> Json:
    revision = fields.get(observed, _REVISION, None)
    return desired if revision is None else fields.put(desired, _REVISION, revision)


def _aggregate(aggregation: Aggregation) -> Json | None:
    if any(each.object is not None and "status" not in each.object for each in aggregation.observations):
        return None
    before = aggregation.status
    status: Json = {}
    if (generation := aggregation.observed_generation) is not None:
        status["observedGeneration"] = generation
    status |= _counts(aggregation) if aggregation.complete else {key: before[key] for key in _COUNTS if key in before}
    wanted = [*_conditions(aggregation), *unreachable(aggregation)]
    if not aggregation.complete:
        kept = [each for each in before.get("conditions") or () if not any(each["type"] == w["type"] for w in wanted)]
        wanted = [*({k: v for k, v in each.items() if not k.startswith("last")} for each in kept), *wanted]
    conditions = settled(wanted, before.get("conditions"), aggregation.now, update_time=True)
    return {**status, "conditions": conditions} if conditions else status


def _counts(aggregation: Aggregation) -> Json:
    """Zero counts are left out, as Kubernetes does."""
    sums = {field: sum(int(_status(each).get(field) or 0) for each in aggregation.present) for field in _COUNTS}
    return {field: count for field, count in sums.items() if count}


def _conditions(aggregation: Aggregation) -> list[Json]:
    members = aggregation.present
    if not members:
        return []
    if not aggregation.complete:
        return [_unknown(aggregation, each) for each in ("Available", "Progressing") if _is_stated(aggregation, each)]
    return [*_available(aggregation), *_progressing(aggregation), *_replica_failure(members)]


def _available(aggregation: Aggregation) -> list[Json]:
    """As members say it, where their word counts: availability in clusters that cannot be read is not known."""
    unavailable = [
        each.cluster for each in aggregation.observations if _condition(each, "Available").get("status") != "True"
    ]
    unplaced = aggregation.lacks(About.PLACEMENT)
    if unavailable:
        message = f"Deployment does not have minimum availability in clusters {listed(unavailable)}."
        message = _with_causes(message, aggregation, unavailable)
    elif unplaced:
        message = f"Deployment does not have minimum availability: {unplaced[0].text}."
    elif aggregation.lacks(About.CLUSTER) or aggregation.unknown:
        return [_unknown(aggregation, "Available")]
    else:
        return [_stated("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")]
    return [_stated("Available", "False", "MinimumReplicasUnavailable", message)]


def _progressing(aggregation: Aggregation) -> list[Json]:
    """Complete only if nothing is missing. A member that sets no deadline reports no Progressing condition and does not count."""
    members = aggregation.present
    stated = {each.cluster: condition for each in members if (condition := _condition(each, "Progressing"))}
    if not stated:
        return []
    failed = [cluster for cluster, condition in stated.items() if condition.get("status") == "False"]
    if failed:
        reason = str(stated[min(failed)].get("reason") or "ProgressDeadlineExceeded")
        message = f"Deployment is not progressing in clusters {listed(failed)}."
        return [_stated("Progressing", "False", reason, _with_causes(message, aggregation, failed))]
    if held := aggregation.lacks(About.HOLD):
        return [_stated("Progressing", "False", HELD_REASON, f"Deployment is not progressing: {held[0].text}.")]
    rolling = {c for c, condition in stated.items() if condition.get("reason") != "NewReplicaSetAvailable"}
    under_way = aggregation.lacks(*_UNDER_WAY)
    rolling |= {lack.cluster for lack in under_way if lack.cluster}
    if rolling:
        message = f"Deployment is progressing in clusters {listed(sorted(rolling))}."
        return [_stated("Progressing", "True", "ReplicaSetUpdated", _with_causes(message, aggregation, rolling))]
    if under_way:
        return [_stated("Progressing", "True", "ReplicaSetUpdated", f"Deployment is progressing: {under_way[0].text}.")]
    if aggregation.lacks(About.CLUSTER) or aggregation.unknown:
        return [_unknown(aggregation, "Progressing")]
    return [_stated("Progressing", "True", "NewReplicaSetAvailable", "Deployment has successfully progressed.")]


def _unknown(aggregation: Aggregation, type: str) -> Json:
    """For what only clusters know that cannot be read, or are no members."""
    clusters = {lack.cluster for lack in aggregation.lacks(About.CLUSTER)}
    clusters |= {each.cluster for each in aggregation.unknown}
    message = f"the state in clusters {listed(sorted(clusters))} is not known"
    return _stated(type, "Unknown", CLUSTER_NOT_REACHABLE[0], message)


def _is_stated(aggregation: Aggregation, type: str) -> bool:
    return find(aggregation.status.get("conditions"), type) is not None


def _with_causes(message: str, aggregation: Aggregation, clusters: Collection[str]) -> str:
    causes = {name: cause for name, cause in aggregation.causes.items() if name in clusters}
    return f"{message} {causes_text(causes)}" if causes else message


def _replica_failure(members: Sequence[Observation]) -> list[Json]:
    failing = {
        each.cluster: condition
        for each in members
        if (condition := _condition(each, "ReplicaFailure")).get("status") == "True"
    }
    if not failing:
        return []
    first = min(failing)
    reason, message = str(failing[first].get("reason") or ""), f"{first}: {failing[first].get('message', '')}"
    return [_stated("ReplicaFailure", "True", reason, message)]


def _stated(type: str, status: str, reason: str, message: str) -> Json:
    return {"type": type, "status": status, "reason": reason, "message": message}


def _status(observation: Observation) -> Json:
    return (observation.object or {}).get("status") or {}


def _condition(observation: Observation, type: str) -> Json:
    return find(_status(observation).get("conditions"), type) or {}


def _unfinished(desired: Json, copy: Json) -> list[str]:
    if behind := unobserved(copy):
        return behind
    wanted, updated, running = replicas_of(desired), count(copy, "updatedReplicas"), count(copy, "replicas")
    found = missing_replicas(updated, wanted, "updated")
    if not found and running > updated:
        found.append(f"{running - updated} replicas of the old version are still running")
    found += missing_replicas(count(copy, "availableReplicas"), wanted, "available")
    found = found or surplus(copy, wanted)
    conditions = status_of(copy).get("conditions")
    progressing, failing = find(conditions, "Progressing") or {}, find(conditions, "ReplicaFailure") or {}
    if progressing.get("status") == "False":
        found.append(f"the roll-out does not progress: {progressing.get('reason')}")
    if failing.get("status") == "True":
        found.append(f"pods cannot be created: {failing.get('message')}")
    return found


KIND: Final = Kind(
    pod_spec=("spec", "template", "spec"),
    feedback_with_status=True,
    retain=_retain,
    update_time=True,
    aggregate=_aggregate,
    unfinished=_unfinished,
)
