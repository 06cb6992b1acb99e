"""The HTTP listener: a listening socket with TLS in front of a server.

Owns the socket, its connections and one timer that ends slow and idle ones; `close` ends them all after the requests in
progress. The number of connections is bounded: a new one replaces the one that has been idle for longest, and if none is idle
it is told to come back later.
"""

import asyncio
import contextlib
import resource
import ssl as tls

from argosy.kube import clock
from argosy.server.app import Server
from argosy.server.http.buffers import Buffers
from argosy.server.http.connection import Connection

__all__ = ["Listener", "serve"]

SWEEP_PERIOD = 2.0
#: Timeout of the TLS handshake.
HANDSHAKE_SECONDS = 15.0
#: Open files that are not connections.
OTHER_FILES = 100


class Listener:
    def __init__(self, server: Server):
        self.server = server
        self.connections: set[Connection] = set()
        #: Connections that wait for a request, the longest waiting first.
        self._idle: dict[Connection, None] = {}
        self._most = _most_connections(server.limits.connections)
        #: Data of incomplete requests.
        self.received = Buffers(
            server.limits.received_bytes,
            server.metrics.connections_refused.labels("sending").inc,
            "were sent of requests that are not whole",
        )
        self.closing = False
        self.port = 0
        self._socket: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None

    async def open(self, host: str, port: int, ssl: tls.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        self._socket = await loop.create_server(
            lambda: Connection(self),
            host,
            port,
            ssl=ssl,
            backlog=1024,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if ssl is not None else None,
        )
        self.port = self._socket.sockets[0].getsockname()[1]
        self._sweep()

    async def close(self, grace: float = 5.0) -> None:
        """Accept no more connections; end watches; give requests in progress `grace` seconds."""
        self.closing = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._socket is not None:
            self._socket.close()
        for connection in tuple(self.connections):
            connection.end()
        if self.connections:
            self._drained = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained, grace)
        for connection in tuple(self.connections):
            connection.abort()

    def began(self, connection: Connection) -> bool:
        """Whether there is room for the connection."""
        self.connections.add(connection)
        self.server.metrics.connections.inc()
        refused = self.server.metrics.connections_refused
        while len(self.connections) > self._most:
            oldest = next(iter(self._idle), None)
            if oldest is None:
                refused.labels("new").inc()
                return False
            del self._idle[oldest]
            refused.labels("idle").inc()
            self.connections.discard(oldest)
            oldest.abort()  # it was idle, and its client opens another when needed
        self._idle[connection] = None
        return True

    def idle(self, connection: Connection) -> None:
        if connection in self.connections:  # the client may have left before the response
            self._idle[connection] = None

    def busy(self, connection: Connection) -> None:
        self._idle.pop(connection, None)

    def ended(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._idle.pop(connection, None)
        self.server.metrics.connections.dec()
        if not self.connections and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _sweep(self) -> None:
        now = clock.monotonic()
        for connection in tuple(self.connections):
            if connection.overdue(now):
                connection.abort()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_PERIOD, self._sweep)


def _most_connections(limit: int) -> int:
    """Each connection is an open file, which the system limits."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if files == resource.RLIM_INFINITY else max(1, min(limit, files - OTHER_FILES))


async def serve(server: Server, host: str = "127.0.0.1", port: int = 0, ssl: tls.SSLContext | None = None) -> Listener:
    """Listen; port 0 takes a free one, see `Listener.port`. The caller starts the server before and stops it afterwards."""
    listener = Listener(server)
    await listener.open(host, port, ssl)
    return listener
