"""Identity: which cluster a member is, and whether the cluster that answers is that one.

A member is identified by its system namespace. The namespace carries the uid of our FederatedCluster, which was written there
when it joined, and has a uid of its own, unique among clusters. A backup can copy the mark to another cluster, but not the uid.
"""

import msgspec

from argosy.api import keys
from argosy.api.clusters import FederatedCluster
from argosy.kube.objects import DecodeError, Metadata, decode

__all__ = ["Identity", "Mismatch", "Verdict", "judged", "mismatch", "recorded"]


class Identity(msgspec.Struct, frozen=True):
    """What identifies a member. `namespace_uid` is empty until it was seen."""

    cluster: str
    cluster_uid: str
    namespace_uid: str = ""


class Mismatch(msgspec.Struct, frozen=True):
    """Why a cluster is not the member, and how to make it the member."""

    why: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.why} ({self.remedy})" if self.remedy else self.why


class Verdict(msgspec.Struct, frozen=True):
    """`uid` of the namespace if it is the member; `mismatch` says why it is not. Neither: unknown."""

    uid: str = ""
    mismatch: Mismatch | None = None


def recorded(cluster: FederatedCluster) -> Identity:
    """The recorded identity of the member that joined."""
    uid = cluster.metadata.annotations.get(keys.MEMBER_UID, "")
    return Identity(cluster.name, cluster.metadata.uid, uid)


def judged(identity: Identity, code: int, body: bytes) -> Verdict:
    """The verdict by the answer to GET of the system namespace."""
    try:
        found = decode(body, _Answer)
    except DecodeError:
        return Verdict()
    if code == 404 and found.details.name == keys.SYSTEM_NAMESPACE:
        return Verdict(mismatch=mismatch(identity, None))
    # Something else than an API server may answer, with any code.
    metadata = found.metadata
    if code != 200 or found.kind != "Namespace" or metadata.name != keys.SYSTEM_NAMESPACE or not metadata.uid:
        return Verdict()
    different = mismatch(identity, metadata)
    return Verdict(mismatch=different) if different is not None else Verdict(uid=metadata.uid)


def mismatch(identity: Identity, namespace: Metadata | None) -> Mismatch | None:
    """Why a cluster with this system namespace, or without one, is not the member; None if it is."""
    remedy = (
        f"if it should be {identity.cluster}, because it was rebuilt or its namespace was deleted, run:"
        f" argosy join {identity.cluster} --reclaim --kubeconfig <of an administrator of the member>"
    )
    if namespace is None:
        return Mismatch(f"it has no namespace {keys.SYSTEM_NAMESPACE}", remedy)
    if namespace.annotations.get(keys.FEDERATED_CLUSTER_UID) != identity.cluster_uid:
        return Mismatch(f"its namespace {keys.SYSTEM_NAMESPACE} does not carry the uid of this FederatedCluster")
    if identity.namespace_uid not in ("", namespace.uid):
        why = (
            f"its namespace {keys.SYSTEM_NAMESPACE} has the uid {namespace.uid}, the member's {identity.namespace_uid}"
        )
        return Mismatch(why, remedy)
    return None


class _Details(msgspec.Struct, frozen=True):
    name: str = ""


class _Answer(msgspec.Struct, frozen=True):
    """A Namespace, or a Status."""

    kind: str = ""
    metadata: Metadata = Metadata()
    details: _Details = _Details()
