"""A whole API server from one folder: storage, certificates, access, life cycle, and the HTTPS door.

This is the composition everybody uses who wants "a Kubernetes API server, here": `argosy up`, `argosy server`, each simulated
member, and the tests. Without a folder it keeps everything in memory and is gone with the process.
"""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

import orjson

from argosy.kube import schema
from argosy.kube.client import Client
from argosy.kube.transport import Response
from argosy.server import kubeconfig, status
from argosy.server.app import Server
from argosy.server.auth.authentication import Authentication
from argosy.server.auth.binding import BoundObjects
from argosy.server.auth.certificates import Authority, server_context
from argosy.server.auth.escalation import NoEscalation
from argosy.server.auth.identity import User
from argosy.server.auth.rbac import Rbac
from argosy.server.auth.reviews import Reviews
from argosy.server.auth.token_requests import TokenRequests
from argosy.server.auth.tokens import ServiceAccountTokens, StaticTokens, new_key
from argosy.server.http.limits import Limits
from argosy.server.http.listener import Listener, serve
from argosy.server.http.request import Call
from argosy.server.kinds import authentication as authentication_kinds
from argosy.server.kinds import builtin_kinds
from argosy.server.lifecycle.accounts import ServiceAccounts
from argosy.server.lifecycle.garbage import GarbageCollector
from argosy.server.lifecycle.loop import system_client
from argosy.server.lifecycle.namespaces import NamespaceLifecycle
from argosy.server.lifecycle.roles import Roles
from argosy.server.local import LocalTransport
from argosy.server.registry import Object
from argosy.server.storage.base import Storage
from argosy.server.storage.folder import refuse_half, sync_folder
from argosy.server.storage.memory import MemoryStorage
from argosy.server.storage.sqlite import SqliteStorage
from argosy.server.verbs.base import read_object, warned
from argosy.server.watchcache.store import StoreEvent
from argosy.server.wiring import wire

__all__ = ["ADMIN", "EmbeddedServer"]

ADMIN = User("admin", ("system:masters", "system:authenticated"))
_RBAC = "rbac.authorization.k8s.io"
_RBAC_KINDS = {
    "roles": "Role",
    "clusterroles": "ClusterRole",
    "rolebindings": "RoleBinding",
    "clusterrolebindings": "ClusterRoleBinding",
}
_REVIEWS = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    ("authorization.k8s.io", "subjectaccessreviews"): "SubjectAccessReview",
    ("authorization.k8s.io", "localsubjectaccessreviews"): "LocalSubjectAccessReview",
    ("authentication.k8s.io", "tokenreviews"): "TokenReview",
    ("authentication.k8s.io", "selfsubjectreviews"): "SelfSubjectReview",
}


