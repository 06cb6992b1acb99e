"""A slow link: a TCP relay in front of a server that delays every byte, in both directions.

For experiments with latency. It knows nothing of TLS or HTTP. Owns its socket and one task per direction and connection;
`close` ends them.
"""

import asyncio
import contextlib
from collections import deque

__all__ = ["Link"]

_CHUNK = 65536


class Link:
    def __init__(self, host: str, port: int, latency: float):
        """To the server at `host` and `port`."""
        self._latency = latency
        self.port = 0
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def set_latency(self, seconds: float) -> None:
        """Set the latency for bytes from now on."""
        self._latency = seconds

    async def open(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._connected, host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in tuple(self._writers):
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind_reader, behind_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, behind_writer}
        try:
            await asyncio.gather(self._carry(reader, behind_writer), self._carry(behind_reader, writer))
        finally:
            for one in (writer, behind_writer):
                one.close()
                self._writers.discard(one)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes leave in the order and timing of their arrival, each later by the latency."""
        loop = asyncio.get_running_loop()
        held: deque[tuple[float, bytes]] = deque()
        arrived = asyncio.Event()

        async def receive() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(_CHUNK):
                    held.append((loop.time() + self._latency, data))
                    arrived.set()
            held.append((loop.time() + self._latency, b""))
            arrived.set()

        receiving = asyncio.create_task(receive())
        try:
            while True:
                while not held:
                    arrived.clear()
                    await arrived.wait()
                due, data = held.popleft()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            receiving.cancel()
            writer.close()
