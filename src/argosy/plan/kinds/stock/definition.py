"""CustomResourceDefinition: the API server serves its kind by its status, so members' statuses must not change the source's."""

from typing import Final

from argosy.kube.conditions import find, is_true
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.rollout import status_of

__all__ = ["DEFINITION", "KIND", "established"]

#: Version and kind.
DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def established(definition: Json) -> bool:
    """Whether a cluster has accepted a definition: it serves the kind, or is about to."""
    return is_true(status_of(definition).get("conditions"), "Established")


def _unfinished(desired: Json, copy: Json) -> list[str]:
    if established(copy):
        return []
    names = find(status_of(copy).get("conditions"), "NamesAccepted") or {}
    why = f": {names.get('message')}" if names.get("status") == "False" else ""
    return [f"its kind is not served yet{why}"]


KIND: Final = Kind(aggregate=lambda aggregation: None, unfinished=_unfinished)
