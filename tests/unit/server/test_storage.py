"""One suite for all storages, and what only the durable one promises."""

import asyncio
import os
import sqlite3
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.server.storage import epoch
from argosy.server.storage.base import (
    Change,
    Changed,
    Compacted,
    Exists,
    Record,
    Storage,
    StorageError,
    StorageFull,
)
from argosy.server.storage.memory import MemoryStorage
from argosy.server.storage.schema import SCHEMA_VERSION
from argosy.server.storage.sqlite import SqliteStorage


class Opened:
    """A storage and everything it told."""

    def __init__(self, storage: Storage):
        self.storage = storage
        self.changes: list[Change] = []
        self.batches: list[int] = []

    async def open(self) -> Sequence[Record]:
        return await self.storage.open(self.changes.extend, lambda writes, seconds: self.batches.append(writes))


def said(text: str) -> Callable[[int], bytes]:
    return lambda version: f"{text}@{version}".encode()


@pytest.fixture(params=["memory", "sqlite"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    storage = MemoryStorage() if request.param == "memory" else SqliteStorage(tmp_path / "data")
    out = Opened(storage)
    await out.open()
    yield out
    await storage.close()


async def test_a_write_gets_the_next_version_and_stores_it_inside(opened: Opened) -> None:
    storage = opened.storage
    before = storage.version
    record = await storage.create("g/k/a", said("one"))
    assert record.version > before
    assert record.value == f"one@{record.version}".encode()
    assert await storage.get("g/k/a") == record
    assert storage.version == record.version


async def test_create_of_a_present_key_is_refused(opened: Opened) -> None:
    await opened.storage.create("g/k/a", said("one"))
    with pytest.raises(Exists):
        await opened.storage.create("g/k/a", said("two"))


async def test_replace_and_delete_compare_versions(opened: Opened) -> None:
    storage = opened.storage
    first = await storage.create("g/k/a", said("one"))
    second = await storage.replace("g/k/a", first.version, said("two"))
    with pytest.raises(Changed) as stale:
        await storage.replace("g/k/a", first.version, said("three"))
    assert stale.value.current == second.version
    with pytest.raises(Changed):
        await storage.delete("g/k/a", first.version, said("gone"))
    await storage.delete("g/k/a", second.version, said("gone"))
    with pytest.raises(Changed) as absent:
        await storage.replace("g/k/a", second.version, said("four"))
    assert absent.value.current is None
    assert await storage.get("g/k/a") is None


async def test_changes_are_told_before_the_writer_goes_on(opened: Opened) -> None:
    first = await opened.storage.create("g/k/a", said("one"))
    assert opened.changes[-1] == Change("g/k/a", first.version, first.value)
    second = await opened.storage.replace("g/k/a", first.version, said("two"))
    assert opened.changes[-1] == Change("g/k/a", second.version, second.value, False, first)
    third = await opened.storage.delete("g/k/a", second.version, said("gone"))
    assert opened.changes[-1] == Change("g/k/a", third.version, third.value, True, second)


async def test_of_many_concurrent_creates_of_a_key_one_wins(opened: Opened) -> None:
    tries = [opened.storage.create("g/k/a", said(str(number))) for number in range(20)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(result, Record) for result in results) == 1
    assert sum(isinstance(result, Exists) for result in results) == 19
    assert len(opened.changes) == 1


async def test_versions_of_concurrent_writes_are_told_in_order(opened: Opened) -> None:
    await asyncio.gather(*(opened.storage.create(f"g/k/{number}", said("x")) for number in range(100)))
    versions = [change.version for change in opened.changes]
    assert versions == sorted(set(versions))
    assert len(versions) == 100


async def test_range_is_ordered_bounded_by_prefix_and_paged(opened: Opened) -> None:
    storage = opened.storage
    for key in ("g/k/b/2", "g/k/a/1", "g/k/b/1", "g/kk/z", "g/k/a-b/1", "f/k/b/9"):
        await storage.create(key, said(key))
    assert [r.key for r in await storage.range("g/k/")] == ["g/k/a-b/1", "g/k/a/1", "g/k/b/1", "g/k/b/2"]
    assert [r.key for r in await storage.range("g/k/b/")] == ["g/k/b/1", "g/k/b/2"]
    assert [r.key for r in await storage.range("g/k/", limit=2)] == ["g/k/a-b/1", "g/k/a/1"]
    assert [r.key for r in await storage.range("g/k/", after="g/k/a/1", limit=1)] == ["g/k/b/1"]


async def test_range_at_a_version_shows_the_past(opened: Opened) -> None:
    storage = opened.storage
    a = await storage.create("g/k/a", said("one"))
    b = await storage.create("g/k/b", said("one"))
    await storage.replace("g/k/a", a.version, said("two"))
    await storage.delete("g/k/b", b.version, said("gone"))
    await storage.create("g/k/c", said("late"))
    assert list(await storage.range("g/k/", at=b.version)) == [a, b]
    assert list(await storage.range("g/k/", at=a.version)) == [a]


async def test_history_tells_what_happened_between(opened: Opened) -> None:
    storage = opened.storage
    a = await storage.create("g/k/a", said("one"))
    await storage.create("g/other/x", said("one"))
    b = await storage.replace("g/k/a", a.version, said("two"))
    c = await storage.delete("g/k/a", b.version, said("gone"))
    told = await storage.history("g/k/", a.version, c.version)
    assert list(told) == [
        Change("g/k/a", b.version, b.value, False, a),
        Change("g/k/a", c.version, c.value, True, b),
    ]
    assert [change.version for change in await storage.history("g/k/", a.version, b.version)] == [b.version]


async def test_compaction_forgets_the_past_and_keeps_the_present(opened: Opened) -> None:
    storage = opened.storage
    a = await storage.create("g/k/a", said("one"))
    b = await storage.replace("g/k/a", a.version, said("two"))
    gone = await storage.create("g/k/b", said("one"))
    deletion = await storage.delete("g/k/b", gone.version, said("gone"))
    later = await storage.replace("g/k/a", b.version, said("three"))
    await storage.compact(deletion.version)
    assert storage.compacted == deletion.version
    with pytest.raises(Compacted):
        await storage.range("g/k/", at=a.version)
    with pytest.raises(Compacted):
        await storage.history("g/k/", a.version, later.version)
    assert list(await storage.range("g/k/", at=deletion.version)) == [b]
    assert list(await storage.history("g/k/", deletion.version, later.version)) == [
        Change("g/k/a", later.version, later.value, False, b)
    ]
    assert list(await storage.range("g/k/")) == [later]


async def test_an_encoder_that_fails_fails_its_own_write_only(opened: Opened) -> None:
    def broken(version: int) -> bytes:
        raise TypeError("cannot be encoded")

    results = await asyncio.gather(
        opened.storage.create("g/k/a", said("one")),
        opened.storage.create("g/k/b", broken),
        opened.storage.create("g/k/c", said("one")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [Record, TypeError, Record]
    assert [change.key for change in opened.changes] == ["g/k/a", "g/k/c"]


async def test_memory_never_repeats_a_version_after_a_restart() -> None:
    first = MemoryStorage()
    record = await first.create("g/k/a", said("one"))
    await asyncio.sleep(0.00001)
    assert MemoryStorage().version > record.version


# What a file adds.


async def test_everything_survives_a_restart(tmp_path: Path) -> None:
    first = Opened(SqliteStorage(tmp_path))
    assert list(await first.open()) == []
    a = await first.storage.create("g/k/a", said("one"))
    b = await first.storage.create("g/k/b", said("one"))
    last = await first.storage.delete("g/k/b", b.version, said("gone"))
    await first.storage.close()

    second = Opened(SqliteStorage(tmp_path))
    assert list(await second.open()) == [a]
    assert second.storage.version == last.version
    assert [change.version for change in await second.storage.history("g/k/", a.version, last.version)] == [
        b.version,
        last.version,
    ]
    await second.storage.close()


async def test_a_version_is_not_given_again_when_its_row_was_compacted(tmp_path: Path) -> None:
    first = Opened(SqliteStorage(tmp_path))
    await first.open()
    a = await first.storage.create("g/k/a", said("one"))
    last = await first.storage.delete("g/k/a", a.version, said("gone"))
    await first.storage.compact(last.version)
    await first.storage.close()
    second = Opened(SqliteStorage(tmp_path))
    await second.open()
    assert (await second.storage.create("g/k/a", said("new"))).version > last.version
    await second.storage.close()


async def test_waiting_writes_share_a_commit(tmp_path: Path) -> None:
    opened = Opened(SqliteStorage(tmp_path))
    await opened.open()
    await asyncio.gather(*(opened.storage.create(f"g/k/{number}", said("x")) for number in range(300)))
    assert sum(opened.batches) == 300
    assert len(opened.batches) <= 3
    await opened.storage.close()


async def test_a_full_disk_fails_the_batch_and_later_writes_work(tmp_path: Path) -> None:
    opened = Opened(SqliteStorage(tmp_path))
    await opened.open()
    storage = opened.storage
    a = await storage.create("g/k/a", said("one"))
    pages = storage._writer.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
    storage._writer.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
    with pytest.raises(StorageFull):
        await storage.create("g/k/big", lambda version: b"x" * 100_000)
    assert len(opened.changes) == 1
    assert list(await storage.range("g/k/")) == [a]
    storage._writer.execute("PRAGMA max_page_count = 1000000")  # type: ignore[attr-defined]
    later = await storage.create("g/k/big", lambda version: b"x" * 100_000)
    assert later.version > a.version + 1, "the version of the failed write is skipped"
    await storage.close()


async def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    first = Opened(SqliteStorage(tmp_path))
    await first.open()
    with pytest.raises(StorageError, match=f"in use by another server \\(process {os.getpid()}\\)"):
        await Opened(SqliteStorage(tmp_path)).open()
    await first.storage.close()
    again = Opened(SqliteStorage(tmp_path))
    await again.open()
    await again.storage.close()


async def test_files_are_private(tmp_path: Path) -> None:
    opened = Opened(SqliteStorage(tmp_path / "data"))
    await opened.open()
    await opened.storage.create("g/k/a", said("one"))
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "data").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
    await opened.storage.close()


async def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    opened = Opened(SqliteStorage(tmp_path))
    await opened.open()
    await opened.storage.close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StorageError, match="written by a newer version"):
        await Opened(SqliteStorage(tmp_path)).open()


async def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match="cannot be"):
        await Opened(SqliteStorage(tmp_path)).open()


Step = tuple[str, str]
steps = st.lists(st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from("abc")), max_size=12)


