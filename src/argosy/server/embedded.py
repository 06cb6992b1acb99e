"""A whole API server from one folder: storage, certificates, and the HTTPS listener around an `assembly`.

Used wherever a whole Kubernetes API server is needed: `argosy up`, `argosy server`, each simulated member, and the tests.
Without a folder everything is kept in memory and lost with the process.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.kube.client import Client
from argosy.server import kubeconfig
from argosy.server.admission.chain import MakePlugin
from argosy.server.assembly import Assembly
from argosy.server.auth.certificates import Authority, server_context
from argosy.server.auth.identity import User
from argosy.server.auth.tokens import new_key
from argosy.server.http.limits import Limits
from argosy.server.http.listener import Listener, serve
from argosy.server.local import LocalTransport
from argosy.server.storage.base import Storage
from argosy.server.storage.folder import refuse_half, sync_folder
from argosy.server.storage.memory import MemoryStorage
from argosy.server.storage.sqlite import SqliteStorage
from argosy.server.trusted import TrustedAccess

__all__ = ["ADMIN", "EmbeddedServer"]

ADMIN = User("admin", ("system:masters", "system:authenticated"))


class EmbeddedServer:
    def __init__(
        self,
        data: Path | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        names: tuple[str, ...] = (),
        tokens: Mapping[str, User] | None = None,
        limits: Limits | None = None,
        admission: Sequence[MakePlugin] = (),
        authority: Authority | None = None,
        storage: Storage | None = None,
        accept_data_loss: bool = False,
    ):
        """`admission` are further plugins besides the server's own.

        `authority` and `storage` replace those that are kept in the folder.
        """
        self.host = host
        self.port = port
        self._names = ("127.0.0.1", "localhost", host, *names)
        if data is not None:
            refuse_half(data)
        self.authority = authority or (Authority.open(data / "pki") if data else Authority.ephemeral())
        if storage is None:
            storage = SqliteStorage(data / "store", accept_data_loss=accept_data_loss) if data else MemoryStorage()
        self._assembly = Assembly(
            storage,
            ca=self.authority.certificate,
            signing_key=_signing_key(data),
            tokens=tokens or {},
            limits=limits or Limits(),
            admission=admission,
        )
        self._listener: Listener | None = None
        self.server = self._assembly.server
        self.rbac = self._assembly.rbac

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def trusted(self) -> TrustedAccess:
        """For controllers in this process that belong to the cluster itself."""
        return self._assembly.access

    async def start(self) -> None:
        """Ready to serve when this returns. If it fails, everything is closed again and the error raised."""
        await self._assembly.start()
        try:
            await self.open_door()
        except BaseException:
            await self._assembly.stop()
            raise

    async def stop(self) -> None:
        await self.close_door()
        await self._assembly.stop()

    async def open_door(self) -> None:
        """Listen, at the same port as last time if there was one."""
        if self._listener is not None:
            return
        pair = await asyncio.to_thread(self.authority.server_pair, self._names)
        context: ssl.SSLContext = server_context(pair, self.authority.certificate)
        self._listener = await serve(self.server, self.host, self.port, context)
        self.port = self._listener.port

    async def close_door(self) -> None:
        """Stop serving over the network; in this process the server goes on."""
        if self._listener is not None:
            await self._listener.close()
            self._listener = None

    def client(self, user: User = ADMIN) -> Client:
        """A transport in this process: no HTTP, no TLS, no copies; the same rules."""
        return Client(LocalTransport(self.server, user))

    def kubeconfig(self, name: str) -> dict[str, Any]:
        """For the administrator."""
        pair = self.authority.client_pair("admin", ADMIN.name, ["system:masters"])
        return kubeconfig.entry(name, self.url, self.authority.certificate, pair)


def _signing_key(data: Path | None) -> bytes:
    if data is None:
        return new_key()
    path = data / "pki" / "service-accounts.key"
    if not path.exists():
        # Written completely or not at all: half a key would sign tokens that nobody trusts after the next start.
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(new_key())
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        sync_folder(path.parent)
    return path.read_bytes()
