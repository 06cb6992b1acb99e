"""Identity of a member: nothing is sent to a member, or read from it, unless it is the cluster that joined.

An address may lead to another cluster at any time: DNS or a load balancer may be changed, and both clusters may share a CA and
credentials. Writes would go to the wrong cluster, and missing objects would be taken for deleted. So every connection is asked
which cluster it leads to before anything else is sent over it (`kube.challenge`). That suffices if a connection always leads to
one server. For proxies that choose a server per request, the question is repeated every few seconds of use.

Once another cluster has answered, nothing passes any more, on other connections neither. A new gate finds out whether the
member is back.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from argosy.api import keys
from argosy.fleet.identity import Identity, judged
from argosy.kube import clock
from argosy.kube.challenge import Challenge, NotAnswered
from argosy.kube.errors import ApiError, TransportError, from_response
from argosy.kube.transport import Event, Page, Request, Response, Transport

__all__ = ["IdentityGate", "Recognition", "WrongCluster"]

_PATH = f"/api/v1/namespaces/{keys.SYSTEM_NAMESPACE}"
_PATIENCE = 10.0


class WrongCluster(TransportError):
    """Another cluster than the member that joined answers; nothing was sent to it."""


class Recognition:
    """The cluster expected at a member's address, and the one found there."""

    def __init__(self, identity: Identity, server: str, on_mismatch: Callable[["Recognition"], None]) -> None:
        #: Includes the uid of the member's namespace once it was seen.
        self.identity = identity
        #: Why the cluster that answered is not the member; empty if none did.
        self.mismatch = ""
        self.challenge = Challenge(_PATH, self.judge)
        self._server = server
        self._on_mismatch = on_mismatch

    def judge(self, answer: Response) -> bool:
        """Whether the answer identifies the member; False if it identifies no cluster. Raises WrongCluster."""
        verdict = judged(self.identity, answer.status, answer.body)
        if verdict.mismatch is not None and not self.mismatch:
            self.mismatch = f"the cluster at {self._server} is not the one that joined: {verdict.mismatch}"
            self._on_mismatch(self)
        self.check()
        if verdict.uid:
            self.identity = msgspec.structs.replace(self.identity, namespace_uid=verdict.uid)
        return bool(verdict.uid)

    def check(self) -> None:
        """Raise WrongCluster if another cluster has answered."""
        if self.mismatch:
            raise WrongCluster(self.mismatch)

    def fits(self, recorded: Identity) -> bool:
        """Whether it expects the recorded member, and no other cluster has answered."""
        known = msgspec.structs.replace(recorded, namespace_uid=recorded.namespace_uid or self.identity.namespace_uid)
        return not self.mismatch and known == self.identity


class IdentityGate:
    """A `Transport` over another one. `period` is how long a confirmation is valid."""

    def __init__(self, transport: Transport, recognition: Recognition, period: float) -> None:
        self._transport = transport
        self._recognition = recognition
        self._period = period
        self._asking = asyncio.Lock()
        #: When the last confirmed question was sent, and when the last one failed.
        self._confirmed = -math.inf
        self._failed: tuple[float, Exception] = (-1.0, TransportError())

    @property
    def name(self) -> str:
        return self._transport.name

    @property
    def is_open(self) -> bool:
        """Whether the member was seen here at all."""
        return self._confirmed > -math.inf and not self._recognition.mismatch

    def exchange(self, recognition: Recognition) -> None:
        """The transport was exchanged for one with this challenge."""
        self._recognition = recognition

    async def confirm(self) -> None:
        """Return when a question sent after this call was answered by the member. Raises what `send` raises."""
        await self._confirm(clock.monotonic())

    async def send(self, request: Request) -> Response:
        return await self._transport.send(await self._admitted(request))

    async def list(self, request: Request) -> Page:
        return await self._transport.list(await self._admitted(request))

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._watch(request)

    @asynccontextmanager
    async def _watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        async with self._transport.watch(await self._admitted(request)) as events:
            yield events

    async def close(self) -> None:
        await self._transport.close()

    async def _admitted(self, request: Request) -> Request:
        """The guard stops the request if another cluster answers while it is queued."""
        await self._confirm(clock.monotonic() - self._period)
        return msgspec.structs.replace(request, guard=self._recognition.check)

    async def _confirm(self, since: float) -> None:
        self._recognition.check()
        if self._confirmed >= since:
            return
        entered = clock.monotonic()
        async with self._asking:
            self._recognition.check()
            if self._confirmed >= since:
                return
            failed, error = self._failed
            if failed >= entered:  # all that waited for the same answer share its failure
                raise error
            asked = clock.monotonic()
            try:
                await self._ask()
            except (ApiError, TransportError) as error:
                self._failed = (clock.monotonic(), error)
                raise
            self._confirmed = asked

    async def _ask(self) -> None:
        answer = await self._transport.send(Request("GET", _PATH, timeout=_PATIENCE))
        if self._recognition.judge(answer):
            return
        unanswered = NotAnswered(answer)
        if unanswered.refused:
            raise from_response(answer.status, answer.headers, answer.body)
        raise TransportError(f"{self.name}: {unanswered}")
