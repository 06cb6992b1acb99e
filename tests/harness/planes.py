"""Control planes a ground stands on: the embedded server on a data folder, or stock kube-apiserver on etcd.

Both can be killed and started again on the same data, at the same address.
"""

from pathlib import Path
from typing import Protocol

from argosy.api import rights
from argosy.cli.local import access
from argosy.cli.local.caveats import Caveats
from argosy.cli.local.guard import Guard
from argosy.control.install.installer import Installation, install
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.http import HttpTransport
from argosy.server.auth.certificates import Authority
from argosy.server.auth.identity import User as Identity
from argosy.server.embedded import ADMIN, EmbeddedServer
from argosy.testing import Cluster
from tests.harness.virtual import virtual_loop
from tests.harness.virtual_server import VirtualServer, wire
from tests.world.disk import Disk

__all__ = ["EmbeddedPlane", "KeyPair", "Plane", "StockPlane", "VirtualPlane", "client_of"]

_AUTHENTICATED = "system:authenticated"


class KeyPair(Protocol):
    """Both PEM."""

    @property
    def certificate(self) -> bytes: ...

    @property
    def key(self) -> bytes: ...


class Plane(Protocol):
    @property
    def url(self) -> str: ...

    async def start(self) -> None:
        """Serve, on the data of last time."""

    async def kill(self) -> None:
        """All of it is gone at once; the data stays."""

    async def install(self, client: Client) -> None:
        """What the controllers need, by the administrator's client. Once more when there are type configs it did not know."""

    def client(self) -> Client:
        """The administrator's, over the wire; it outlives a restart. To be closed by the caller."""

    def controllers_client(self) -> Client:
        """With the controllers' own identity and no more rights than they have; of this start only."""


def client_of(server: str, ca: bytes, pair: KeyPair) -> Client:
    connection = Connection(server, ca_data=ca, client_certificate=pair.certificate, client_key=pair.key)
    return Client(HttpTransport(connection))


class EmbeddedPlane:
    """The controllers run in its process, as `argosy up` has it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._port = 0
        self.server: EmbeddedServer | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    async def start(self) -> None:
        self.server = EmbeddedServer(self._folder, port=self._port, admission=(Guard, Caveats))
        await self.server.start()
        self._port = self.server.port

    async def kill(self) -> None:
        if self.server is not None:
            await self.server.stop()
            self.server = None

    async def install(self, client: Client) -> None:
        await access.grant(client)

    def client(self) -> Client:
        assert self.server is not None
        authority = self.server.authority
        return client_of(self.url, authority.certificate, authority.issue("admin", groups=["system:masters"]))

    def controllers_client(self) -> Client:
        assert self.server is not None
        return self.server.client(Identity(access.CONTROLLERS, (_AUTHENTICATED,)))


class VirtualPlane(EmbeddedPlane):
    """It comes back on the same disk, with the same certificate."""

    def __init__(self) -> None:
        self._disk = Disk()
        self._authority = Authority.ephemeral()
        self._port = 0
        self.server = None

    async def start(self) -> None:
        loop = virtual_loop()
        assert loop is not None
        self.server = VirtualServer(
            loop, self._disk, port=self._port, authority=self._authority, admission=(Guard, Caveats)
        )
        await self.server.start()
        self._port = self.server.port

    def client(self) -> Client:
        assert self.server is not None
        return wire(self.server, "user", ADMIN)


class StockPlane:
    """A running cluster of `CONTROL_PLANE` options, which is somebody else's to stop."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    @property
    def url(self) -> str:
        return self.cluster.server

    async def start(self) -> None:
        if not self.cluster["kube-apiserver"].running:
            await self.cluster.start()

    async def kill(self) -> None:
        self.cluster.kill()

    async def install(self, client: Client) -> None:
        """With no rights but those the type configs call for, as `argosy install` does."""
        await install(client, chosen=Installation(controllers=(rights.user(access.CONTROLLERS),)))

    def client(self) -> Client:
        return self.cluster.client()

    def controllers_client(self) -> Client:
        authority = self.cluster.authority
        return client_of(self.url, authority.certificate, authority.client(access.CONTROLLERS))
