"""Binding: to which cluster and address a secret's credentials may be sent.

A user who may write FederatedClusters names a secret and an address in them. Such a user may not be allowed to read the secret,
and must not get its content this way. A server that the CA in the secret verifies is trusted, at any address. Without
verification (`insecure: true`, or `http://`) credentials are sent to one address only, the one the secret is bound to by the
annotation `argosy.io/bound-to: <cluster>=<address>`. `argosy join` writes it, the controllers write it after the secret was
used, and anyone who may write the secret can set it.

A secret that is not bound yet may be bound by its first use: always if the server is verified. If not, only a secret without a
CA, which cannot be used in any other way, that is named like the cluster and serves no other, or served it before.
"""

from collections.abc import Iterable, Mapping

import msgspec

from argosy.api import keys
from argosy.api.clusters import FederatedCluster
from argosy.api.conditions import JOINED
from argosy.fleet.credentials import Connection, CredentialsWithheld, connection_from_secret, server_of
from argosy.kube.objects import Metadata

__all__ = ["Permission", "permission", "permitted_connection", "why_unverified"]


class Permission(msgspec.Struct, frozen=True):
    """Whether a secret's credentials may be sent: `refusal` says why not. `binding` is the annotation that the secret should
    have; if the server is not verified, it must have it (`is_bound`) before anything is sent."""

    refusal: str = ""
    binding: str = ""
    is_bound: bool = False


def permission(
    cluster: FederatedCluster, secret: Metadata, *, has_ca: bool, sharers: Iterable[FederatedCluster]
) -> Permission:
    """Whether a cluster may have the credentials of its secret sent to its server. `sharers` name the same secret."""
    name, server = cluster.name, server_of(cluster)
    text = secret.annotations.get(keys.BOUND_TO, "")
    bound = _parsed(text)
    if not text:
        bound = {other.name: "" for other in sharers if other.joined and other.name != name}
        first = _first_of(cluster, secret, sharers)
        if (bound and not cluster.joined) or first != name:
            return Permission(_taken(secret.name, sorted(bound) or [first], cluster, server))
    elif name not in bound:
        return Permission(_taken(secret.name, sorted(bound), cluster, server))
    unverified = why_unverified(cluster)
    if unverified and bound.get(name) != server:
        # A joined cluster without an address there was recorded when another cluster was bound.
        if bound.get(name) or (text and not cluster.joined):
            return Permission(
                f'secret "{secret.name}" is bound to {bound[name] or "no address"}; with {unverified} its credentials are sent'
                f" nowhere else; {_remedy(secret.name, cluster, server)}"
            )
        is_its_own = secret.name == name and set(bound) <= {name}
        if has_ca or not (is_its_own or _served_before(cluster, secret)):
            return Permission(
                f'secret "{secret.name}" is not bound to this cluster, and with {unverified} nothing verifies the receiver of'
                f" its credentials; {_remedy(secret.name, cluster, server)}"
            )
    return Permission(binding=_written({**bound, name: server}), is_bound=bool(text) and bound.get(name) == server)


def permitted_connection(
    cluster: FederatedCluster,
    secret: Metadata,
    data: Mapping[str, bytes],
    sharers: Iterable[FederatedCluster],
    *,
    bootstrap: bool | None = None,
) -> Connection:
    """As `connection_from_secret`, if the credentials may be sent to that server. Raises CredentialsError."""
    connection = connection_from_secret(cluster, data, bootstrap=bootstrap)
    may = permission(cluster, secret, has_ca=bool(data.get(keys.SECRET_CA)), sharers=sharers)
    if may.refusal or (why_unverified(cluster) and not may.is_bound):
        raise CredentialsWithheld(may.refusal or f"the secret is not bound to {connection.server} yet")
    return connection


def why_unverified(cluster: FederatedCluster) -> str:
    """Why a member's server is not verified; empty if it is."""
    if cluster.spec.insecure:
        return "spec.insecure"
    return "" if server_of(cluster).startswith("https://") else "http://"


def _first_of(cluster: FederatedCluster, secret: Metadata, sharers: Iterable[FederatedCluster]) -> str:
    """Which of the clusters that have not joined owns the secret: the one of the secret's name, else the oldest."""
    if cluster.joined:
        return cluster.name
    waiting = [cluster, *(other for other in sharers if other.name != cluster.name)]
    return min(waiting, key=lambda each: (each.name != secret.name, each.metadata.creation_timestamp, each.name)).name


def _served_before(cluster: FederatedCluster, secret: Metadata) -> bool:
    """Whether a joined cluster joined with this secret. A secret created later was not the one, and a cluster whose spec has
    changed since its creation (by its generation) may have joined with another."""
    if cluster.metadata.generation > 1:
        return False
    joined = cluster.condition(JOINED)
    since = joined.last_transition_time if joined is not None and cluster.joined else None
    return bool(since and secret.creation_timestamp and secret.creation_timestamp <= since)


def _taken(secret: str, owners: list[str], cluster: FederatedCluster, server: str) -> str:
    return (
        f'secret "{secret}" serves {", ".join(owners)}, and a secret serves only one cluster: give this cluster its own; or,'
        f" {_remedy(secret, cluster, server)}"
    )


def _remedy(secret: str, cluster: FederatedCluster, server: str) -> str:
    return (
        "to allow it, with the right to write the secret, run: kubectl annotate --overwrite secret -n"
        f" {keys.SYSTEM_NAMESPACE} {secret} {keys.BOUND_TO}={cluster.name}={server}"
    )


def _parsed(text: str) -> dict[str, str]:
    pairs = (entry.strip().partition("=") for entry in text.split(",") if entry.strip())
    return {name.strip(): server.strip().rstrip("/") for name, _, server in pairs}


def _written(bound: Mapping[str, str]) -> str:
    return ",".join(f"{name}={server}" for name, server in sorted(bound.items()))