@settings(max_examples=30, deadline=None)
@given(steps=steps, cut=st.integers(0, 12))
def test_both_storages_remember_the_same_past(
    steps: list[Step], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever was written, each version's state and history agree, before and after a compaction."""

    async def play(storage: Storage) -> list[object]:
        opened = Opened(storage)
        await opened.open()
        base = storage.version
        for kind, name in steps:
            key = f"g/k/{name}"
            head = await storage.get(key)
            if kind == "delete":
                if head is not None:
                    await storage.delete(key, head.version, said("gone"))
            elif head is None:
                await storage.create(key, said("new"))
            else:
                await storage.replace(key, head.version, said("new"))
        await storage.compact(min(base + cut, storage.version))
        seen: list[object] = []
        for version in range(storage.compacted, storage.version + 1):
            state = await storage.range("g/k/", at=version)
            seen.append([(record.key, record.version - base) for record in state])
            past = await storage.history("g/k/", version, storage.version)
            seen.append([(c.key, c.version - base, c.deleted, c.previous and c.previous.version - base) for c in past])
        await storage.close()
        return seen

    async def both() -> tuple[list[object], list[object]]:
        return await play(MemoryStorage()), await play(SqliteStorage(tmp_path_factory.mktemp("store")))

    memory, sqlite = asyncio.run(both())
    assert memory == sqlite


@pytest.mark.parametrize("error", [OSError("no such device"), struct.error("too short")])
async def test_what_was_committed_is_acknowledged_though_it_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    opened = Opened(SqliteStorage(tmp_path))
    await opened.open()
    monkeypatch.setattr(epoch.os, "pread", lambda *_: (_ for _ in ()).throw(error))
    record = await opened.storage.create("a/b/c", said("one"))
    assert [change.version for change in opened.changes] == [record.version]
    monkeypatch.undo()
    await opened.storage.close()
