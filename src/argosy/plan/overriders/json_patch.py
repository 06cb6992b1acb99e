"""The overrider that states JSON patches itself."""

from collections.abc import Iterable

from argosy.api.overriders import JsonPatchOverrider
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json

__all__ = ["json_patch"]


def json_patch(items: Iterable[JsonPatchOverrider], obj: Json) -> Patches:
    """As stated."""
    return [_patch(item) for item in items]


def _patch(item: JsonPatchOverrider) -> Json:
    """An API server drops a null value when it stores the patch, so null is left out: absent means null anyway."""
    patch: Json = {"op": item.operator} if item.operator else {}
    patch["path"] = item.path
    return patch if item.value is None else {**patch, "value": item.value}
