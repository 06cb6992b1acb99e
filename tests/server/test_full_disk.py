"""A disk that is full: writes are refused with a clear Status, reads and watches go on, and writes work again afterwards."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.server.embedded import EmbeddedServer
from argosy.server.storage.base import StorageFull
from argosy.server.storage.memory import MemoryStorage
from argosy.server.storage.reserve import Reserve
from argosy.server.storage.room import Room
from argosy.server.storage.sqlite import SqliteStorage
from tests.harness.eventually import eventually
from tests.server.conftest import TOKENS, HttpClient

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@contextmanager
def full(server: EmbeddedServer) -> Iterator[None]:
    """SQLite itself says the disk is full when a file may not grow."""
    storage = server.server.store.storage
    assert isinstance(storage, SqliteStorage)
    (pages,) = storage._writer.execute("PRAGMA page_count").fetchone()
    storage._writer.execute(f"PRAGMA max_page_count = {pages}")
    yield
    storage._writer.execute("PRAGMA max_page_count = 4294967294")


async def is_there(client: HttpClient, name: str) -> bool:
    return (await client.get(f"{MAPS}/{name}")).code == 200


async def is_created(client: HttpClient, obj: dict[str, Any]) -> bool:
    return (await client.post(MAPS, obj)).code == 201


async def test_a_full_disk_refuses_writes_and_nothing_else(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path, tokens=TOKENS)
    await server.start()
    async with HttpClient(server) as client:
        # What the server itself puts into a namespace comes first.
        await eventually(lambda: is_there(client, "kube-root-ca.crt"))
        first = await client.post(MAPS, {"metadata": {"name": "a"}})
        big = {"metadata": {"name": "big"}, "data": {"k": "x" * 500_000}}
        with full(server):
            refused = await client.post(MAPS, big)
            assert (refused.code, refused.body["reason"]) == (507, "InsufficientStorage")
            assert "no room" in refused.body["message"]
            assert (await client.get(f"{MAPS}/big")).code == 404
            assert (await client.get(f"{MAPS}/a")).body == first.body
        await eventually(lambda: is_created(client, big), why="there is room again")
        events = await client.watch(MAPS, resourceVersion=first.version, timeoutSeconds="1")
        assert [event["object"]["metadata"]["name"] for event in events] == ["big"], "the failed write left no trace"
    await server.stop()


async def test_a_full_disk_is_told_before_anybody_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases are renewed all the same, so nobody else might write for long."""
    server = EmbeddedServer(tmp_path, tokens=TOKENS)
    await server.start()

    async def is_ready(client: HttpClient) -> bool:
        return (await client.get("/readyz")).code == 200

    async def told(client: HttpClient) -> float:
        lines = (await client.get("/metrics")).raw.decode().splitlines()
        (line,) = (line for line in lines if line.startswith("apiserver_storage_full "))
        return float(line.split()[1])

    async with HttpClient(server) as client:
        assert (await client.post(LEASES, {"metadata": {"name": "l"}})).code == 201
        assert await is_ready(client)
        assert await told(client) == 0
        with monkeypatch.context() as patch:
            patch.setattr(Reserve, "free", lambda self: 0)
            renewed = await client.patch(f"{LEASES}/l", {"spec": {"holderIdentity": "x"}})
            assert renewed.code == 200
            assert not await is_ready(client)
            assert await told(client) == 1
        await eventually(lambda: is_ready(client), why="there is room again, though nobody asked for any")
        assert await told(client) == 0
    await server.stop()


async def test_room_is_made_where_it_is_scarce_though_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scarce(MemoryStorage):
        relieved = 0
        scarce = True

        async def relieve(self) -> bool:
            self.relieved += 1
            self.scarce = self.relieved < 2
            return not self.scarce

    monkeypatch.setattr("argosy.server.storage.room.PERIOD", 0.01)
    storage = Scarce()
    room = Room(storage)
    task = asyncio.create_task(room.run())
    await eventually(lambda: storage.relieved == 2 and not room.full)
    assert room.problem() is None
    await asyncio.sleep(0.05)
    assert storage.relieved == 2, "not again while there is room"
    task.cancel()


@pytest.mark.parametrize("turns", range(8))
async def test_a_server_with_a_full_disk_can_be_stopped(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever it is just then."""
    storage = MemoryStorage()
    monkeypatch.setattr(MemoryStorage, "scarce", property(lambda self: True))
    room = Room(storage)
    with pytest.raises(StorageFull):
        await room.write(lambda: storage.create("a", lambda version: b""), urgent=False)
    running = asyncio.create_task(room.run())
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    done, _ = await asyncio.wait({running}, timeout=0.5)
    assert done
