"""A disk that is really full, under a server that really runs: writes are refused, everything else goes on, nothing is lost."""

import asyncio
import contextlib
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from argosy.kube.errors import ApiError
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from argosy.server.storage.schema import SCHEMA_VERSION
from tests.faults.served import Served
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS

NAMESPACE = "default"
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
BALLAST = 2 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of a few megabytes."""
    size = getattr(request, "param", "8m")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system can only be mounted by root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two megabytes in it that was closed in order."""
    folder = tmp_path_factory.mktemp("store")

    async def write() -> None:
        server = EmbeddedServer(folder)
        await server.start()
        for number in range(20):
            await server.client().create(CONFIGMAPS, config_map(f"map-{number}"))
        await server.stop()

    asyncio.run(write())
    return folder / "store"


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> bytes:
    """The file of the store; what else there was of it is in place."""
    shutil.copytree(folder, tmp_path / "data" / "store")
    return (folder / "store.db").read_bytes()


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
        await eventually(lambda: is_ready(server), why="there is room again")
        later, _ = await fill(server, "later")
        assert later, "there is room again"
        acknowledged |= later
        await eventually(lambda: seen == acknowledged, why="the same watch saw every write that happened, and no other")
        assert server.alive
        watching.cancel()
        await asyncio.wait({watching})
    # Without a reserve there is nothing it could come up with.
    (small_disk / "data" / "store" / "reserve").unlink(missing_ok=True)
    pad(small_disk / "pad")
    error, hint = await refusal(small_disk / "data")
    assert error.startswith(f"error: {small_disk}/data/")
    assert "disk is full" in error or "No space left on device" in error
    assert hint == "hint: make room on the disk, or choose another folder with --data; nothing written is lost"
    second.unlink()
    async with Served(small_disk / "data") as server:
        assert await stored(server) == acknowledged


async def is_ready(server: Served) -> bool:
    return bool(await server.client.request("GET", "/readyz") == b"ok")


@pytest.mark.parametrize("small_disk", ["48m"], indirect=True)
@pytest.mark.parametrize("others", [False, True], ids=["by the store itself", "by others to the last byte"])
async def test_on_a_full_disk_objects_can_be_deleted_and_writes_come_back(small_disk: Path, others: bool) -> None:
    async with Served(small_disk / "data") as server:
        held = config_map("held")
        held["metadata"] = {"name": "held", "namespace": NAMESPACE, "finalizers": ["example.com/hold"]}
        await server.client.create(CONFIGMAPS, held)
        lease = await server.client.create(LEASES, {"metadata": {"name": "leader", "namespace": NAMESPACE}, "spec": {}})
        acknowledged = await fill_for_good(server, small_disk / "pad" if others else None)
        with pytest.raises(ApiError) as unready:
            await server.client.request("GET", "/readyz")
        assert "[-]storage failed" in unready.value.message
        with pytest.raises(ApiError) as again:
            await server.client.create(CONFIGMAPS, config_map("again"))
        assert again.value.code == 507

        lease["spec"] = {"holderIdentity": "me"}
        await server.client.update(LEASES, lease)
        await server.client.delete(CONFIGMAPS, "held", NAMESPACE)
        await server.client.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}}, NAMESPACE)
        names = list(acknowledged)
        for name in names[: len(names) // 2]:
            await server.client.delete(CONFIGMAPS, name, NAMESPACE)
            del acknowledged[name]
        later: dict[str, str] = {}

        async def go_on() -> bool:
            # Where the log cannot grow, as others have all of the disk, writes wait a moment now and then for it to begin anew.
            later.update((await fill(server, f"later-{len(later)}"))[0])
            return len(later) > len(names) // 4

        await eventually(go_on, why="what was deleted is room, although the file does not shrink")
        acknowledged |= later
        assert await stored(server) == acknowledged
    async with Served(small_disk / "data") as server:
        assert await stored(server) == acknowledged, "it comes up on a full disk, so that somebody can delete something"
        await eventually(lambda: deleted(server, next(iter(acknowledged))))


async def fill_for_good(server: Served, ballast: Path | None) -> dict[str, str]:
    """Until forgetting history makes no room any more."""
    acknowledged: dict[str, str] = {}
    for attempt in range(20):
        more, refused = await fill(server, f"map-{attempt}")
        assert refused.code == 507
        acknowledged |= more
        if ballast is not None:
            pad(ballast.with_name(f"pad-{attempt}"))
        with contextlib.suppress(AssertionError):
            await holds(lambda: is_full(server), 2.5)
            return acknowledged
    raise AssertionError("the disk was never full for good")


async def is_full(server: Served) -> bool:
    return b"apiserver_storage_full 1.0" in await server.client.request("GET", "/metrics")


async def deleted(server: Served, name: str) -> bool:
    await server.client.delete(CONFIGMAPS, name, NAMESPACE)
    return True


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
        who = f"argosy server (process {server.process.pid})"
        assert error == f"error: the data folder {tmp_path} is in use by {who}"
        assert hint == "hint: Ctrl-C there, or SIGTERM, stops it; --data chooses another folder"
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