class EmbeddedServer:
    def __init__(
        self,
        data: Path | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        names: tuple[str, ...] = (),
        tokens: dict[str, User] | None = None,
        limits: Limits | None = None,
        accept_data_loss: bool = False,
    ):
        self.host = host
        self.port = port
        self._names = ("127.0.0.1", "localhost", host, *names)
        if data is not None:
            refuse_half(data)
        self.authority = Authority.open(data / "pki") if data else Authority.ephemeral()
        self.tokens = ServiceAccountTokens(_signing_key(data), refusal=lambda claims: self._bound.refusal(claims))
        self.rbac = Rbac()
        authentication = Authentication(StaticTokens(tokens), self.tokens)
        storage: Storage = SqliteStorage(data / "store", accept_data_loss=accept_data_loss) if data else MemoryStorage()
        self.server = Server(
            storage, kinds=builtin_kinds(), authenticator=authentication, authorizer=self.rbac, limits=limits
        )
        wire(self.server)
        self._bound = BoundObjects(self.server.store.get, self.server.registry)
        body = authentication_kinds.token_request(schema.load())
        self._token_requests = TokenRequests(body, self.tokens, self._bound, self.server.store.get)
        self._reviews = Reviews(authentication, self.rbac, self.rbac)
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    async def start(self) -> None:
        """Ready to serve when this returns. Raises what keeps it from that, with everything closed again."""
        server = self.server
        await server.start()
        try:
            self._follow_roles()
            server.admit(NoEscalation(self.rbac))
            for (group, plural), kind in _REVIEWS.items():
                server.handlers[group, plural, ""] = self._review(kind)
            server.handlers["", "serviceaccounts", "token"] = self._token
            namespaces, roles = NamespaceLifecycle(server), Roles(server)
            await namespaces.create_base()
            await roles.create_bootstrap()
            accounts = ServiceAccounts(server, self.tokens, self.authority.certificate)
            for loop in (namespaces, roles, accounts, GarbageCollector(server)):
                loop.start()
            await self.open_door()
        except BaseException:
            await server.stop()
            raise

    async def stop(self) -> None:
        await self.close_door()
        await self.server.stop()

    async def open_door(self) -> None:
        """Listen, at the port of last time if there was one."""
        if self._listener is not None:
            return
        pair = await asyncio.to_thread(self.authority.server_pair, self._names)
        context: ssl.SSLContext = server_context(pair, self.authority.certificate)
        self._listener = await serve(self.server, self.host, self.port, context)
        self.port = self._listener.port

    async def close_door(self) -> None:
        """Nobody reaches the server over the network any more; in this process it goes on."""
        if self._listener is not None:
            await self._listener.close()
            self._listener = None

    def client(self, user: User = ADMIN) -> Client:
        """In this process: no HTTP, no TLS, no copies; the same rules."""
        return Client(LocalTransport(self.server, user))

    def system(self) -> Client:
        return system_client(self.server)

    def kubeconfig(self, name: str) -> dict[str, Any]:
        """For the administrator."""
        pair = self.authority.client_pair("admin", ADMIN.name, ["system:masters"])
        return kubeconfig.entry(name, self.url, self.authority.certificate, pair)

    def _follow_roles(self) -> None:
        """Decisions follow the stored roles and bindings from the moment a write is durable."""
        store = self.server.store
        for plural, kind in _RBAC_KINDS.items():
            for entry in store.table(f"{_RBAC}/{plural}").entries.values():
                self.rbac.observe(kind, entry.value)

        def observe(event: StoreEvent) -> None:
            group, plural = event.entry.key.split("/", 2)[:2]
            if group != _RBAC or plural not in _RBAC_KINDS:
                return
            self.rbac.observe(_RBAC_KINDS[plural], event.entry.value, deleted=event.deleted)

        store.subscribe(observe)

    def _review(self, kind: str) -> Any:
        async def answer(call: Call) -> Response:
            if call.name:
                raise status.not_served()
            if call.verb != "create":
                raise status.method_not_allowed()
            review = await read_object(self.server.api, call, call.write_options("CreateOptions").validation)
            # Here, not in a thread: roles and accounts change on the loop.
            answered = self._reviews.answer(kind, call.user, review, call.namespace)
            if isinstance(answered, list):
                # Kubernetes names no kind here.
                raise status.invalid_kind(call.kind.group, "", "", answered)
            return await self.server.api.run(call, len(call.body), _answer, call, answered)

        return answer

    async def _token(self, call: Call) -> Response:
        if call.verb != "create":
            raise status.method_not_allowed()
        asked = call.but(kind=self._token_requests.kind)
        review = await read_object(self.server.api, asked, call.write_options("CreateOptions").validation)
        answered = self._token_requests.answer(call, review)
        return await self.server.api.run(call, len(call.body), _answer, call, answered)


def _answer(call: Call, answered: Object) -> Response:
    return warned(call, Response(201, {"content-type": "application/json"}, orjson.dumps(answered)))


def _signing_key(data: Path | None) -> bytes:
    if data is None:
        return new_key()
    path = data / "pki" / "service-accounts.key"
    if not path.exists():
        # Whole or not there: half a key would sign what nobody trusts after the next start.
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(new_key())
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        sync_folder(path.parent)
    return path.read_bytes()
