"""Patches: one cluster's changes to an object, applied. Patches may change neither its identity nor the rights it grants."""

from collections.abc import Mapping
from typing import Any, Final

from argosy.api import keys
from argosy.kube import jsonpatch
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.metadata import annotations_of, is_string_map, labels_of

__all__ = ["OverrideError", "apply_patches"]

#: The metadata that may differ from cluster to cluster; the rest is the object's identity.
_METADATA: Final = ("labels", "annotations", "finalizers")
_RBAC: Final = "rbac.authorization.k8s.io/"


class OverrideError(ValueError):
    """A rule or patch that cannot be applied; the message names it."""


def apply_patches(obj: Json, patches: Patches) -> Json:
    """The object with patches applied; an empty operation means replace. Raises OverrideError."""
    if not patches:
        return obj
    try:
        patched: Any = jsonpatch.apply(obj, [{**patch, "op": patch.get("op") or "replace"} for patch in patches])
    except jsonpatch.JsonPatchError as error:
        raise OverrideError(str(error)) from None
    _check_identity(obj, patched)
    metadata = patched["metadata"]
    if not is_string_map(metadata.get("labels")) or not is_string_map(metadata.get("annotations")):
        raise OverrideError("labels and annotations must stay maps of strings")
    if not _is_list_of_names(metadata.get("finalizers")):
        raise OverrideError("finalizers must stay a list of names")
    _check_marks(labels_of(obj), labels_of(patched))
    _check_marks(annotations_of(obj), annotations_of(patched))
    if str(obj.get("apiVersion")).startswith(_RBAC) and _rights(patched) != _rights(obj):
        raise OverrideError(f"what a {obj.get('kind')} grants, and to whom, cannot be overridden")
    return patched  # type: ignore[no-any-return]


def _check_identity(obj: Json, patched: Any) -> None:
    """Checks the result, not the patches: a field can also change by replacing, moving or copying what contains it."""
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise OverrideError("an object and its metadata cannot be overridden as a whole")
    for field in ("apiVersion", "kind"):
        if patched.get(field) != obj.get(field):
            raise OverrideError(f"/{field} cannot be overridden")
    before, after = obj["metadata"], patched["metadata"]
    for field in sorted(before.keys() | after.keys()):
        if field not in _METADATA and before.get(field) != after.get(field):
            raise OverrideError(f"/metadata/{field} cannot be overridden")


def _check_marks(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    for key in sorted(keys.MARKS):
        if before.get(key) != after.get(key):
            raise OverrideError(f"{key} is reserved for the federation and cannot be overridden")


def _is_list_of_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def _rights(obj: Json) -> Json:
    """The content of a role or binding. Only for the source was it checked that its writer holds the rights it grants; members
    are written by the federation, which may grant anything. Labels that role aggregation selects by count as content."""
    labels = {key: value for key, value in labels_of(obj).items() if key.startswith(_RBAC)}
    return {**{key: value for key, value in obj.items() if key != "metadata"}, "labels": labels}
