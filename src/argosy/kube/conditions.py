"""Status conditions: found by type, changed so that lastTransitionTime says when the status last flipped.

The caller brings the time; nothing here reads a clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["find", "is_false", "is_true", "remove_condition", "set_condition", "stated"]

Condition = dict[str, Any]


def find(conditions: Iterable[Condition] | None, type: str) -> Condition | None:
    for condition in conditions or ():
        if condition.get("type") == type:
            return condition
    return None


def stated(status: Mapping[str, Any]) -> list[Condition] | None:
    """The conditions of a status; None if it has none, or what has that name is something else, as in some custom kinds."""
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        return None
    if not all(isinstance(each, dict) and isinstance(each.get("type", ""), str) for each in conditions):
        return None
    return conditions


def is_true(conditions: Iterable[Condition] | None, type: str) -> bool:
    return (find(conditions, type) or {}).get("status") == "True"


def is_false(conditions: Iterable[Condition] | None, type: str) -> bool:
    return (find(conditions, type) or {}).get("status") == "False"


def set_condition(
    conditions: Sequence[Condition] | None,
    type: str,
    status: str,
    reason: str,
    message: str,
    now: str,
    observed_generation: int | None = None,
) -> list[Condition]:
    """The conditions with this one set; a new list, order kept, other fields of the condition carried over."""
    wanted: Condition = {"type": type, "status": status, "reason": reason, "message": message}
    if observed_generation is not None:
        wanted["observedGeneration"] = observed_generation
    result: list[Condition] = []
    found = False
    for condition in conditions or ():
        if condition.get("type") != type:
            result.append(condition)
            continue
        if found:  # a duplicate breaks the list's map key; the first one counts
            continue
        found = True
        unchanged = condition.get("status") == status and condition.get("lastTransitionTime")
        result.append(
            {**condition, **wanted, "lastTransitionTime": condition["lastTransitionTime"] if unchanged else now}
        )
    if not found:
        result.append({**wanted, "lastTransitionTime": now})
    return result


def remove_condition(conditions: Sequence[Condition] | None, type: str) -> list[Condition]:
    return [condition for condition in conditions or () if condition.get("type") != type]
