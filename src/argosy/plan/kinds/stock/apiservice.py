"""APIService: each cluster says itself whether the group is served there, and may fill in whom it trusts for that."""

from typing import Final

from argosy.kube.conditions import find
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.rollout import status_of

__all__ = ["KIND"]

_AUTHORITY: Final = ("spec", "caBundle")


def _retain(desired: Json, observed: Json) -> Json:
    theirs = fields.get(observed, _AUTHORITY, None)
    if theirs is None or fields.get(desired, _AUTHORITY, None) is not None:
        return desired
    return fields.put(desired, _AUTHORITY, theirs)


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """Clusters without an aggregator say nothing of it."""
    available = find(status_of(copy).get("conditions"), "Available")
    if available is None or available.get("status") == "True":
        return []
    return [f"its group is not served: {available.get('message') or available.get('reason')}"]


KIND: Final = Kind(retain=_retain, unfinished=_unfinished)
