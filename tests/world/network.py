"""The network between processes: requests, answers and watches on their way, and all that can happen to them there.

A request is carried by the world, not by its client: a client that dies or stops takes back nothing that it has sent. A server
answers in its own process. Latencies and losses are drawn; two requests overtake each other, the events of one watch do not.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from argosy.kube.errors import ApiError, TransportError, from_response
from argosy.kube.transport import Event, Request, Response
from argosy.server import status
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.watchcache.watcher import Reader, Watcher
from tests.world.loop import WorldLoop

__all__ = ["ADMINISTRATOR", "PAGE_NOT_FOUND", "Host", "Link", "Network", "Stream", "Watching"]

T = TypeVar("T")
#: Somebody who sits at the machines: he sees them as they are.
ADMINISTRATOR = "administrator"
#: What finds a link cut is sent again after so many seconds, then after twice as many, and so on up to the second.
_SENT_AGAIN, _SELDOM = 0.2, 60.0
#: What a stream carries: None is its end.
Item = Event | Exception | None


class Link(msgspec.Struct):
    """One direction between two places."""

    #: Seconds, at least and at most.
    latency: tuple[float, float] = (0.0005, 0.005)
    #: Nothing arrives, and nobody is told.
    cut: bool = False
    #: The share of what is lost, with the connection that it was on.
    loss: float = 0.0
    #: The share of requests that are answered with 429, 500 or 503, unread.
    refused: float = 0.0


PAGE_NOT_FOUND = Response(404, {"content-type": "text/plain; charset=utf-8"}, b"404 page not found\n")


class Watching(Protocol):
    """Whoever sees all that is said: the judge, and the trace."""

    def sent(self, client: str, server: str, request: Request) -> None:
        """At the moment the client sends it."""

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        """At the moment the server answered; whether the client will hear of it is another matter."""

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        """The answer has arrived."""

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None:
        """Events of a watch have arrived."""


class Host(NamedTuple):
    """A server at its address."""

    server: Server
    #: Of the process.
    context: Context
    #: What it is at work on. Whoever waits for that is told when nobody listens here any more.
    flights: "dict[Flight[Any], None]"

    def break_off(self) -> None:
        flights = list(self.flights)
        self.flights.clear()
        for flight in flights:
            flight.break_off()


class Network:
    def __init__(self, loop: WorldLoop, chance: Random, watching: Watching):
        self.loop = loop
        self.watching = watching
        self._chance = chance
        #: Nobody's.
        self.context = Context()
        self._hosts: dict[str, Host] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._streams: dict[Stream, None] = {}
        #: Servers that are gone with their machines, until something answers there again.
        self._vanished: dict[str, list[Host]] = {}
        #: Addresses at which something else answers.
        self.impostors: Counter[str] = Counter()
        #: How often a client of that name has gone.
        self._left: Counter[str] = Counter()
        #: Servers whose watches tell nothing now.
        self.muted: dict[str, None] = {}

    def link(self, source: str, target: str) -> Link:
        return self._links.setdefault((source, target), Link())

    def heal(self) -> None:
        """All links are as they were at first, also for what is on its way."""
        well = Link()
        for link in self._links.values():
            for field in Link.__struct_fields__:
                setattr(link, field, getattr(well, field))
        self.impostors.clear()
        for server in list(self.muted):
            self.unmute(server)

    def server(self, address: str) -> Server | None:
        host = self._hosts.get(address)
        return host.server if host is not None else None

    def listen(self, address: str, server: Server, context: Context) -> None:
        for host in self._vanished.pop(address, ()):
            host.break_off()
        self._hosts[address] = Host(server, context, {})

    def refuse(self, address: str) -> None:
        """Nobody listens there any more; what is under way goes on."""
        self._hosts.pop(address, None)

    def hang_up(self, address: str, *, silent: bool = False) -> None:
        """Nobody listens there any more. Clients on connections to it are told, as the system does for a process that ended.

        With `silent` they are not, as the system is gone too: who waits for an answer is told when there is one again, and who
        waits for events never.
        """
        host = self._hosts.pop(address, None)
        if host is not None and silent:
            self._vanished.setdefault(address, []).append(host)
        elif host is not None:
            host.break_off()
        for stream in list(self._streams):
            if stream.server == address:
                stream.fall_silent() if silent else stream.break_off()

    def unmute(self, server: str) -> None:
        """Its watches end, with what they had to tell; new ones tell everything."""
        if server in self.muted:
            del self.muted[server]
            for stream in list(self._streams):
                if stream.server == server:
                    stream.lose()

    def leave(self, client: str) -> None:
        """A client is gone, and its connections with it."""
        self._left[client] += 1
        for stream in list(self._streams):
            if stream.client == client:
                stream.close()

    def carry(
        self, client: str, server: str, request: Request, work: Callable[[Host], Coroutine[Any, Any, T]]
    ) -> "asyncio.Future[T]":
        """Send a request. The future is the client's; what is on the way goes on without it."""
        self.watching.sent(client, server, request)
        return Flight(self, client, server, request, work).result

    def send(self, source: str, target: str, call: Callable[[bool], None]) -> None:
        """Call it at the other end, with whether it has arrived. While the link is cut it is sent again and again, as TCP
        does, less and less often."""
        link = self.link(source, target)
        self._later(self._chance.uniform(*link.latency), self._try, link, _SENT_AGAIN, call)

    def _try(self, link: Link, again: float, call: Callable[[bool], None]) -> None:
        if link.cut:
            self._later(again, self._try, link, min(2 * again, _SELDOM), call)
        else:
            call(not (link.loss and self._chance.random() < link.loss))

    def _later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        """In nobody's process: callbacks, since tasks would cost as much as what they carry."""
        self.loop.call_later(seconds, call, *arguments, context=self.context)

    def gone(self, client: str) -> int:
        """How often a client of that name has."""
        return self._left[client]

    def host(self, address: str) -> Host | None:
        return self._hosts.get(address)

    def happens(self, share: float) -> bool:
        return self._chance.random() < share

    def refusal(self) -> ApiError:
        """429, 500 or 503."""
        refusals = (
            status.too_many_requests(),
            status.internal("etcdserver: request timed out"),
            status.unavailable("the server is overloaded"),
        )
        return self._chance.choice(refusals)

    # Watches.

    def opened(self, stream: "Stream") -> None:
        self._streams[stream] = None

    def closed(self, stream: "Stream") -> None:
        self._streams.pop(stream, None)


