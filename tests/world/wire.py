"""The wire: a client's way to one server of the world."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from argosy.kube.challenge import Challenge
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.transport import Event, Page, Request, Response
from argosy.server import status
from argosy.server.app import Server
from argosy.server.auth.identity import User
from tests.world.network import PAGE_NOT_FOUND, Host, Network, Stream

__all__ = ["Login", "Wire"]

T = TypeVar("T")
#: Seconds until a client gives up, where it does not say.
_TIMEOUT = 30.0
#: What a server makes of credentials: the user of a request. Raises what the client gets to hear.
Login = Callable[[Server, Request], User]


class Wire:
    """A client's way to one server: a `kube.transport.Transport`."""

    def __init__(
        self,
        network: Network,
        client: str,
        server: str,
        who: User | Mapping[str, str] | Login,
        challenge: Challenge | None = None,
    ):
        """`who` is a user, or how the server finds that out: by headers, or otherwise.

        `client` and `server` are names of places.
        """
        self.name = server
        self._network = network
        self._client = client
        self._who = who
        self._challenge = challenge
        self._met: Host | None = None
        self._closed = False

    async def send(self, request: Request) -> Response:
        async def work(host: Host) -> Response:
            return await host.server.handle(request, self._user(host, request))

        try:
            return await self._exchange(request, work)
        except NotFound as error:
            return status.as_response(error) if error.status.get("details") else PAGE_NOT_FOUND
        except ApiError as error:
            return status.as_response(error)

    async def list(self, request: Request) -> Page:
        async def work(host: Host) -> Page:
            return await host.server.list(request, self._user(host, request))

        return await self._exchange(request, work)

    @asynccontextmanager
    async def watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        async def work(host: Host) -> Stream:
            stream = Stream(self._network, self._client, self.name, request)
            await stream.open(host, self._user(host, request))
            return stream

        stream = await self._exchange(request, work)
        try:
            yield stream.events()
        finally:
            stream.close()

    async def close(self) -> None:
        self._closed = True

    async def _exchange(self, request: Request, work: Callable[[Host], Coroutine[Any, Any, T]]) -> T:
        if self._closed:
            raise TransportError("the transport is closed")
        seconds = request.timeout if request.timeout is not None else _TIMEOUT
        try:
            async with asyncio.timeout(seconds):
                await self._meet(request)
                if request.guard is not None:
                    request.guard()
                return await self._network.carry(self._client, self.name, request, work)
        except TimeoutError:
            raise TransportError(f"{self.name}: no answer within {seconds:g} s") from None

    async def _meet(self, request: Request) -> None:
        """Ask a server that was not talked to before who it is."""
        challenge = self._challenge
        if challenge is None or (self._met is not None and self._met is self._network.host(self.name)):
            return
        question = Request("GET", challenge.path, headers=request.headers)
        met: list[Host] = []

        async def work(host: Host) -> Response:
            met.append(host)
            return await host.server.handle(question, self._user(host, question))

        answer = await self._network.carry(self._client, self.name, question, work)
        if not challenge.judge(answer):
            raise TransportError(f"{self.name}: it did not say which server it is: it answered {answer.status}")
        self._met = met[-1]

    def _user(self, host: Host, request: Request) -> User:
        if isinstance(self._who, User):
            return self._who
        if callable(self._who):
            return self._who(host.server, request)
        return host.server.authenticate(self._who, None, lambda: request)
