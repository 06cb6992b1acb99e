"""A disk that is full: writes are refused with a clear Status, reads and watches go on, and writes work again afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from argosy.server.embedded import EmbeddedServer
from argosy.server.storage.sqlite import SqliteStorage
from tests.harness.eventually import eventually
from tests.server.conftest import TOKENS, HttpClient

MAPS = "/api/v1/namespaces/default/configmaps"


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