class Flight(Generic[T]):
    """One request: there, at the server, and back. Nobody can stop it."""

    def __init__(
        self,
        network: Network,
        client: str,
        server: str,
        request: Request,
        work: Callable[[Host], Coroutine[Any, Any, T]],
    ):
        self._network = network
        self._client = client
        self._server = server
        self._request = request
        self._work = work
        self._left = network.gone(client)
        #: The client's.
        self.result: asyncio.Future[T] = network.loop.create_future()
        self._host: Host | None = None
        self._answer: T | None = None
        self._error: BaseException | None = None
        network.send(client, server, self._arrived)

    def _arrived(self, held: bool) -> None:
        """At the server, or at its machine, which speaks in its place."""
        network = self._network
        if not held:
            return self._fail(self._reset())
        if self.result.done() and network.happens(0.5):
            return None  # given up on the way: what was not sent yet never is
        if network.impostors[self._server] and self._client != ADMINISTRATOR:
            return self._return(None, from_response(PAGE_NOT_FOUND.status, PAGE_NOT_FOUND.headers, PAGE_NOT_FOUND.body))
        host = self._host = network.host(self._server)
        if host is None:
            return self._return(None, TransportError(f"{self._server}: connection refused"))
        link = network.link(self._client, self._server)
        if link.refused and network.happens(link.refused):
            return self._return(None, network.refusal())
        host.flights[self] = None
        task = network.loop.create_task(self._work(host), context=host.context.copy())
        task.add_done_callback(self._answered, context=network.context)
        return None

    def _answered(self, task: "asyncio.Task[T]") -> None:
        assert self._host is not None
        if self not in self._host.flights:
            return  # the connection is gone
        del self._host.flights[self]
        error = task.exception()
        answer = task.result() if error is None else None
        self._network.watching.answered(
            self._client, self._server, self._request, error if error is not None else answer
        )
        self._return(answer, error)

    def break_off(self) -> None:
        """The server is gone in the middle of it."""
        self._return(None, self._reset())

    def _return(self, answer: T | None, error: BaseException | None) -> None:
        self._answer, self._error = answer, error
        self._network.send(self._server, self._client, self._returned)

    def _returned(self, held: bool) -> None:
        """At the client."""
        result, answer, error = self.result, self._answer, self._error
        if not held:
            error = self._reset()
        if error is not None:
            self._fail(error)
        elif not result.done():
            self._network.watching.heard(self._client, self._server, self._request, answer)
            result.set_result(answer)  # type: ignore[arg-type]
        nobody_there = error is not None or result.cancelled() or self._network.gone(self._client) != self._left
        if isinstance(answer, Stream) and nobody_there:
            answer.close()

    def _fail(self, error: BaseException) -> None:
        if not self.result.done():
            self.result.set_exception(error)
            self.result.exception()  # nobody may be there to look

    def _reset(self) -> TransportError:
        return TransportError(f"{self._server}: connection reset")


