"""What makes the core (`app.Server`) a Kubernetes API server: custom resources, discovery, OpenAPI, default admission, and the
subresources that act. Who may come in and the loops of a control plane are added by `embedded`.
"""

import asyncio
from functools import partial

from argosy.kube.transport import Request, Response
from argosy.server.admission.plugins import Definitions, Priorities, Requesters, ServiceAddresses
from argosy.server.admission.runtime_classes import RuntimeClasses
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.crd import CustomResources
from argosy.server.discovery import Discovery
from argosy.server.kinds.certificates import ApprovalStrategy
from argosy.server.kinds.pods.pods import EphemeralContainersStrategy, ResizeStrategy
from argosy.server.kinds.services.ips import ServiceAllocator
from argosy.server.lifecycle.definitions import DefinitionCleanup
from argosy.server.lifecycle.expiry import start_event_expiry
from argosy.server.openapi import OpenApi
from argosy.server.subresources.actions import install
from argosy.server.watchcache.store import StoreEvent

__all__ = ["wire"]

_DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"


def wire(server: Server) -> None:
    """Before the server is started."""
    addresses = ServiceAddresses(server.store, ServiceAllocator())
    resources = CustomResources(server.registry)
    plugins = (
        Priorities(server.store),
        RuntimeClasses(server.store),
        addresses,
        Definitions(server.store, resources),
        Requesters(),
    )
    for plugin in plugins:
        server.admit(plugin)
    server.on_open(addresses.start)
    _serve_custom_resources(server, resources)
    _publish(server)
    _add_pod_views(server)
    _add_approval(server)
    install(server)
    server.on_open(DefinitionCleanup(server).start)
    server.on_open(lambda: start_event_expiry(server))


def _serve_custom_resources(server: Server, resources: CustomResources) -> None:
    """The registry follows the stored definitions from within the commit: a write that is acknowledged is served."""

    def observe(event: StoreEvent) -> None:
        if event.entry.key.startswith(f"{_DEFINITIONS}/"):
            new = None if event.deleted else event.entry.value
            resources.observe(new, event.previous.value if event.previous is not None else None)

    def start() -> None:
        for entry in list(server.store.table(_DEFINITIONS).entries.values()):
            resources.observe(entry.value, None)
        server.store.subscribe(observe)

    server.on_open(start)


def _publish(server: Server) -> None:
    discovery = Discovery(server.registry)
    openapi = OpenApi(server.registry)
    making: dict[str, asyncio.Future[Response | None]] = {}

    async def discover(request: Request, user: User) -> Response | None:
        return discovery.respond(request.path, request.headers)

    async def describe(request: Request, user: User) -> Response | None:
        if not request.path.startswith("/openapi"):
            return None
        if openapi.ready(request.path, request.headers):
            return openapi.respond(request.path, request.headers)
        server.offload.admit(user.name)
        while making:
            # One at a time, and who comes while documents are made gets the same ones. A task of its own, and nobody's queue:
            # who asked first may give up, or wait for much else.
            await asyncio.shield(making["now"])
            if openapi.ready(request.path, request.headers):
                return openapi.respond(request.path, request.headers)
        made = asyncio.ensure_future(server.offload.run("", partial(openapi.respond, request.path, request.headers)))
        making["now"] = made
        made.add_done_callback(lambda _: making.clear())
        return await asyncio.shield(made)

    server.responders += [discover, describe]


def _add_approval(server: Server) -> None:
    requests = server.registry.find("certificates.k8s.io", "v1", "certificatesigningrequests")
    type = getattr(requests.strategy, "type", None) if requests is not None else None
    server.views["certificates.k8s.io", "certificatesigningrequests", "approval"] = ApprovalStrategy(type)


def _add_pod_views(server: Server) -> None:
    pods = server.registry.find("", "v1", "pods")
    type = getattr(pods.strategy, "type", None) if pods is not None else None
    if type is not None:
        server.views["", "pods", "ephemeralcontainers"] = EphemeralContainersStrategy(type)
        server.views["", "pods", "resize"] = ResizeStrategy(type)
