"""Secrets of members: their content, where it may be sent, and what is written into them.

Credentials are read from a secret only here, and only if they may be sent to the server (`fleet.binding`). Two things are
written: the service account's token, and the cluster that the secret is bound to.
"""

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control.members import join
from argosy.fleet.binding import Permission, permission, permitted_connection, why_unverified
from argosy.fleet.credentials import Connection, CredentialsError, server_of
from argosy.kube.client import Client, Patch
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Metadata

__all__ = ["MemberSecrets", "SecretView"]


class SecretView(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}

    def decoded(self) -> dict[str, bytes]:
        """Raises CredentialsError."""
        try:
            return {name: base64.b64decode(value) for name, value in self.data.items()}
        except ValueError:
            raise CredentialsError(f'secret "{self.metadata.name}" holds data that is not base64') from None


class MemberSecrets:
    def __init__(self, client: Client, secrets: Informer[SecretView], clusters: Informer[FederatedCluster]):
        self._client = client
        #: The secrets of the system namespace.
        self.informer = secrets
        self._clusters = clusters

    def clusters_of(self, change: Change[SecretView]) -> list[str]:
        """The clusters whose credentials are in that secret."""
        secret = change.key.rpartition("/")[2]
        return [each.name for each in self._clusters.values() if each.spec.secret_ref.name == secret]

    def has(self, cluster: FederatedCluster) -> bool:
        return self._secret(cluster) is not None

    def connection(self, cluster: FederatedCluster, bootstrap: bool | None = None) -> Connection:
        """As `connection_from_secret`, if the credentials may be sent to that server. Raises CredentialsError."""
        secret, name = self._secret(cluster), cluster.spec.secret_ref.name
        if secret is None:
            raise CredentialsError(f'secret "{name}" not found in namespace {keys.SYSTEM_NAMESPACE}')
        sharers = self._sharers(cluster)
        return permitted_connection(cluster, secret.metadata, secret.decoded(), sharers, bootstrap=bootstrap)

    def has_bootstrap(self, cluster: FederatedCluster) -> bool:
        """Whether the secret has the user's own credentials, which are needed for joining and may be removed afterwards."""
        try:
            self.connection(cluster, bootstrap=True)
        except CredentialsError:
            return False
        return True

    async def keep_token(self, cluster: FederatedCluster, token: bytes) -> None:
        """Store the token, which every connection uses."""
        value = base64.b64encode(token).decode()
        await self._patch(cluster, {"data": {keys.SECRET_SERVICE_ACCOUNT_TOKEN: value}})

    async def drop_token(self, cluster: FederatedCluster) -> None:
        """For a cluster that leaves; a secret that does not serve it is not changed."""
        if self._secret(cluster) is not None and not self._permission(cluster).refusal:
            await self._patch(cluster, {"data": {keys.SECRET_SERVICE_ACCOUNT_TOKEN: None}})

    async def bind(self, cluster: FederatedCluster, *, proven: str = "") -> None:
        """Record in the secret which cluster it serves, if permitted: before its first use if servers are not verified, else
        once the server at the cluster's address has `proven` to be the member. Raises ApiError and TransportError."""
        secret, server = self._secret(cluster), server_of(cluster)
        if secret is None or not (why_unverified(cluster) or proven == server):
            return
        may = self._permission(cluster)
        if may.refusal or may.is_bound:
            return
        version = secret.metadata.resource_version
        await self._patch(
            cluster, {"metadata": {"annotations": {keys.BOUND_TO: may.binding}, "resourceVersion": version}}
        )

    def _permission(self, cluster: FederatedCluster) -> Permission:
        secret = self._secret(cluster)
        if secret is None:
            return Permission()
        has_ca = bool(secret.data.get(keys.SECRET_CA))
        return permission(cluster, secret.metadata, has_ca=has_ca, sharers=self._sharers(cluster))

    def _secret(self, cluster: FederatedCluster) -> SecretView | None:
        return self.informer.get(f"{keys.SYSTEM_NAMESPACE}/{cluster.spec.secret_ref.name}")

    def _sharers(self, cluster: FederatedCluster) -> list[FederatedCluster]:
        return [each for each in self._clusters.values() if each.spec.secret_ref == cluster.spec.secret_ref]

    async def _patch(self, cluster: FederatedCluster, body: Mapping[str, Any]) -> None:
        name = cluster.spec.secret_ref.name
        raw = await self._client.patch(join.SECRETS, name, body, keys.SYSTEM_NAMESPACE, kind=Patch.MERGE, into=bytes)
        self.informer.remember(raw)
