"""What the loops keep of control-plane objects between passes: projections, never whole objects.

A pass that needs the whole object decodes the bytes that its informer holds (in one process these are the server's own).
"""

import msgspec

from argosy.api import keys
from argosy.api.federated import LeaderReference
from argosy.api.types import FederatedCluster, FederatedStatus, PlacementEntry
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata
from argosy.plan.claims.record import claimed_by

__all__ = [
    "FederatedView",
    "SourceView",
    "cluster_of_more_than_health",
    "policy_references",
    "same_but_for_status",
    "selecting_references",
]


class SourceView(msgspec.Struct, frozen=True):
    """A user's object of a federated type."""

    metadata: Metadata = Metadata()


class _FederatedViewSpec(msgspec.Struct, frozen=True):
    placements: tuple[PlacementEntry, ...] = ()
    follows: tuple[LeaderReference, ...] = ()


class FederatedView(msgspec.Struct, frozen=True):
    """A federated object without its template and overrides."""

    metadata: Metadata = Metadata()
    spec: _FederatedViewSpec = _FederatedViewSpec()
    status: FederatedStatus = FederatedStatus()

    @property
    def placed(self) -> frozenset[str]:
        return frozenset(cluster for entry in self.spec.placements for cluster in entry.clusters)


def same_but_for_status(old: FederatedView | None, new: FederatedView) -> bool:
    """Whether two versions of a federated object differ only in status and finalizers, which dispatch writes."""
    if old is None:
        return False
    before, after = old.metadata, new.metadata
    return (before.uid, before.generation, before.labels, before.annotations, before.deletion_timestamp) == (
        after.uid,
        after.generation,
        after.labels,
        after.annotations,
        after.deletion_timestamp,
    )


def cluster_of_more_than_health(change: Change[FederatedCluster]) -> tuple[str, ...]:
    """The name of a cluster that changed in more than what our probes write.

    Our own heartbeat must not trigger the next probe: a member slower than a second would be probed forever.
    """
    old, new = change.old, change.new
    if old is None or new is None or old.joined != new.joined:
        return (change.key,)
    before, after = old.metadata, new.metadata
    same = (before.generation, before.labels, before.annotations, before.finalizers, before.deletion_timestamp) == (
        after.generation,
        after.labels,
        after.annotations,
        after.finalizers,
        after.deletion_timestamp,
    )
    return () if same else (change.key,)


def selecting_references(metadata: Metadata) -> list[str]:
    """The policy that selected the source of a federated object, as an index value: its key. Otherwise nothing."""
    ref = claimed_by(metadata.labels, metadata.annotations, metadata.namespace)
    return [ref.key] if ref is not None else []


def policy_references(metadata: Metadata) -> list[str]:
    """The policies an object names, as index values: `label=namespace/name` or `label=name`."""
    references = []
    for label in keys.POLICY_LABELS:
        name = metadata.labels.get(label)
        if not name:
            continue
        cluster_wide = label in (keys.CLUSTER_PROPAGATION_POLICY_LABEL, keys.CLUSTER_OVERRIDE_POLICY_LABEL)
        if not cluster_wide and not metadata.namespace:
            continue
        references.append(f"{label}={name}" if cluster_wide else f"{label}={metadata.namespace}/{name}")
    return references
