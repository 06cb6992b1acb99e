"""Fence: checks right before each write is sent that we still hold the lease. A former leader that resumes writes nothing.

Every write of the controllers goes through a fenced client, to members and to the control plane alike: a stale placement or
finalizer does as much harm as a stale copy. The check comes after all waiting for a slot, a rate limit, a retry or a
connection, and again with every retry.

Only a request that is being handed to the kernel can still slip through. It meets the new leader's writes: updates carry the
resourceVersion that was read, deletes the uid as well, and a create finds the object (if the new leader has already deleted it
with its source, one copy is left behind). Writes without a version do no harm to copies: an event, a renewed token, sums that
shards publish, and the status of a federated object, which names the generation it belongs to; a stale one costs the new leader
one more check.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.transport import Event, Page, Request, Response, Transport

__all__ = ["Fence", "FenceLost", "Withheld", "fenced"]

_READS = frozenset({"GET", "HEAD"})


class FenceLost(TransportError):
    """Somebody else may be leading now; the write was not sent."""


class Withheld(Exception):
    """A write was not sent, because nothing may be sent now. Says nothing of who would have got it."""


class Fence(Protocol):
    def check(self) -> None:
        """Raise, FenceLost say, unless writes may be sent: we certainly still hold the lease."""
        ...


def fenced(client: Client, fence: Fence | None) -> Client:
    """The same client with a fence before its writes; None for controllers that never have a rival."""
    if fence is None:
        return client
    return Client(_Fenced(client.transport, fence), field_manager=client.field_manager)


class _Fenced:
    """A Transport."""

    def __init__(self, transport: Transport, fence: Fence):
        self._transport = transport
        self._fence = fence

    @property
    def name(self) -> str:
        return self._transport.name

    async def send(self, request: Request) -> Response:
        if request.method in _READS:
            return await self._transport.send(request)
        self._fence.check()
        return await self._transport.send(msgspec.structs.replace(request, guard=self._guard(request)))

    def _guard(self, request: Request) -> Callable[[], None]:
        before = request.guard
        if before is None:
            return self._fence.check

        def check() -> None:
            before()
            self._fence.check()

        return check

    async def list(self, request: Request) -> Page:
        return await self._transport.list(request)

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._transport.watch(request)

    async def close(self) -> None:
        await self._transport.close()