class Stream:
    """One watch: the server's end in its process, the client's in its own, and the events between them, in their order."""

    def __init__(self, network: Network, client: str, server: str, request: Request):
        self.client = client
        self.server = server
        self._network = network
        self._request = request
        self._sent: deque[list[Item]] = deque()
        self._carrying = False
        self._arrived: deque[Item] = deque()
        self._news = asyncio.Event()
        self._closed = False
        self._watcher: Watcher | None = None

    async def open(self, host: Host, user: User) -> None:
        """In the server's process."""
        ready = asyncio.Event()
        self._watcher = await host.server.watch(self._request, user, Reader(wake=ready.set, cut=ready.set))
        self._network.opened(self)
        self._pump = asyncio.ensure_future(self._send_all(self._watcher, ready))

    async def _send_all(self, watcher: Watcher, ready: asyncio.Event) -> None:
        while not self._closed:
            ready.clear()
            try:
                events = watcher.take_events()
            except ApiError as error:
                return self._send([error])
            if events:
                self._send(list(events))
                await asyncio.sleep(0)
                continue
            if watcher.exhausted:
                return self._send([None])
            await ready.wait()
        return None

    def break_off(self) -> None:
        """The server is gone."""
        self._send([self._reset()])

    def fall_silent(self) -> None:
        """The server is gone, and nobody is told."""
        self._closed = True

    def lose(self) -> None:
        """What was to be told is lost, with the connection."""
        self._sent.clear()
        self._carrying = False
        self.break_off()

    def _send(self, items: "list[Item]") -> None:
        """One after the other: nothing overtakes anything here."""
        self._sent.append(items)
        if not self._carrying:
            self._carrying = True
            self._network.send(self.server, self.client, self._arrive)

    def _arrive(self, held: bool) -> None:
        if self.server in self._network.muted:
            return
        self._carrying = False
        if self._closed:
            return
        items = [item for some in self._sent for item in some] if held else [self._reset()]
        self._sent.clear()
        if not held:
            self._closed = True  # for the server; the client is told
        events = [item for item in items if isinstance(item, Event)]
        if events:
            self._network.watching.told(self.client, self.server, self._request, events)
        self._arrived.extend(items)
        self._news.set()

    def _reset(self) -> TransportError:
        return TransportError(f"{self.server}: connection reset")

    async def events(self) -> AsyncIterator[Event]:
        """In the client's process."""
        while True:
            while self._arrived:
                item = self._arrived.popleft()
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
            self._news.clear()
            await self._news.wait()

    def close(self) -> None:
        """The client has enough; the server hears of it later."""
        self._closed = True
        self._network.closed(self)
        watcher = self._watcher
        if watcher is not None:
            self._network.send(self.client, self.server, lambda held: watcher.drop())
