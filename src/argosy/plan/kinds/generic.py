"""The status of any kind: that of the only member, or of several members what they agree on, summed counts, folded conditions.

Counts are numbers whose names say so. Any other value that members disagree on is left out rather than guessed. What a copy
lacks is read from what most kinds have: observedGeneration, counts of replicas, the condition Ready.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.api.typeconfigs import PathDefinition
from argosy.kube.conditions import find
from argosy.plan import fields
from argosy.plan.fields import ABSENT, Json
from argosy.plan.kinds.conditions import settled, unreachable
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import missing_replicas, status_of, unobserved

__all__ = ["merge", "unfinished"]

_COUNT: Final = re.compile(r"(?i)(replicas|numberscheduled|active|succeeded|failed|ready)$|^number[A-Z]")


def merge(aggregation: Aggregation) -> Json | None:
    """The source's new status, None if none can be determined."""
    statuses = [
        (each.cluster, status)
        for each in aggregation.present
        if each.object is not None and isinstance(status := each.object.get("status"), dict)
    ]
    if not statuses:
        return None
    if not aggregation.complete:
        return _marked(dict(aggregation.status), aggregation)
    merged = dict(statuses[0][1]) if len(statuses) == 1 else _merged(statuses, aggregation)
    merged.pop("observedGeneration", None)
    if any("observedGeneration" in status for _, status in statuses):
        generation = aggregation.observed_generation
        if generation is not None:
            merged["observedGeneration"] = generation
    return _marked(merged, aggregation)


def _marked(status: Json, aggregation: Aggregation) -> Json:
    """Adds the condition that counts are the last known ones, if the kind has conditions."""
    if "conditions" not in status:
        return status
    mark = settled(unreachable(aggregation), aggregation.status.get("conditions"), aggregation.now)
    conditions = [each for each in status.get("conditions") or () if each.get("type") not in {m["type"] for m in mark}]
    return {**status, "conditions": [*conditions, *mark]} if mark else status


def _merged(statuses: Sequence[tuple[str, Json]], aggregation: Aggregation) -> Json:
    result: Json = {}
    for field in sorted({field for _, status in statuses for field in status}):
        if field == "conditions":
            wanted = _folded([(cluster, status.get(field) or []) for cluster, status in statuses])
            result[field] = settled(wanted, aggregation.status.get("conditions"), aggregation.now)
            continue
        value = _value(field, [status.get(field, ABSENT) for _, status in statuses])
        if value is not ABSENT:
            result[field] = value
    return result


def _value(field: str, values: Sequence[Any]) -> Any:
    numbers = [0 if value is ABSENT else value for value in values]
    if _COUNT.search(field) and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        return sum(numbers)
    return values[0] if all(value == values[0] for value in values) else ABSENT


def _folded(conditions: Sequence[tuple[str, Sequence[Json]]]) -> list[Json]:
    """By type: the condition all members agree on, or the first that differs, with its cluster's name."""
    result = []
    for type in sorted({str(each.get("type")) for _, stated in conditions for each in stated}):
        stated = [
            (cluster, each) for cluster, members in conditions for each in members if str(each.get("type")) == type
        ]
        statuses = {str(each.get("status")) for _, each in stated}
        if len(stated) == len(conditions) and len(statuses) == 1:
            cluster, chosen = stated[0]
            message = chosen.get("message", "")
        else:
            cluster, chosen = min(stated, key=lambda item: (item[1].get("status") == "True", item[0]))
            message = f"{cluster}: {chosen.get('message', '')}"
        status = statuses.pop() if len(statuses) == 1 else "False"
        result.append({"type": type, "status": status, "reason": chosen.get("reason", ""), "message": message})
    return result


def unfinished(paths: PathDefinition, desired: Json, copy: Json) -> list[str]:
    """What a member's copy of any kind lacks. A kind that reports nothing of this lacks nothing."""
    status = status_of(copy)
    if "observedGeneration" in status and (behind := unobserved(copy)):
        return behind
    wanted = fields.number(desired, paths.replicas_spec or "spec.replicas") or 0
    found: list[str] = []
    if path := paths.available_replicas_status:
        found = missing_replicas(fields.number(copy, path) or 0, wanted, "available")
    if not found and (paths.ready_replicas_status or "replicas" in status or "readyReplicas" in status):
        path = paths.ready_replicas_status or "status.readyReplicas"
        found = missing_replicas(fields.number(copy, path) or 0, wanted, "ready")
    ready = find(status.get("conditions"), "Ready")
    if ready is not None and ready.get("status") != "True":
        found.append(f"it is not ready: {ready.get('reason') or ready.get('message')}")
    return found
