"""Identity of a member: nothing goes to a member, or comes from it, unless it is the one that joined.

An address may lead to another cluster at any time: a name or a load balancer was pointed elsewhere, and the certificates and
credentials of both are of one authority. What is written there would be in the wrong place, and what is missing there would
be taken for gone. So every connection is asked which cluster it leads to before anything else is sent over it
(`kube.challenge`), which is all there is to ask where a connection leads to one server for its life. Where something in
between chooses anew for each request, the question is put again every few seconds of use.

Once another cluster was met, nothing passes any more, on other connections neither. Whoever made the gate makes another one
to find out whether the member is back.
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
    """What answers is not the member that joined; nothing was sent to it."""


class Recognition:
    """Who is expected at a member's address, and what was found there."""

    def __init__(self, identity: Identity, server: str, on_mismatch: Callable[["Recognition"], None]) -> None:
        #: With the uid of the member's namespace once that was seen.
        self.identity = identity
        #: Why what answered is not the member; empty while nothing else was met.
        self.mismatch = ""
        self.challenge = Challenge(_PATH, self.judge)
        self._server = server
        self._on_mismatch = on_mismatch

    def judge(self, answer: Response) -> bool:
        """Whether it is one, and then the right one. Raises WrongCluster."""
        verdict = judged(self.identity, answer.status, answer.body)
        if verdict.mismatch is not None and not self.mismatch:
            self.mismatch = f"the cluster at {self._server} is not the one that joined: {verdict.mismatch}"
            self._on_mismatch(self)
        self.check()
        if verdict.uid:
            self.identity = msgspec.structs.replace(self.identity, namespace_uid=verdict.uid)
        return bool(verdict.uid)

    def check(self) -> None:
        """Raise WrongCluster if another one was met."""
        if self.mismatch:
            raise WrongCluster(self.mismatch)

    def fits(self, recorded: Identity) -> bool:
        """Whether it looks out for the member that is on record, and met no other."""
        known = msgspec.structs.replace(recorded, namespace_uid=recorded.namespace_uid or self.identity.namespace_uid)
        return not self.mismatch and known == self.identity


class IdentityGate:
    """A `Transport` over another one. `period` is how long an answer is good for."""

    def __init__(self, transport: Transport, recognition: Recognition, period: float) -> None:
        self._transport = transport
        self._recognition = recognition
        self._period = period
        self._asking = asyncio.Lock()
        #: When the last question was put that was answered right, and when the last one failed.
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
        """The transport's line was exchanged for one with this challenge."""
        self._recognition = recognition

    async def confirm(self) -> None:
        """Return when a question that was put after this call was answered right. Raises what `send` raises."""
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
        """Not sent either if another cluster is met while it waits for its turn."""
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
            if failed >= entered:  # whoever waits for the same answer has the same failure
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
