"""Standing: whether a federated object leads others, and where it is."""

from typing import Protocol

from argosy.api import keys
from argosy.api.conditions import Propagation
from argosy.api.federated import FederatedStatus, PlacementEntry
from argosy.kube.objects import Metadata
from argosy.plan.copies.placement import to_be_removed
from argosy.plan.fields import Json
from argosy.plan.followers.graph import Where
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.policy import propagation_ref

__all__ = ["is_divided", "is_leaving", "leads", "where_of"]


class _Spec(Protocol):
    @property
    def placements(self) -> tuple[PlacementEntry, ...]: ...


class Federated(Protocol):
    """A federated object, or the part of it that a cache keeps."""

    @property
    def metadata(self) -> Metadata: ...
    @property
    def spec(self) -> _Spec: ...
    @property
    def status(self) -> FederatedStatus: ...


def leads(federated: Federated) -> bool:
    """Whether what it needs goes where it goes. One without a policy leads as far as it is led itself."""
    metadata = federated.metadata
    if metadata.annotations.get(keys.DRY_RUN) == "true" and not federated.status.clusters:
        return False
    if metadata.annotations.get(keys.ENABLE_FOLLOWER_SCHEDULING) == "true":
        return True
    return propagation_ref(metadata.labels, metadata.namespace) is None


def is_leaving(metadata: Metadata, source_is_deleted: bool) -> bool:
    """Whether it is being deleted together with its copies. A deletion that nobody meant is held, and its copies stay."""
    annotations = metadata.annotations
    confirmed = bool(metadata.deletion_timestamp) and annotations.get(keys.CONFIRM_DELETION) == "true"
    orphans = annotations.get(keys.INTERNAL_ORPHAN) or annotations.get(keys.ORPHAN)
    return (source_is_deleted or confirmed) and orphans not in (keys.ORPHAN_ALL, keys.ORPHAN_ADOPTED)


def is_divided(spec: Json) -> bool:
    """Whether scheduling gave each cluster a number of replicas of its own."""
    return any(entry.get("controller") == keys.GLOBAL_SCHEDULER for entry in spec.get("overrides") or ())


def where_of(federated: Federated) -> Where:
    entries, status, annotations = federated.spec.placements, federated.status, federated.metadata.annotations
    wanted = {cluster for entry in entries for cluster in entry.clusters}
    own = {cluster for entry in entries if entry.controller != keys.FOLLOWER_CONTROLLER for cluster in entry.clusters}
    holding = {*wanted, *to_be_removed(annotations), *(entry.cluster for entry in status.clusters)}
    sent = (
        status.synced_generation == federated.metadata.generation
        and keys.HELD not in annotations
        and pending.finished(annotations.get(keys.PENDING_CONTROLLERS))
    )
    current = {entry.cluster for entry in status.clusters if entry.status == Propagation.OK} if sent else set()
    return Where(frozenset(own), frozenset(holding - wanted), frozenset(holding - current))
