"""Server: the path of a request through the parts of the API server.

Authorise → find the kind → the verb. The user was authenticated where the request came in (`http`, `local`). Runs no task.
`assembly` creates it with all its parts.
"""

import logging
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence

import orjson
from msgspec import structs

from argosy.kube import clock
from argosy.kube.errors import ApiError, NotFound
from argosy.kube.transport import Page, Request, Response
from argosy.server import status
from argosy.server.auth.identity import Attributes, Authenticator, User
from argosy.server.auth.impersonation import Impersonation, ImpersonationDenied, ImpersonationIncomplete
from argosy.server.health import Health
from argosy.server.http.holding import Steps
from argosy.server.http.limits import InFlight, Limits
from argosy.server.http.request import Call, Target, parse_target
from argosy.server.metrics import Metrics
from argosy.server.printers.rendering import render_list, render_object, watch_renderer
from argosy.server.registry import Strategy
from argosy.server.verbs.base import Api, warned
from argosy.server.verbs.create import create
from argosy.server.verbs.delete import delete
from argosy.server.verbs.deletecollection import deletecollection
from argosy.server.verbs.get import get
from argosy.server.verbs.list import list_page
from argosy.server.verbs.patch import patch
from argosy.server.verbs.scale import scale
from argosy.server.verbs.update import update
from argosy.server.verbs.watch import watch
from argosy.server.watchcache.store import Watch
from argosy.server.watchcache.watcher import Reader, Watcher

__all__ = ["Handler", "Handlers", "Responder", "Server", "Views"]

log = logging.getLogger(__name__)

#: Handles one subresource, or a kind that is never stored.
Handler = Callable[[Call], Awaitable[Response]]
#: By (group, plural, subresource); an empty subresource is a kind that is never stored.
Handlers = Mapping[tuple[str, str, str], Handler]
#: The strategy of writes through a subresource, by (group, plural, subresource).
Views = Mapping[tuple[str, str, str], Strategy]
#: Handles a path outside of the resources (discovery, OpenAPI); None for other paths.
Responder = Callable[[Request, User], Awaitable[Response | None]]

VERBS: dict[str, Callable[[Api, Call], Awaitable[Response]]] = {
    "get": get,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": deletecollection,
}
#: Subresources that are views of the stored object itself.
_VIEWS = {
    "status": {"get", "update", "patch"},
    "approval": {"get", "update", "patch"},
    "finalize": {"update"},
}
_NAMED = {"get", "update", "patch", "delete"}
#: For paths unknown to all parts of the server; within a known group the response is a Status.
_PAGE_NOT_FOUND = Response(404, {"content-type": "text/plain; charset=utf-8"}, b"404 page not found\n")
#: Seconds for which a request may block the event loop without being counted, and without being logged.
SHORT_HOLD = 0.005
LONG_HOLD = 0.05


