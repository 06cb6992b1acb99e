"""Limits on concurrent use by clients. Bodies, headers and times are checked where bytes come in (`http`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from argosy.server import status

__all__ = ["MAX_BYTES", "InFlight", "Limits", "time_limit"]

#: The largest body, and so the largest object: neither patches nor defaults make larger ones.
MAX_BYTES = 3 * 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    body_bytes: int = MAX_BYTES
    header_bytes: int = 64 * 1024
    #: Seconds a request may take; watches have their own.
    request_seconds: float = 60.0
    #: Seconds a client may take to send a request it began, and to leave a connection idle.
    receive_seconds: float = 30.0
    idle_seconds: float = 300.0
    #: Concurrent requests; reads and writes apart, as in kube-apiserver.
    reads: int = 400
    writes: int = 200
    #: Watches. Fewer than connections, since each watch uses one: others must get in.
    watches: int = 8_000
    #: Bytes of watches and responses that all clients together have not read yet.
    watch_bytes: int = 256 * 1024 * 1024
    #: Bytes of bodies that all clients together may have sent of incomplete requests.
    received_bytes: int = 256 * 1024 * 1024
    #: Concurrent connections; a new one replaces the one that has been idle for longest.
    connections: int = 10_000
    #: Watches without timeoutSeconds end after this long (and up to twice as long, so that they do not all end together).
    watch_seconds: float = 1800.0
    #: Work on this many bytes or more is done in a thread (`offload`): about the most that the loop does in 10 ms.
    offload_bytes: int = 16 * 1024
    #: More threads would not do more: they share one interpreter.
    offload_threads: int = 2
    #: Work that may wait for a thread, of all users and of one; more gets 429.
    offload_waiting: int = 200
    offload_waiting_of_user: int = 64


class InFlight:
    """Counts requests; leases pass while there is any room at all, so that leaders stay leaders under load."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self.reads = self.writes = self.watches = 0

    def enter(self, *, write: bool, priority: bool) -> None:
        """Raises 429. Every enter needs a leave."""
        limits = self._limits
        if write:
            if self.writes >= limits.writes * (2 if priority else 1):
                raise status.too_many_requests()
            self.writes += 1
            return
        if self.reads >= limits.reads * (2 if priority else 1):
            raise status.too_many_requests()
        self.reads += 1

    def leave(self, *, write: bool) -> None:
        if write:
            self.writes -= 1
        else:
            self.reads -= 1

    def enter_watch(self) -> None:
        if self.watches >= self._limits.watches:
            raise status.too_many_requests()
        self.watches += 1

    def leave_watch(self) -> None:
        self.watches -= 1


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Raises 504 at the timeout."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise status.timeout("request did not complete within the allotted time") from None
