"""Setting defaults."""

from typing import Any

from argosy.server.registry import Object

__all__ = ["fill", "fill_condition_times", "fill_conditions"]


def fill(values: Object, field: str, default: Any) -> None:
    """Default one field; Kubernetes treats null as absent."""
    if values.get(field) is None:
        values[field] = default


def fill_conditions(obj: Object) -> None:
    """Conditions of the common type (metav1.Condition), all of whose fields but the generation are always written."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        condition.setdefault("lastTransitionTime", None)
        for field in ("message", "reason", "status", "type"):
            fill(condition, field, "")


def fill_condition_times(obj: Object, *fields: str) -> None:
    """Times of conditions are always written; an absent one is null."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        for field in fields:
            condition.setdefault(field, None)
