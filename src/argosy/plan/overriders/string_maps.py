"""The overriders of labels and annotations: the whole map is replaced."""

from collections.abc import Iterable, Mapping
from typing import Literal

from argosy.api.overriders import ADD_IF_ABSENT, DELETE, OVERWRITE, StringMapOverrider
from argosy.plan.copies.patches import OverrideError
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.metadata import annotations_of, labels_of

__all__ = ["annotations", "labels"]


def annotations(items: Iterable[StringMapOverrider], obj: Json) -> Patches:
    """Raises OverrideError."""
    return _patches("annotations", annotations_of(obj), items)


def labels(items: Iterable[StringMapOverrider], obj: Json) -> Patches:
    """Raises OverrideError."""
    return _patches("labels", labels_of(obj), items)


def _patches(
    field: Literal["labels", "annotations"], before: Mapping[str, str], items: Iterable[StringMapOverrider]
) -> Patches:
    values = dict(before)
    for item in items:
        values = _changed(field, values, item)
    return [{"op": "replace", "path": f"/metadata/{field}", "value": values}]


def _changed(field: str, before: dict[str, str], item: StringMapOverrider) -> dict[str, str]:
    value = item.value or {}
    match item.operator or OVERWRITE:
        case "addIfAbsent":
            if not value:
                raise OverrideError(f"{ADD_IF_ABSENT} of {field} needs a value")
            if present := sorted(before.keys() & value.keys()):
                raise OverrideError(f"{ADD_IF_ABSENT} of {field}, but {', '.join(present)} is there")
            return {**before, **value}
        case "overwrite":
            return {key: value.get(key, present) for key, present in before.items()}
        case "delete":
            return {key: present for key, present in before.items() if key not in value}
        case other:
            raise OverrideError(f"unknown operator {other!r}: {ADD_IF_ABSENT}, {OVERWRITE} or {DELETE}")
