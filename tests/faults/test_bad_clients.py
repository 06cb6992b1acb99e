"""Bad clients at the HTTPS door, many at once: others are served meanwhile, and nothing is left of them when they are gone."""

import asyncio
import contextlib
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faults.served import Served
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS

MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = "authorization: Bearer admin-token\r\n"
PATIENCE = 1.0
MEGABYTE = 1024 * 1024
#: What others may have to wait at most; machines that run tests are busy with other things too.
LATENCY = 10.0

pytestmark = pytest.mark.slow
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Door:
    def __init__(self, server: Served):
        self.server = server
        self._trust = ssl.create_default_context(cadata=server.connection.ca_data.decode())

    async def connect(self) -> Streams:
        return await asyncio.open_connection(
            "127.0.0.1", self.server.port, ssl=self._trust, server_hostname="localhost", limit=MEGABYTE
        )

    async def counts(self) -> dict[str, int]:
        counts: dict[str, int] = orjson.loads(await self.server.client.request("GET", "/counts"))
        return counts


@pytest.fixture
async def door(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    patience = getattr(request, "param", PATIENCE)
    async with Served(tmp_path, "tests.faults.door", str(tmp_path), str(patience)) as server:
        yield Door(server)


#: Where everybody is to be answered, however long a busy machine takes for so many handshakes.
patient = pytest.mark.parametrize("door", [30.0], indirect=True, ids=["patient"])


@asynccontextmanager
async def others_served(door: Door) -> AsyncIterator[None]:
    """A good client reads and writes meanwhile, and does not wait long for it."""
    name = f"good-{random.randrange(10**9)}"
    worst, done, over = 0.0, 0, asyncio.Event()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    await door.server.client.create(CONFIGMAPS, body)

    async def work() -> None:
        nonlocal worst, done
        while not over.is_set():
            started = time.monotonic()
            await door.server.client.patch(CONFIGMAPS, name, {"data": {"n": str(done)}}, "default")
            await door.server.client.get(CONFIGMAPS, name, "default")
            worst = max(worst, time.monotonic() - started)
            done += 1
            await asyncio.sleep(0.01)

    working = asyncio.create_task(work())
    try:
        yield
        await eventually(lambda: done > 5 or working.done(), why="others are served")
    finally:
        over.set()
        await working
    print(f"{done} good requests, the slowest took {worst * 1000:.0f} ms")
    assert worst < LATENCY


@asynccontextmanager
async def nothing_left(door: Door, memory: int) -> AsyncIterator[None]:
    """Afterwards there are as many tasks, connections and files as before, and not much more memory was used."""
    await door.counts()
    before, files, resident = await door.counts(), door.server.descriptors(), door.server.resident()
    highest = resident

    async def look() -> None:
        nonlocal highest
        while True:
            highest = max(highest, door.server.resident())
            await asyncio.sleep(0.02)

    looking = asyncio.create_task(look())
    try:
        yield
        await eventually(lambda: _as_before(door, before, files), 60, "all of it is gone")
    finally:
        looking.cancel()
    print(f"memory: {resident >> 20} MB before, {highest >> 20} MB at most")
    assert highest - resident < memory


async def _as_before(door: Door, before: dict[str, int], files: int) -> bool:
    now = await door.counts()
    return all(now[what] <= before[what] + 1 for what in before) and door.server.descriptors() <= files + 1


async def all_of(number: int, client: Callable[[int], Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*(client(each) for each in range(number)))


async def code_of(reader: asyncio.StreamReader) -> int:
    """0 when the connection was closed without an answer."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        async with asyncio.timeout(60):
            return int((await reader.readuntil(b"\r\n")).split()[1])
    return 0


async def send_until_closed(streams: Streams, piece: bytes, pause: float = 0.0) -> int:
    """Bytes sent until the server would have no more of it."""
    reader, writer = streams
    sent = 0
    deadline = time.monotonic() + PATIENCE + 15
    with contextlib.suppress(ConnectionError):
        while not reader.at_eof():
            assert time.monotonic() < deadline, f"still open after {sent} bytes"
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
            await asyncio.sleep(pause)
    return sent


async def test_half_requests(door: Door) -> None:
    """Slow loris: a byte now and then does not buy more time."""

    async def client(number: int) -> None:
        streams = await door.connect()
        streams[1].write(b"POST /api HTTP/1.1\r\nx: ")
        started = time.monotonic()
        await send_until_closed(streams, b"y", pause=0.2)
        assert time.monotonic() - started < PATIENCE + 10
        streams[1].close()

    async with nothing_left(door, 60 * MEGABYTE), others_served(door):
        await all_of(100, client)


@patient
async def test_garbage(door: Door) -> None:
    chance = random.Random(5)

    async def client(number: int) -> int:
        reader, writer = await door.connect()
        writer.write(chance.randbytes(1000) + b"\r\n\r\n")
        code = await code_of(reader)
        writer.close()
        return code

    async def no_tls(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        writer.write(chance.randbytes(1000))
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 60)
        writer.close()

    async with nothing_left(door, 60 * MEGABYTE), others_served(door):
        assert set(await all_of(100, client)) == {400}
        await all_of(100, no_tls)


async def test_huge_headers(door: Door) -> None:
    async def client(number: int) -> tuple[int, int]:
        streams = await door.connect()
        form = (b"GET / HTTP/1.1\r\nx: ", b"GET /", b"GET / HTTP/1.1\r\n")[number % 3]
        streams[1].write(form)
        piece = b"x: " + b"y" * 1000 + b"\r\n" if number % 3 == 2 else b"y" * 100_000
        sent = await send_until_closed(streams, piece)
        code = await code_of(streams[0])
        streams[1].close()
        return code, sent

    async with nothing_left(door, 150 * MEGABYTE), others_served(door):
        for code, _sent in await all_of(30, client):
            assert code in (431, 0)


@pytest.mark.parametrize("token", [TOKEN, ""])
async def test_huge_and_endless_bodies(door: Door, token: str) -> None:
    async def client(number: int) -> int:
        streams = await door.connect()
        if number % 2:
            length, piece = "content-length: 1000000000", b"y" * 100_000
        else:
            length, piece = "transfer-encoding: chunked", b"186a0\r\n" + b"y" * 100_000 + b"\r\n"
        streams[1].write(f"POST {MAPS} HTTP/1.1\r\nhost: x\r\n{token}{length}\r\n\r\n".encode())
        await send_until_closed(streams, piece)
        code = await code_of(streams[0])
        streams[1].close()
        return code

    async with nothing_left(door, 250 * MEGABYTE), others_served(door):
        for code in await all_of(40, client):
            assert code in (413, 401, 0)


async def test_bodies_of_strangers_are_not_kept(door: Door) -> None:
    """Who does not say who he is gets no memory: the body of such a request is dropped as it comes."""

    async def client(number: int) -> None:
        streams = await door.connect()
        streams[1].write(f"POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: {3 * MEGABYTE}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            streams[1].write(b"y" * (2 * MEGABYTE + 900_000))
            await streams[1].drain()
            await asyncio.wait_for(streams[0].read(), PATIENCE + 10)
        streams[1].close()

    async with nothing_left(door, 80 * MEGABYTE), others_served(door):
        await all_of(40, client)


async def test_watchers_that_never_read(door: Door) -> None:
    """Large objects change all the time; who does not read is cut off."""
    client = door.server.client
    metadata = {"name": "big", "namespace": "default"}
    await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    async def watcher(number: int) -> Streams:
        streams = await door.connect()
        streams[1].transport.pause_reading()
        streams[1].write(f"GET {MAPS}?watch=true HTTP/1.1\r\nhost: x\r\n{TOKEN}\r\n".encode())
        return streams

    async with nothing_left(door, 250 * MEGABYTE), others_served(door):
        opened = await all_of(50, watcher)
        for number in range(300):
            await client.patch(CONFIGMAPS, "big", {"data": {"k": f"{number}" + "x" * 500_000}}, "default")
        await eventually(lambda: _watches(door, 0), 60, "those who do not read are cut off")
        for _, writer in opened:
            writer.close()


async def _watches(door: Door, number: int) -> bool:
    return (await door.counts())["watches"] == number


async def test_answers_that_are_never_read(door: Door) -> None:
    """Requests that follow each other without a pause do not pile up answers."""
    client = door.server.client
    for number in range(10):
        metadata = {"name": f"big-{number}", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x" * 500_000}}
        await client.create(CONFIGMAPS, body)

    async def greedy(number: int) -> None:
        streams = await door.connect()
        streams[1].transport.pause_reading()
        request = f"GET {MAPS} HTTP/1.1\r\nhost: x\r\n{TOKEN}\r\n".encode()
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(PATIENCE + 3):
                while True:
                    streams[1].write(request)
                    await streams[1].drain()
                    await asyncio.sleep(0.01)
        streams[1].close()

    async with nothing_left(door, 300 * MEGABYTE), others_served(door):
        await all_of(10, greedy)


async def test_a_slow_reader_gets_all_of_its_answer(door: Door) -> None:
    """Slow is not dead: while something is read, the answer goes on for as long as it takes."""
    client = door.server.client
    for number in range(16):
        metadata = {"name": f"big-{number}", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x" * 1_000_000}}
        await client.create(CONFIGMAPS, body)
    reader, writer = await door.connect()
    writer.write(f"GET {MAPS} HTTP/1.1\r\nhost: x\r\n{TOKEN}connection: close\r\n\r\n".encode())
    started, got = time.monotonic(), 0
    while piece := await reader.read(250_000):
        got += len(piece)
        if time.monotonic() - started < 3 * PATIENCE:
            await asyncio.sleep(0.06)  # a kernel tells the sender of room only once there is a good deal of it
    assert time.monotonic() - started > 3 * PATIENCE
    assert got > 16_000_000
    writer.close()


@patient
async def test_thousands_of_idle_connections(door: Door) -> None:
    opened: list[Streams] = []

    async def idle(number: int) -> None:
        streams = await door.connect()
        streams[1].write(f"GET /livez HTTP/1.1\r\nhost: x\r\n{TOKEN}\r\n".encode())
        assert await code_of(streams[0]) == 200
        opened.append(streams)

    async with nothing_left(door, 300 * MEGABYTE), others_served(door):
        for _ in range(22):
            await all_of(50, idle)
        counts = await door.counts()
        assert counts["connections"] > 1100
        for _, writer in opened:
            writer.close()


@patient
async def test_strangers_learn_nothing(door: Door) -> None:
    """TLS without a certificate, and no token."""

    async def stranger(number: int) -> int:
        reader, writer = await door.connect()
        writer.write(f"GET {MAPS}{'?watch=true' * (number % 2)} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        code = await code_of(reader)
        writer.close()
        return code

    async with nothing_left(door, 60 * MEGABYTE), others_served(door):
        assert set(await all_of(100, stranger)) == {401}
