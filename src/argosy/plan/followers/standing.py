"""Standing: whether a federated object leads others, and where it is."""

from typing import Protocol

from argosy.api import keys
from argosy.api.conditions import Propagation
from argosy.api.federated import FederatedStatus, PlacementEntry
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.objects import Metadata
from argosy.plan import fields
from argosy.plan.copies.placement import overrides_by_cluster, placed, to_be_removed, value_at
from argosy.plan.fields import Json
from argosy.plan.followers.graph import Where
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.policy import propagation_ref
from argosy.plan.replicas.budget import Pods

__all__ = ["behind_of", "is_divided", "is_leaving", "leads", "pods_of", "where_of"]


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


def pods_of(spec: Json, config: FederatedTypeConfig) -> Pods | None:
    """How many pods a workload runs where; None if its kind has no number of them."""
    path = config.spec.path_definition.replicas_spec
    replicas = fields.number(spec.get("template") or {}, path) if path else None
    if replicas is None:
        return None
    by_cluster = overrides_by_cluster(spec.get("overrides") or (), config.spec.controllers)
    stated = {name: value_at(patches, fields.pointer(path)) for name, patches in by_cluster.items()}
    others = {name: number for name, number in stated.items() if isinstance(number, int)}
    return Pods({name: others.get(name, replicas) for name in placed(spec)}, is_divided(spec))


def where_of(federated: Federated) -> Where:
    entries = federated.spec.placements
    own, all_of_them = set[str](), set[str]()
    for entry in entries:
        clusters = entry.clusters
        all_of_them.update(clusters)
        if entry.controller != keys.FOLLOWER_CONTROLLER:
            own.update(clusters)
    return Where(frozenset(own), frozenset(_holding(federated, all_of_them) - all_of_them))


def behind_of(federated: Federated) -> frozenset[str]:
    """Clusters whose copy may not be of its newest template."""
    status, metadata = federated.status, federated.metadata
    holding = _holding(federated, {cluster for entry in federated.spec.placements for cluster in entry.clusters})
    sent = (
        status.synced_generation == metadata.generation
        and keys.HELD not in metadata.annotations
        and pending.finished(metadata.annotations.get(keys.PENDING_CONTROLLERS))
    )
    current = {entry.cluster for entry in status.clusters if entry.status == Propagation.OK} if sent else set()
    return frozenset(holding - current)


def _holding(federated: Federated, there: set[str]) -> set[str]:
    annotations = federated.metadata.annotations
    noted = to_be_removed(annotations) if keys.TO_BE_REMOVED in annotations else ()
    return there.union(noted, [entry.cluster for entry in federated.status.clusters])
