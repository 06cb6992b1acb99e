"""Deployment: counts added up, the revision left to members, the conditions `kubectl rollout status` and `wait` need."""

from collections.abc import Sequence
from typing import Final

from argosy.kube.conditions import find
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.conditions import listed, settled, unreachable
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.rollout import count, missing_replicas, replicas_of, status_of, surplus, unobserved

__all__ = ["KIND"]

_COUNTS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


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
    if not members or not aggregation.complete:
        return []
    return [*_available(members), *_progressing(members), *_replica_failure(members)]


def _available(members: Sequence[Observation]) -> list[Json]:
    unavailable = [each.cluster for each in members if _condition(each, "Available").get("status") != "True"]
    if unavailable:
        message = f"Deployment does not have minimum availability in clusters {listed(unavailable)}."
        return [_stated("Available", "False", "MinimumReplicasUnavailable", message)]
    return [_stated("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")]


def _progressing(members: Sequence[Observation]) -> list[Json]:
    """A member that sets no deadline reports no Progressing condition and does not count."""
    stated = {each.cluster: condition for each in members if (condition := _condition(each, "Progressing"))}
    if not stated:
        return []
    failed = [cluster for cluster, condition in stated.items() if condition.get("status") == "False"]
    if failed:
        reason = str(stated[min(failed)].get("reason") or "ProgressDeadlineExceeded")
        return [_stated("Progressing", "False", reason, f"Deployment is not progressing in clusters {listed(failed)}.")]
    rolling = [c for c, condition in stated.items() if condition.get("reason") != "NewReplicaSetAvailable"]
    if rolling:
        message = f"Deployment is progressing in clusters {listed(rolling)}."
        return [_stated("Progressing", "True", "ReplicaSetUpdated", message)]
    return [_stated("Progressing", "True", "NewReplicaSetAvailable", "Deployment has successfully progressed.")]


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
    aggregate=_aggregate,
    unfinished=_unfinished,
)
