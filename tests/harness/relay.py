"""A relay on loopback between a client and a server, which fails in the ways networks do.

    async with Relay("127.0.0.1", port) as relay:
        relay.url, relay.port  # what the client is given instead of the server's own
        relay.silence()  # nothing gets through any more, in either direction; nobody is told
        relay.freeze()  # the same for good, for the connections open now; new ones work
        relay.cut()  # every connection is reset
        relay.refuse()  # those that are open go on, new ones are refused
        relay.lead_to(port)  # new connections go to another server; those that are open go on
        relay.heal()  # all of that is over; what was held back arrives, as TCP would send it again

A silent connection is acknowledged by the kernel, so that no time-out of TCP helps: the program itself has to notice.
"""

import asyncio
import contextlib
import socket
import struct
from typing import Any


class Relay:
    def __init__(self, host: str, port: int, *, scheme: str = "https") -> None:
        self._target = (host, port)
        self._lines: set[_Line] = set()
        self._listener: socket.socket | None = None
        self._silent = False
        #: Connections opened so far.
        self.opened = 0
        # Bound for as long as the relay lives, and never listening: nobody else gets the port while connections are refused.
        self._reserved = _bound(0)
        self.port: int = self._reserved.getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Relay":
        self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        self._reserved.close()
        tasks = [line.task for line in self._lines]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._lines)

    def silence(self) -> None:
        self._silent = True
        for line in self._lines:
            line.flowing.clear()

    def freeze(self) -> None:
        for line in self._lines:
            line.flowing.clear()
            line.lost = True

    def cut(self) -> None:
        for line in self._lines:
            line.reset()

    def refuse(self) -> None:
        if self._listener is None:
            return
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        self._listener = None

    def lead_to(self, port: int) -> None:
        """New connections go there; those that are open stay where they are."""
        self._target = (self._target[0], port)

    def heal(self) -> None:
        self._silent = False
        if self._listener is None:
            self._listen()
        for line in self._lines:
            if not line.lost:
                line.flowing.set()

    def _listen(self) -> None:
        self._listener = _bound(self.port)
        self._listener.listen(128)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            accepted, _ = self._listener.accept()
        except OSError:
            return  # it went away before we came
        self.opened += 1
        line = _Line(accepted, self._target)
        if not self._silent:
            line.flowing.set()
        self._lines.add(line)
        line.task.add_done_callback(lambda _: self._lines.discard(line))


class _Line:
    """One connection and its other half."""

    def __init__(self, accepted: socket.socket, target: tuple[str, int]) -> None:
        self.flowing = asyncio.Event()
        self.lost = False
        self._sockets: list[Any] = [accepted]
        self._writers: list[asyncio.StreamWriter] = []
        self.task = asyncio.create_task(self._run(accepted, target))

    def reset(self) -> None:
        for one in self._sockets:
            # Without a time to linger, closing a socket sends a reset and not an end. It may be closed already.
            with contextlib.suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for writer in self._writers:
            writer.transport.abort()
        self.task.cancel()

    async def _run(self, accepted: socket.socket, target: tuple[str, int]) -> None:
        accepted.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=accepted)
        self._writers.append(writer)
        try:
            await self.flowing.wait()
            there, back = await asyncio.open_connection(*target)
            self._writers.append(back)
            self._sockets.append(back.get_extra_info("socket"))
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, back))
                both.create_task(self._pump(there, writer))
        except* OSError:
            self.reset()
        finally:
            for each in self._writers:
                each.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self.flowing.wait()
            sink.write(data)
            await sink.drain()
        await self.flowing.wait()
        # An end in one direction is the end of both: HTTP has no use for half a connection.
        sink.close()


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    return made
