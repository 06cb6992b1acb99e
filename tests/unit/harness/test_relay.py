"""The tests' own relay: it fails as it is told, and no other way."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.harness.eventually import PATIENCE, eventually, holds
from tests.harness.relay import Relay


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    """In front of a server that says everything back."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with Relay("127.0.0.1", server.sockets[0].getsockname()[1]) as made:
        yield made
    server.close()


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def says(self, text: bytes) -> bytes:
        self.writer.write(text)
        return await asyncio.wait_for(self.reader.read(1000), PATIENCE)


async def call(relay: Relay) -> Caller:
    return Caller(*await asyncio.open_connection("127.0.0.1", relay.port))


async def test_what_is_said_arrives(relay: Relay) -> None:
    caller = await call(relay)
    assert await caller.says(b"hello") == b"hello"
    assert relay.opened == 1
    caller.writer.close()
    await eventually(lambda: relay.connections == 0)


async def test_silence_holds_back_and_healing_delivers(relay: Relay) -> None:
    before = await call(relay)
    assert await before.says(b"a") == b"a"
    relay.silence()
    during = await call(relay)
    answers = [asyncio.create_task(one.says(b"b")) for one in (before, during)]
    await holds(lambda: not any(one.done() for one in answers), 0.2)
    relay.heal()
    assert await asyncio.gather(*answers) == [b"b", b"b"]
    before.writer.close()
    during.writer.close()


async def test_what_was_frozen_stays_silent_and_new_connections_work(relay: Relay) -> None:
    frozen = await call(relay)
    assert await frozen.says(b"a") == b"a"
    relay.freeze()
    relay.heal()
    answer = asyncio.create_task(frozen.says(b"b"))
    other = await call(relay)
    assert await other.says(b"c") == b"c"
    assert not answer.done()
    answer.cancel()
    frozen.writer.close()
    other.writer.close()


async def test_cutting_resets(relay: Relay) -> None:
    caller = await call(relay)
    await caller.says(b"a")
    relay.cut()
    with pytest.raises(ConnectionResetError):
        await caller.says(b"b")
    again = await call(relay)
    assert await again.says(b"c") == b"c"
    again.writer.close()


async def test_refusing_keeps_what_is_open_and_the_port(relay: Relay) -> None:
    caller = await call(relay)
    await caller.says(b"a")
    relay.refuse()
    with pytest.raises(ConnectionRefusedError):
        await call(relay)
    assert await caller.says(b"b") == b"b"
    relay.heal()
    again = await call(relay)
    assert await again.says(b"c") == b"c"
    again.writer.close()
    caller.writer.close()


async def test_a_server_that_is_away_resets() -> None:
    async with Relay("127.0.0.1", 1) as relay:
        caller = await call(relay)
        with pytest.raises(ConnectionResetError):
            await caller.says(b"a")
