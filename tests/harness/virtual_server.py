"""API servers on the virtual network, and how controllers get to them: with the same credentials as over HTTPS, without TLS."""

import asyncio
from contextvars import copy_context
from typing import Any, ClassVar, NoReturn

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from argosy.control.members.connect import Connector
from argosy.fleet.credentials import Connection, CredentialsError
from argosy.kube.challenge import Challenge
from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.transport import Request
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.embedded import ADMIN, EmbeddedServer
from tests.harness.virtual import VirtualLoop, virtual_loop
from tests.world.disk import Disk
from tests.world.wire import Login, Wire

__all__ = ["CONTROLLERS", "HOST", "VirtualServer", "connector", "wire"]

HOST = "127.0.0.1"
#: The controllers' name on the network.
CONTROLLERS = "controllers"
#: Who has written nothing for so many seconds has nothing to write.
_REST = 0.5
_RBAC = "rbac.authorization.k8s.io/"


class VirtualServer(EmbeddedServer):
    """A server whose door opens to the virtual network. Its port is its own for good."""

    #: The roles that every server makes at its first start: most of the work there is, and the same for all.
    _roles: ClassVar[Disk | None] = None

    def __init__(self, loop: VirtualLoop, disk: Disk | None = None, port: int = 0, **options: Any):
        self.disk = disk or (self._roles.copy() if self._roles is not None else Disk())
        super().__init__(None, host=HOST, port=port or next(loop.ports), storage=self.disk, **options)
        self._loop = loop
        self._open = False

    async def start(self) -> None:
        await super().start()
        if VirtualServer._roles is None:
            await self.at_rest()
            VirtualServer._roles = self.disk.copy(_RBAC)

    async def at_rest(self) -> None:
        """Until the server itself has nothing more to write."""
        version = -1
        while version != self.disk.version:
            version = self.disk.version
            await asyncio.sleep(_REST)

    async def open_door(self) -> None:
        if not self._open:
            self._open = True
            self.listen(self.url)

    async def close_door(self) -> None:
        """Those on connections to it are told."""
        if self._open:
            self._open = False
            self._loop.network.hang_up(self.url)

    async def hang(self) -> None:
        """Connections end; requests are taken from now on and never answered, until the door is closed and opened again."""
        await self.close_door()
        self._open = True
        self._serve(self.url, _Hung())

    def listen(self, url: str) -> None:
        """Serve at this address, which may be one of something that leads here."""
        self._serve(url, self.server)

    def _serve(self, url: str, server: Any) -> None:
        self._loop.network.listen(url, server, copy_context())
        self._loop.behind[url] = self


class _Hung:
    """A server that takes whatever it is sent."""

    def authenticate(self, *_: object) -> User:
        return ADMIN

    async def handle(self, *_: object) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    list = watch = handle


def wire(server: EmbeddedServer, client: str, user: User) -> Client:
    """A client on the virtual network."""
    loop = virtual_loop()
    assert loop is not None
    return Client(Wire(loop.network, client, server.url, user))


def connector() -> Connector | None:
    """For controllers on virtual time: as over HTTPS, each side has to trust the other's certificate. None on other loops."""
    loop = virtual_loop()
    if loop is None:
        return None

    def connect(name: str, connection: Connection, challenge: Challenge | None) -> Client:
        return Client(Wire(loop.network, CONTROLLERS, connection.server, _login(loop, connection), challenge))

    return connect


def _login(loop: VirtualLoop, connection: Connection) -> Login:
    try:
        certificate = x509.load_pem_x509_certificate(connection.cert_data) if connection.cert_data else None
    except ValueError as error:
        raise CredentialsError(f"the client certificate is not usable: {error}") from None
    shown = certificate.public_bytes(Encoding.DER) if certificate is not None else None
    headers = {"authorization": f"Bearer {connection.token.decode(errors='replace')}"} if connection.token else {}
    met: set[EmbeddedServer] = set()

    def user(server: Server, request: Request) -> User:
        behind = loop.behind[connection.server]
        if behind not in met:
            _shake_hands(behind, connection, certificate)
            met.add(behind)
        return server.authenticate(headers, shown, lambda: request)

    return user


def _shake_hands(server: EmbeddedServer, connection: Connection, certificate: x509.Certificate | None) -> None:
    """What TLS would find out."""
    authority = server.authority.certificate
    if not connection.insecure and authority.strip() not in connection.ca_data:
        raise TransportError(f"{connection.server}: certificate verify failed: unable to get local issuer certificate")
    if certificate is not None:
        try:
            certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        except (ValueError, TypeError, InvalidSignature):
            raise TransportError(f"{connection.server}: tlsv1 alert unknown ca") from None
