"""CustomResourceDefinition: the API server serves its kind by its status, so members' statuses must not change the source's."""

from typing import Final

from argosy.kube.conditions import find, is_true
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.rollout import status_of

__all__ = ["KIND"]


def _unfinished(desired: Json, copy: Json) -> list[str]:
    conditions = status_of(copy).get("conditions")
    if is_true(conditions, "Established"):
        return []
    names = find(conditions, "NamesAccepted") or {}
    why = f": {names.get('message')}" if names.get("status") == "False" else ""
    return [f"its kind is not served yet{why}"]


KIND: Final = Kind(aggregate=lambda aggregation: None, unfinished=_unfinished)
