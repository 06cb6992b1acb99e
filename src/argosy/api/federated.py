"""FederatedObject and what is kept beside it: PropagatedVersion and CollectedStatus, with their cluster-wide twins.

One type serves both scopes. These types are for reading; writes use plain mappings, so that fields unknown to this version
survive.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from argosy.kube.objects import Metadata

__all__ = [
    "Cause",
    "ClusterPatches",
    "CollectedFieldsWithCluster",
    "CollectedStatus",
    "DriftedField",
    "FederatedCondition",
    "FederatedObject",
    "FederatedSpec",
    "FederatedStatus",
    "LeaderReference",
    "OverrideEntry",
    "OverridePatch",
    "PlacementEntry",
    "PlacementReference",
    "PropagationEntry",
]


class PlacementReference(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str


class PlacementEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The clusters of one controller; the effective placement is the union of all entries."""

    controller: str
    placement: tuple[PlacementReference, ...] = ()

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(reference.cluster for reference in self.placement)


class OverridePatch(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One JSON patch operation; an empty `op` means replace. An unset value and a null one differ."""

    path: str
    op: str = ""
    value: Any | UnsetType = UNSET


class ClusterPatches(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str
    patches: tuple[OverridePatch, ...] = ()


class OverrideEntry(msgspec.Struct, frozen=True, rename="camel"):
    controller: str
    clusters: tuple[ClusterPatches, ...] = ()


class LeaderReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: str
    name: str
    group: str = ""
    namespace: str = ""


class FederatedSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    template: dict[str, Any] = {}
    placements: tuple[PlacementEntry, ...] = ()
    overrides: tuple[OverrideEntry, ...] = ()
    follows: tuple[LeaderReference, ...] = ()


class DriftedField(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A field of a copy that somebody changed in the member. Argosy's own.

    A value that is not there is left out, and so are both of a Secret. An empty path is the whole object, which was deleted
    there; `*` stands for more fields than can be listed.
    """

    path: str
    #: When it was noticed.
    since: str
    theirs: Any | UnsetType = UNSET
    ours: Any | UnsetType = UNSET
    #: The copy still has their value.
    left: bool = False


class PropagationEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """State in one cluster; `status` is one of `conditions.Propagation`.

    The rest is Argosy's own. `version`, `digest` and `uid` are the member object's version after the last write, what was
    written, and which object that was. They save the two writes of a PropagatedVersion beside the object. `message` says why
    overrides could not be applied.
    """

    cluster: str
    status: str
    last_observed_generation: int = 0
    version: str = ""
    digest: str = ""
    uid: str = ""
    message: str = ""
    #: What was changed there behind our back, the newest first.
    drift: tuple[DriftedField, ...] = ()


class FederatedCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    type: str
    status: str
    last_update_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    #: Argosy's own.
    message: str = ""


class FederatedStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    synced_generation: int = 0
    conditions: tuple[FederatedCondition, ...] = ()
    clusters: tuple[PropagationEntry, ...] = ()


class FederatedObject(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: FederatedSpec = FederatedSpec()
    status: FederatedStatus = FederatedStatus()

    @property
    def placed(self) -> tuple[str, ...]:
        """The effective placement, sorted."""
        return tuple(sorted({cluster for entry in self.spec.placements for cluster in entry.clusters}))

    def placement_of(self, controller: str) -> tuple[str, ...]:
        """The clusters one controller placed the object in; empty if it has no entry."""
        for entry in self.spec.placements:
            if entry.controller == controller:
                return entry.clusters
        return ()

    def overrides_of(self, controller: str) -> dict[str, tuple[OverridePatch, ...]]:
        """One controller's patches by cluster."""
        for entry in self.spec.overrides:
            if entry.controller == controller:
                return {item.cluster: item.patches for item in entry.clusters}
        return {}


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why pods are not ready in a cluster: the reason of most of them. Argosy's own."""

    reason: str
    message: str = ""
    #: How many pods, of how many that are to run there; 0 if that is not known.
    pods: int = 0
    of: int = 0


class CollectedFieldsWithCluster(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    cluster: str
    collected_fields: Any = msgspec.field(default_factory=dict)
    error: str = ""
    cause: Cause | None = None


class CollectedStatus(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    clusters: tuple[CollectedFieldsWithCluster, ...] = ()
    last_update_time: str | None = None
