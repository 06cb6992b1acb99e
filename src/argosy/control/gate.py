"""Gate: nothing goes to a member, or comes from it, before it was seen to be the one that joined.

A member that does not answer when it is connected may be another cluster by the time it does: its address or its secret may
have changed while nobody looked. What is written there would be in the wrong place, and what is missing there would be
taken for gone.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from argosy.kube.errors import TransportError
from argosy.kube.transport import Event, Page, Request, Response, Transport

__all__ = ["Gate"]


class Gate:
    """A `Transport` over another one; closed, it is as good as no answer."""

    def __init__(self, transport: Transport, *, is_open: bool) -> None:
        self._transport = transport
        self.is_open = is_open

    @property
    def name(self) -> str:
        return self._transport.name

    async def send(self, request: Request) -> Response:
        self._pass()
        return await self._transport.send(request)

    async def list(self, request: Request) -> Page:
        self._pass()
        return await self._transport.list(request)

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        self._pass()
        return self._transport.watch(request)

    async def close(self) -> None:
        await self._transport.close()

    def _pass(self) -> None:
        if not self.is_open:
            raise TransportError(f"{self.name} gave no answer yet by which it could be seen to be the one that joined")
