"""The composition root: a Kubernetes API server assembled from its parts.

Read it from top to bottom. Every part is created here, once, after the parts it needs, and gets them in its constructor.
`start` opens the store, lets the parts with a view of it read it, and starts the loops. Folder, certificates and network are in
`embedded`.
"""

from collections.abc import Mapping, Sequence

from argosy.kube import schema
from argosy.server.admission.chain import Admission, MakePlugin, NamespaceGuard
from argosy.server.admission.plugins import Definitions, Priorities, Requesters, ServiceAddresses
from argosy.server.admission.resource_quotas import ResourceQuotas
from argosy.server.admission.runtime_classes import RuntimeClasses
from argosy.server.app import Server
from argosy.server.auth.authentication import Authentication
from argosy.server.auth.binding import BoundObjects
from argosy.server.auth.escalation import NoEscalation
from argosy.server.auth.identity import User
from argosy.server.auth.impersonation import Impersonation
from argosy.server.auth.rbac import Rbac
from argosy.server.auth.reviews import Reviews
from argosy.server.auth.token_requests import TokenRequests
from argosy.server.auth.tokens import ServiceAccountTokens, StaticTokens
from argosy.server.crd import CustomResources
from argosy.server.discovery import Discovery
from argosy.server.health import Health
from argosy.server.http.buffers import Buffers
from argosy.server.http.limits import InFlight, Limits
from argosy.server.http.offload import Offload
from argosy.server.kinds import builtin_kinds
from argosy.server.kinds.authentication import token_request
from argosy.server.kinds.services.ips import ServiceAllocator
from argosy.server.lifecycle.accounts import ServiceAccounts
from argosy.server.lifecycle.compaction import HistoryCompaction
from argosy.server.lifecycle.definitions import DefinitionCleanup
from argosy.server.lifecycle.expiry import EventExpiry
from argosy.server.lifecycle.garbage import GarbageCollector
from argosy.server.lifecycle.namespaces import NamespaceLifecycle
from argosy.server.lifecycle.roles import Roles
from argosy.server.metrics import Metrics
from argosy.server.openapi import OpenApi, OpenApiResponder
from argosy.server.registry import Registry
from argosy.server.storage.base import Storage
from argosy.server.subresources.actions import action_handlers
from argosy.server.subresources.reviews import review_handlers, token_handler
from argosy.server.subresources.views import views
from argosy.server.tasks import Tasks
from argosy.server.trusted import TrustedAccess
from argosy.server.verbs.base import Api
from argosy.server.watchcache.store import Store

__all__ = ["Assembly"]

#: The Kubernetes version that is served.
GIT_VERSION = "v1.36.3"


class Assembly:
    def __init__(
        self,
        storage: Storage,
        *,
        ca: bytes,
        signing_key: bytes,
        tokens: Mapping[str, User],
        limits: Limits,
        admission: Sequence[MakePlugin] = (),
    ):
        """`ca` is what clients trust, `signing_key` signs service-account tokens, `tokens` are static ones.

        `admission` are further plugins besides the server's own.
        """
        # The served kinds, and the store.
        metrics = Metrics()
        registry = Registry(builtin_kinds())
        self._store = store = Store(storage, Buffers(limits.watch_bytes, metrics.watches_cut_off.inc), metrics.batch)
        self._custom_resources = CustomResources(registry)

        # Authentication and authorisation.
        bound = BoundObjects(store.get, registry)
        accounts = ServiceAccountTokens(signing_key, refusal=bound.refusal)
        authentication = Authentication(StaticTokens(tokens), accounts)
        self.rbac = rbac = Rbac()

        # Admission of writes, in this order.
        self._addresses = ServiceAddresses(store, ServiceAllocator())
        self._definitions = Definitions(store, self._custom_resources)
        self._quotas = ResourceQuotas(store)
        plugins = (
            NamespaceGuard(store.get),
            Priorities(store),
            RuntimeClasses(store),
            self._addresses,
            self._definitions,
            Requesters(),
            *(make(store, rbac) for make in admission),
            NoEscalation(rbac),
            self._quotas,
        )

        # Handling of requests.
        self._offload = offload = Offload(limits, metrics)
        api = Api(registry, store, rbac, Admission(plugins), offload)
        token_requests = TokenRequests(token_request(schema.load()), accounts, bound, store.get)
        health = Health()
        health.add("storage", ready=store.problem)
        self.server = Server(
            api,
            authenticator=authentication,
            impersonation=Impersonation(rbac),
            limits=limits,
            in_flight=InFlight(limits),
            metrics=metrics,
            health=health,
            handlers={
                **action_handlers(api),
                **review_handlers(api, Reviews(authentication, rbac, rbac)),
                ("", "serviceaccounts", "token"): token_handler(api, token_requests),
            },
            views=views(registry),
            responders=(Discovery(registry).answer, OpenApiResponder(OpenApi(registry), offload).respond),
            git_version=GIT_VERSION,
        )

        # Background loops.
        self._tasks = Tasks(health)
        self.access = access = TrustedAccess(self.server, self._tasks)
        self._compaction = HistoryCompaction(store)
        self._expiry = EventExpiry(store)
        self._namespaces = NamespaceLifecycle(access, metrics.spinning, registry)
        self._roles = Roles(access, metrics.spinning)
        self._loops = (
            DefinitionCleanup(access, metrics.spinning),
            self._namespaces,
            self._roles,
            ServiceAccounts(access, metrics.spinning, accounts, ca),
            GarbageCollector(access, metrics.spinning, registry),
        )

    async def start(self) -> None:
        """Requests can be served when this returns. If it fails, everything is closed again and the error raised."""
        await self._store.open()
        try:
            # Views of the store first: later writes are checked against them.
            self._addresses.start()
            self._definitions.start()
            self._quotas.start()
            self._custom_resources.follow(self._store)
            self.rbac.follow(self._store)
            self._tasks.run("history compaction", self._compaction.run())
            self._tasks.run("room on the disk", self._store.room.run())
            self._tasks.run("event expiry", self._expiry.run())
            await self._namespaces.create_base()
            await self._roles.create_bootstrap()
            for loop in self._loops:
                loop.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Ends watches and loops, then closes the storage; the listener has finished the requests in progress."""
        self._store.close_watches()
        await self._tasks.stop()
        await self._store.close()
        self._offload.close()
