"""Deletion: whether the deletion of a federated object is what a user wants."""

from argosy.api import keys
from argosy.api.conditions import Refused
from argosy.control.caches.views import SourceView
from argosy.control.copies.item import Item

__all__ = ["is_meant", "why_held"]


def is_meant(item: Item, source: SourceView | None) -> bool:
    """Whether a user deleted the source.

    Not if the source merely vanished: the garbage collector deletes its federated object, too. Not if a new source of the
    same name exists, which may own these copies. And not if the source is not being deleted: then the garbage collector
    was wrong, or the CRD of federated objects itself is being deleted.
    """
    owners = [owner.uid for owner in item.federated.metadata.owner_references if owner.controller]
    if item.annotations.get(keys.CONFIRM_DELETION) == "true":
        return True
    if not owners:
        return item.refusal is None or item.refusal.reason is Refused.NO_SOURCE
    return source is not None and source.metadata.uid in owners and bool(source.metadata.deletion_timestamp)


def why_held(item: Item, source: SourceView | None) -> str:
    """What is told of a deletion that nobody meant."""
    confirmed = f"its copies stay until the {item.key} is annotated with {keys.CONFIRM_DELETION}=true"
    if source is None:
        return (
            f"the source is gone without having been deleted; {confirmed}. To keep them for good, remove its"
            f" finalizer {keys.SYNC_FINALIZER}"
        )
    return (
        f"this object is being deleted, but its source is not; {confirmed}. Once its finalizer"
        f" {keys.SYNC_FINALIZER} is removed, it is created anew and takes them over"
    )
