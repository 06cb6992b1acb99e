"""A disk that is really full, under a server that really runs: writes are refused, everything else goes on, nothing is lost."""

import asyncio
import contextlib
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from argosy.kube.errors import ApiError
from argosy.server.embedded import EmbeddedServer
from argosy.server.storage.schema import SCHEMA_VERSION
from tests.faults.served import Served
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS

NAMESPACE = "default"
BALLAST = 2 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system can only be mounted by root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store with two megabytes in it that was closed in order."""
    folder = tmp_path_factory.mktemp("store")

    async def write() -> None:
        server = EmbeddedServer(folder)
        await server.start()
        for number in range(20):
            await server.client().create(CONFIGMAPS, config_map(f"map-{number}"))
        await server.stop()

    asyncio.run(write())
    return (folder / "store" / "store.db").read_bytes()


def config_map(name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x" * 100_000}}


async def fill(server: Served, prefix: str) -> tuple[dict[str, str], ApiError]:
    """Write until it is refused: what was acknowledged, by name and version, and how the last one was refused."""
    acknowledged = {}
    for number in range(1000):
        name = f"{prefix}-{number}"
        try:
            created = await server.client.create(CONFIGMAPS, config_map(name))
        except ApiError as refused:
            return acknowledged, refused
        acknowledged[name] = created["metadata"]["resourceVersion"]
    raise AssertionError("the disk was never full")


async def stored(server: Served) -> dict[str, str]:
    listed = await server.client.list(CONFIGMAPS, NAMESPACE)
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in listed.items if "k" in obj["data"]}


async def test_a_full_disk_stops_writes_until_there_is_room(small_disk: Path) -> None:
    first, second = small_disk / "first", small_disk / "second"
    for ballast in (first, second):
        ballast.write_bytes(bytes(BALLAST))
    async with Served(small_disk / "data") as server:
        start = (await server.client.list(CONFIGMAPS, NAMESPACE)).resource_version
        seen: dict[str, str] = {}

        async def watch() -> None:
            async with server.client.watch(CONFIGMAPS, NAMESPACE, resource_version=start) as events:
                async for event in events:
                    metadata = orjson.loads(event.object)["metadata"]
                    seen[metadata["name"]] = metadata["resourceVersion"]

        watching = asyncio.create_task(watch())
        acknowledged, refused = await fill(server, "first")
        assert len(acknowledged) > 5
        assert (refused.code, refused.reason) == (507, "InsufficientStorage")
        assert "no room" in refused.message
        for _ in range(20):
            with pytest.raises(ApiError) as again:
                await server.client.create(CONFIGMAPS, config_map("again"))
            assert again.value.code == 507

        assert await stored(server) == acknowledged, "what is there can be read, and no more is there"
        assert await server.client.healthz() == "ok"
        assert not watching.done(), "a watch is no write"

        first.unlink()
        later, _ = await fill(server, "later")
        assert later, "there is room again"
        acknowledged |= later
        await eventually(lambda: seen == acknowledged, why="the same watch saw every write that happened, and no other")
        assert server.alive
        watching.cancel()
        await asyncio.wait({watching})
    pad(small_disk / "pad")
    error, hint = await refusal(small_disk / "data")
    assert error.startswith(f"error: {small_disk}/data/")
    assert "disk is full" in error or "No space left on device" in error
    assert hint == "hint: make room on the disk, or choose another folder with --data; nothing written is lost"
    second.unlink()
    async with Served(small_disk / "data") as server:
        assert await stored(server) == acknowledged


def pad(path: Path) -> None:
    """Take the last bytes of the disk."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.95])
async def test_a_store_that_was_cut_off_is_refused_and_left_alone(store: bytes, tmp_path: Path, part: float) -> None:
    await assert_refused(tmp_path, store[: int(len(store) * part)])


async def test_a_store_that_was_overwritten_in_the_middle_is_refused_and_left_alone(
    store: bytes, tmp_path: Path
) -> None:
    quarter = len(store) // 4
    await assert_refused(tmp_path, store[:quarter] + random.Random(1).randbytes(2 * quarter) + store[3 * quarter :])


async def test_a_store_of_a_newer_version_is_refused_and_left_alone(store: bytes, tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    path.write_bytes(store)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    await assert_refused(tmp_path, path.read_bytes(), "was written by a newer version")


async def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    async with Served(tmp_path) as server:
        error, hint = await refusal(tmp_path)
        assert error == (
            f"error: the data folder {tmp_path}/store is in use by another server (process {server.process.pid})"
        )
        assert hint == "hint: choose another folder with --data"
        assert await server.client.healthz() == "ok"


async def test_a_read_only_folder_is_refused(small_disk: Path) -> None:
    async with Served(small_disk / "data"):
        pass
    await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,ro", str(small_disk)], check=True)
    error, hint = await refusal(small_disk / "data")
    assert "Read-only file system" in error
    assert hint == "hint: choose a folder you may write to with --data"


async def assert_refused(folder: Path, damaged: bytes, why: str = "") -> None:
    path = folder / "data" / "store" / "store.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(damaged)
    error, _hint = await refusal(folder / "data")
    assert str(path) in error
    assert why in error
    assert path.read_bytes() == damaged


async def refusal(folder: Path) -> list[str]:
    """What `argosy server` says when it does not start: one line what, one line what to do."""
    command = [sys.executable, "-m", "argosy.cli", "server", "--data", str(folder), "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, told = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, out) == (1, b""), told.decode()
    lines = told.decode().splitlines()
    assert len(lines) == 2, told.decode()
    return lines
