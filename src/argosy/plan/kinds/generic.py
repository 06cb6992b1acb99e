"""The status of any kind: that of the only member, or of several members what they agree on, summed counts, folded conditions.

Counts are numbers whose names say so. Any other value that members disagree on is left out rather than guessed. What a copy
lacks is read from what most kinds have: observedGeneration, counts of replicas, the condition Ready.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from argosy.api.typeconfigs import PathDefinition
from argosy.kube.conditions import find, stated
from argosy.plan import fields
from argosy.plan.fields import ABSENT, Json
from argosy.plan.kinds.conditions import settled, unreachable, with_update_times
from argosy.plan.kinds.merging import Member, merged, reported, with_generation
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import missing_replicas, status_of, unobserved

__all__ = ["is_stock", "merge", "of_all", "unfinished", "value_of_all"]

#: While one of these is true, most controllers that have them are not done.
_UNFINISHED: Final = ("Stalled", "Reconciling")

_COUNT: Final = re.compile(r"(?i)(replicas|numberscheduled|active|succeeded|failed|ready)$|^number[A-Z]")


def of_all(members: Sequence[Member], aggregation: Aggregation) -> Json:
    """All fields but conditions. If no member reports any, no count is more than zero."""
    if not members:
        counts = ((field, value) for field, value in aggregation.status.items() if _COUNT.search(field))
        return {field: 0 for field, value in counts if isinstance(value, int) and not isinstance(value, bool)}
    result: Json = {}
    for field in sorted({field for each in members for field in each.status if field != "conditions"}):
        value = value_of_all(field, [each.status.get(field, ABSENT) for each in members])
        if value is not ABSENT:
            result[field] = value
    return result


_several: Final = merged(of_all)


def merge(aggregation: Aggregation) -> Json | None:
    """The source's new status, None if none can be determined."""
    members, source = reported(aggregation), aggregation.source
    group, _, _ = str(source.get("apiVersion") or "").rpartition("/")
    if not members and is_stock(group, str(source.get("kind") or "")):
        return None
    if len(members) != len(aggregation.observations) or len(members) != 1 or not aggregation.complete:
        status = _several(aggregation)
        told = [aggregation.status, *(each.status for each in members)]
        if status is None or stated(status) is None or any(stated(each) is not None for each in told):
            return status
        # Kinds without conditions have no room for ours.
        return {key: value for key, value in status.items() if key != "conditions"}
    [member] = members
    status = with_generation(dict(member.status), members, aggregation)
    if (conditions := stated(status)) is None:
        return status
    kept = [{key: value for key, value in each.items() if key != "observedGeneration"} for each in conditions]
    timed = with_update_times(kept)
    mark = settled(unreachable(aggregation), stated(aggregation.status), aggregation.now, update_time=timed)
    return {**status, "conditions": [*kept, *mark]}


def is_stock(group: str, kind: str) -> bool:
    """Whether it is one of Kubernetes' own kinds: the control plane gives some of them a status by itself."""
    return (group, kind) in _stock()


@lru_cache(maxsize=1)
def _stock() -> frozenset[tuple[str, str]]:
    # Here, because most commands that only look at a kind need no schemas, which take long to load.
    from argosy.kube import schema

    return frozenset((group, kind) for group, _, kind in schema.load().kinds())


def value_of_all(field: str, values: Sequence[Any]) -> Any:
    """What is shown of a field with these values, ABSENT if nothing."""
    numbers = [0 if value is ABSENT else value for value in values]
    if _COUNT.search(field) and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        return sum(numbers)
    return values[0] if all(value == values[0] for value in values) else ABSENT


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
    conditions = stated(status)
    ready = find(conditions, "Ready")
    if ready is not None and ready.get("status") != "True":
        found.append(f"it is not ready: {ready.get('reason') or ready.get('message')}")
    for type in _UNFINISHED:
        told = find(conditions, type)
        if not found and told is not None and told.get("status") == "True":
            found.append(f"it is {type.lower()}: {told.get('reason') or told.get('message')}")
    return found