class Server:
    def __init__(
        self,
        api: Api,
        *,
        authenticator: Authenticator,
        impersonation: Impersonation,
        limits: Limits,
        in_flight: InFlight,
        metrics: Metrics,
        health: Health,
        handlers: Handlers,
        views: Views,
        responders: Sequence[Responder],
        git_version: str,
    ):
        self.api = api
        self.registry = api.registry
        self.store = api.store
        self.authorizer = api.authorizer
        self.offload = api.offload
        self.limits = limits
        self.in_flight = in_flight
        self.metrics = metrics
        self.health = health
        self.git_version = git_version
        self.responders = list(responders)
        self._authenticator = authenticator
        self._impersonation = impersonation
        self._handlers = handlers
        self._views = views

    @property
    def watchers(self) -> set[Watch]:
        """The watches that are open."""
        return self.store.watchers()

    def authenticate(
        self, headers: Mapping[str, str], peer_certificate: bytes | None, request: Callable[[], Request]
    ) -> User:
        """The user of a request, impersonation applied; `request` tells what it is about. Raises 401 and 403."""
        user = self._authenticator.authenticate(headers, peer_certificate)
        if user is None:
            raise status.unauthorized()
        try:
            return self._impersonation.user(user, headers, lambda user: _attributes(request(), user))
        except ImpersonationDenied as denial:
            raise status.denied(denial.attributes, denial.why) from None
        except ImpersonationIncomplete as error:
            raise status.bad_request(str(error)) from None

    def is_watch(self, request: Request) -> bool:
        """Whether the response is a stream, which `watch` opens; `handle` serves all others."""
        if request.method != "GET" or not (
            "/watch/" in request.path or any(key == "watch" for key, _ in request.query)
        ):
            return False
        target = parse_target(request)
        return target is not None and target.verb == "watch"

    async def handle(self, request: Request, user: User) -> Response:
        """Serve anything but a watch. Errors are returned as responses; only cancellation is raised."""
        steps = Steps(self._handle(request, user))
        try:
            return await steps
        finally:
            self._tell_hold(request, steps.longest)

    def _tell_hold(self, request: Request, seconds: float) -> None:
        if seconds > SHORT_HOLD:
            self.metrics.held.observe(seconds)
        if seconds > LONG_HOLD:
            log.warning("%s %s held the event loop for %.0f ms", request.method, request.path, seconds * 1000)

    async def _handle(self, request: Request, user: User) -> Response:
        started = clock.monotonic()
        verb, group, resource = request.method.lower(), "", ""
        try:
            target = parse_target(request)
            if target is None:
                response = await self._other(request, user)
            else:
                verb = target.verb
                if self.registry.find(target.group, target.version, target.plural) is not None:
                    # Other methods must not become label values: clients could choose any number of them.
                    group, resource = target.group, target.plural
                response = await self._answer(target, request, user)
        except ApiError as error:
            response = status.as_response(error)
        except Exception:
            response = status.as_response(_failed(request))
        self.metrics.request(verb, group, resource, response.status, clock.monotonic() - started)
        return response

    async def list(self, request: Request, user: User) -> Page:
        """A list as the store's own bytes. Raises ApiError."""
        target = self._target(request)
        return await list_page(self.api, self._call(target, request, user))

    async def watch(self, request: Request, user: User, reader: Reader, longest: float | None = None) -> Watcher:
        """Open a watch; the caller closes it. It ends by itself after the request's timeout, or `longest`.

        Raises ApiError for any failure.
        """
        steps = Steps(self._watch(request, user, reader, longest))
        try:
            return await steps
        except ApiError:
            raise
        except Exception:
            raise _failed(request) from None
        finally:
            self._tell_hold(request, steps.longest)

    async def _watch(self, request: Request, user: User, reader: Reader, longest: float | None) -> Watcher:
        target = self._target(request)
        call = self._call(target, request, user)
        if target.verb != "watch" or "watch" not in call.kind.verbs or call.subresource:
            raise status.method_not_allowed()
        return await watch(self.api, call, reader, watch_renderer(call), longest)

    def _serves(self, group: str) -> bool:
        return any(kind.group == group for kind in self.registry)

    def _target(self, request: Request) -> Target:
        target = parse_target(request)
        if target is None:
            raise status.not_served()
        return target

    def _call(self, target: Target, request: Request, user: User) -> Call:
        attributes = target.attributes(user)
        decision = self.authorizer.authorize(attributes)
        if not decision.allowed:
            raise status.denied(attributes, decision.reason)
        return Call.of(target, self.registry, request, user)

    async def _answer(self, target: Target, request: Request, user: User) -> Response:
        try:
            call = self._call(target, request, user)
        except NotFound:
            if self._serves(target.group):
                raise
            return _PAGE_NOT_FOUND
        if request.method == "HEAD" and call.kind.builtin:
            raise status.method_not_allowed()
        named = call.kind.group, call.kind.plural, call.subresource
        try:
            return await self._act(call, named)
        except ApiError as error:
            # Warnings from before the failure are returned as well.
            return warned(call, status.as_response(error))

    async def _act(self, call: Call, named: tuple[str, str, str]) -> Response:
        handler = self._handlers.get((*named[:2], call.subresource.partition("/")[0]))
        if handler is not None:
            return await handler(call)
        if call.subresource == "scale":
            await self.api.ready(call)
            return await scale(self.api, call)
        view = self._views.get(named)
        if view is not None and call.verb in _VIEWS["status"]:
            call = call.but(kind=structs.replace(call.kind, strategy=view), subresource="")
        elif call.subresource:
            if call.subresource not in _VIEWS:
                raise status.not_implemented(f"{call.kind.plural}/{call.subresource} is not served here")
            if call.verb not in _VIEWS[call.subresource]:
                raise status.method_not_allowed()
        elif call.verb not in call.kind.verbs or call.verb == "watch" or bool(call.name) != (call.verb in _NAMED):
            raise status.method_not_allowed()  # only HEAD comes here with watch, and it cannot stream
        if call.verb == "list":
            return await render_list(self.api, call, await list_page(self.api, call))
        if call.verb != "get":
            await self.api.ready(call)
        response = await VERBS[call.verb](self.api, call)
        return response if call.verb == "deletecollection" else await render_object(self.api, call, response)

    async def _other(self, request: Request, user: User) -> Response:
        """Paths that are not resources."""
        attributes = _attributes(request, user)
        decision = self.authorizer.authorize(attributes)
        if not decision.allowed:
            raise status.denied(attributes, decision.reason)
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        excluded = frozenset(value for key, value in request.query if key == "exclude")
        response = self.health.respond(request.path, dict(request.query), excluded)
        if response is not None:
            return response
        if request.path == "/version":
            return _version(self.git_version)
        if request.path == "/metrics":
            self._measure()
            return await self.offload.run(user.name, self.metrics.respond)
        for responder in self.responders:
            response = await responder(request, user)
            if response is not None:
                return response
        return _PAGE_NOT_FOUND

    def _measure(self) -> None:
        self.metrics.watchers.set(len(self.watchers))
        self.metrics.storage_full.set(self.store.room.full)
        self.metrics.watch_bytes.set(self.store.buffers.held)
        self.metrics.in_flight.set(self.in_flight.reads + self.in_flight.writes)
        self.metrics.offload_waiting.set(self.offload.waiting)
        self.metrics.offload_running.set(self.offload.running)
        for name, table in self.store.tables().items():
            self.metrics.objects.labels(name).set(len(table.entries))


def _failed(request: Request) -> ApiError:
    """For an unexpected exception that is being handled."""
    log.exception("%s %s failed", request.method, request.path)
    return status.internal("the request could not be handled; the server's log says why")


def _attributes(request: Request, user: User) -> Attributes:
    """What a request wants to do. Raises for an invalid one."""
    target = parse_target(request)
    if target is None:
        return Attributes(user, request.method.lower(), path=request.path)
    return target.attributes(user)


def _version(git_version: str) -> Response:
    major, minor, *_ = git_version.removeprefix("v").split(".")
    body = {
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"linux/{platform.machine()}",
    }
    return Response(200, {"content-type": "application/json"}, orjson.dumps(body))
