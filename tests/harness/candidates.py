"""Candidates: clusters that can be joined, simulated or stock, each behind a relay that can take it away.

The controllers know a candidate by its relay's address; its administrator's client goes past the relay.
"""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any, NamedTuple

from argosy.api import keys
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists
from argosy.kube.resource import Resource
from argosy.sim.member import Member as SimulatedMember
from argosy.sim.spec import MemberSpec, NodePool
from argosy.sim.timings import Timings
from argosy.testing import Cluster
from tests.harness.planes import KeyPair
from tests.harness.relay import Relay
from tests.harness.servers import new_relay, new_server
from tests.harness.virtual_relay import VirtualRelay

__all__ = ["Candidate", "Credentials", "simulated", "stock"]

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_HOME = "kube-system"


class Credentials(StrEnum):
    """What a cluster's secret holds when it is joined, and what the controllers use from then on."""

    CERTIFICATE = "certificate"
    TOKEN = "token"
    #: Joined by certificate, and then by the account that was made in the member.
    SERVICE_ACCOUNT = "serviceaccount"


class Candidate(NamedTuple):
    name: str
    port: int
    ca: bytes
    #: A client certificate of an administrator, a new one each time.
    issue: Callable[[], KeyPair]
    client: Client
    #: The administrator's, as a mapping; not by the relay.
    kubeconfig: dict[str, Any]
    relay: Relay | VirtualRelay
    #: The cluster itself, for what only one of the two can do.
    behind: SimulatedMember | Cluster

    @property
    def url(self) -> str:
        return self.relay.url

    async def secret(self, credentials: Credentials) -> dict[str, str]:
        """The data of the secret to join it with."""
        data = {keys.SECRET_CA: self.ca}
        if credentials is Credentials.TOKEN:
            data[keys.SECRET_BOOTSTRAP_TOKEN] = (await self.token()).encode()
        else:
            pair = self.issue()
            data |= {keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key}
        return {name: base64.b64encode(value).decode() for name, value in data.items()}

    async def token(self, account: str = "federation-admin") -> str:
        """A bearer token of an administrator, as a user would make one for us; good while the account exists."""
        metadata = {"name": account, "namespace": _HOME}
        await self._ensure(_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        await self._ensure(
            _BINDINGS,
            {
                "apiVersion": _BINDINGS.api_version,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": account},
                "subjects": [{"kind": "ServiceAccount", **metadata}],
                "roleRef": {"apiGroup": _BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"},
            },
        )
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await self.client.create(_ACCOUNTS, request, _HOME, name=account, subresource="token")
        return str(answer["status"]["token"])

    async def revoke(self, account: str) -> None:
        """The account's tokens are worth nothing any more (kube-apiserver remembers them for some ten seconds)."""
        await self.client.delete(_ACCOUNTS, account, _HOME)

    async def _ensure(self, resource: Resource, manifest: dict[str, Any]) -> None:
        try:
            await self.client.create(resource, manifest)
        except AlreadyExists:
            return


@asynccontextmanager
async def simulated(name: str, nodes: int) -> AsyncIterator[Candidate]:
    """A simulated member with nodes of 16 cores, on which everything goes five times as fast."""
    spec = MemberSpec(name, (NodePool(nodes, cpu="16", memory="64Gi", pods=250),))
    member = SimulatedMember(spec, Timings(speed=5.0), embedded=new_server())
    await member.open()
    try:
        yield _simulated(member)
    finally:
        await member.close()


def _simulated(member: SimulatedMember) -> Candidate:
    authority = member.embedded.authority
    return Candidate(
        name=member.name,
        port=member.port,
        ca=authority.certificate,
        issue=lambda: authority.issue("admin", groups=["system:masters"]),
        client=member.client(),
        kubeconfig=member.kubeconfig(),
        relay=new_relay(member.port),
        behind=member,
    )


def stock(cluster: Cluster, name: str) -> Candidate:
    authority, port = cluster.authority, cluster.ports.apiserver
    return Candidate(
        name=name,
        port=port,
        ca=authority.certificate,
        issue=lambda: authority.client("admin", ["system:masters"]),
        client=cluster.client(),
        kubeconfig=cluster.config,
        relay=Relay("127.0.0.1", port),
        behind=cluster,
    )
