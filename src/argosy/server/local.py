"""The in-process transport: the same requests, served in the same process without HTTP, TLS or copies.

Lists and watches return the store's own bytes. Authorisation, admission, versions and errors are as with HTTP; only
authentication is left out, as the caller states the user.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from argosy.kube.errors import TransportError
from argosy.kube.transport import Event, Page, Request, Response
from argosy.server.app import Server
from argosy.server.auth.identity import User
from argosy.server.watchcache.watcher import Reader, Watcher

__all__ = ["LocalTransport"]


class LocalTransport:
    """Implements kube.transport.Transport."""

    name = "the server in this process"

    def __init__(self, server: Server, user: User):
        self._server = server
        self._user = user
        self._closed = False

    async def send(self, request: Request) -> Response:
        self._check_open()
        return await self._server.handle(request, self._user)

    async def list(self, request: Request) -> Page:
        self._check_open()
        return await self._server.list(request, self._user)

    @asynccontextmanager
    async def watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        self._check_open()
        ready = asyncio.Event()
        # A stream that is cut off simply ends for its reader.
        watcher = await self._server.watch(request, self._user, Reader(wake=ready.set, cut=ready.set))
        try:
            yield _events(watcher, ready)
        finally:
            watcher.drop()

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise TransportError("the transport is closed")


async def _events(watcher: Watcher, ready: asyncio.Event) -> AsyncIterator[Event]:
    while True:
        ready.clear()
        events = watcher.take_events()
        for event in events:
            yield event
        if events:
            # A long backlog is returned in portions, with the event loop running in between.
            await asyncio.sleep(0)
            continue
        if watcher.exhausted:
            return
        await ready.wait()
