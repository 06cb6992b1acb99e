"""HorizontalPodAutoscaler: replicas added up. An average of all clusters' pods weighs each cluster by its replicas."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from argosy.kube.conditions import find
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, latest, merged, sums
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import status_of

__all__ = ["KIND"]

_SOURCES: Final = ("resource", "containerResource", "pods", "object", "external")
_UTILIZATION: Final = "averageUtilization"


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    counts = sums(members, ("desiredReplicas",), ("currentReplicas",))
    # The API server writes the field also if there are none.
    return counts | latest(members, "lastScaleTime") | {"currentMetrics": _metrics(members) or None}


def _metrics(members: Sequence[Member]) -> list[Json]:
    """Metrics that all members report. Of values that differ, only the average utilization is told: others may be no averages."""
    found = []
    by_identity = [{_identity(metric): metric for metric in _of(member)} for member in members]
    for identity, metric in by_identity[0].items() if by_identity else ():
        same = [theirs[identity] for theirs in by_identity if identity in theirs]
        if len(same) != len(members):
            continue
        if all(each == metric for each in same):
            found.append(metric)
        elif (average := _average(members, same)) is not None:
            source = next(name for name in _SOURCES if isinstance(metric.get(name), dict))
            found.append(fields.put(metric, (source, "current"), {_UTILIZATION: average}))
    return found


def _average(members: Sequence[Member], metrics: Sequence[Json]) -> int | None:
    values = [fields.number(_current(each), _UTILIZATION) for each in metrics]
    weights = [fields.number(each.status, "currentReplicas") or 0 for each in members]
    if any(value is None for value in values) or not sum(weights):
        return None
    return round(sum((value or 0) * weight for value, weight in zip(values, weights, strict=True)) / sum(weights))


def _of(member: Member) -> list[Json]:
    metrics = member.status.get("currentMetrics")
    return [each for each in metrics if isinstance(each, dict)] if isinstance(metrics, list) else []


def _current(metric: Json) -> Json:
    """The value, of whatever type the metric is."""
    sources = [source for name in _SOURCES if isinstance(source := metric.get(name), dict)]
    current: Any = sources[0].get("current") if sources else None
    return current if isinstance(current, dict) else {}


def _identity(metric: Json) -> bytes:
    """What is measured."""
    named = {
        name: {key: value for key, value in metric[name].items() if key != "current"}
        for name in _SOURCES
        if isinstance(metric.get(name), dict)
    }
    return orjson.dumps([metric.get("type"), named], option=orjson.OPT_SORT_KEYS)


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """It is as wanted if the member can scale what it names. Metrics may be absent for long where nothing runs."""
    able = find(status_of(copy).get("conditions"), "AbleToScale") or {}
    return [f"it cannot scale: {able.get('message') or able.get('reason')}"] if able.get("status") == "False" else []


KIND: Final = Kind(aggregate=merged(_merge), unfinished=_unfinished)
