"""Owner references: the owners of an object, and its controller."""

from collections.abc import Mapping
from typing import Any

from argosy.kube.references import object_reference

__all__ = ["controller_of", "is_controlled_by", "owner_reference", "owners_of"]


def owners_of(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def controller_of(obj: Mapping[str, Any]) -> dict[str, Any] | None:
    """The one reference marked as controller, if there is one."""
    for reference in owners_of(obj):
        if reference.get("controller") is True:
            return reference
    return None


def is_controlled_by(obj: Mapping[str, Any], uid: str) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller.get("uid") == uid


def owner_reference(
    owner: Mapping[str, Any], *, controller: bool = False, block_owner_deletion: bool = False
) -> dict[str, Any]:
    """A reference to `owner`, which must carry apiVersion, kind, name and uid."""
    metadata = owner["metadata"]
    named = object_reference(owner["apiVersion"], owner["kind"], metadata["name"], metadata["uid"])
    reference: dict[str, Any] = dict(named)
    if controller:
        reference["controller"] = True
    if block_owner_deletion:
        reference["blockOwnerDeletion"] = True
    return reference
