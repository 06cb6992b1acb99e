"""Files of a store that were lost, cut off or exchanged are noticed at the next start, left alone, and never lead to a version
being given out twice."""

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.server.storage import sqlite
from argosy.server.storage.base import Compacted, Record, StorageDamaged
from argosy.server.storage.epoch import RESERVE
from argosy.server.storage.sqlite import SqliteStorage

#: Writes in three parts with a merge of the log after the first, and ends without a goodbye; the versions are its output.
CRASH = textwrap.dedent("""
    import asyncio, os, sys
    from pathlib import Path
    from argosy.server.storage import sqlite

    async def main(folder, prefix, merged, more):
        storage = sqlite.SqliteStorage(Path(folder))
        await storage.open(lambda changes: None, lambda writes, seconds: None)
        for number in range(merged + more):
            record = await storage.create(f"g/k/{prefix}-{number:04}", lambda v: b"x%d" % v + b"." * 500)
            print(record.key, record.version, flush=True)
            if number + 1 == merged:
                await storage._in(storage._writing, storage._merge)
        os._exit(9)

    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
""")


def crashed(folder: Path, prefix: str = "a", merged: int = 20, more: int = 30) -> dict[str, int]:
    """What was acknowledged, of a process that died with the last writes in the log."""
    command = [sys.executable, "-c", CRASH, str(folder), prefix, str(merged), str(more)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {key: int(version) for key, version in lines}


async def opened(folder: Path, *, accept: bool = False) -> tuple[SqliteStorage, list[Record]]:
    storage = SqliteStorage(folder, accept_data_loss=accept)
    return storage, list(await storage.open(lambda changes: None, lambda writes, seconds: None))


def saved(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", "lock"))}


def remove_log(folder: Path) -> None:
    (folder / "store.db-wal").unlink()


def empty_log(folder: Path) -> None:
    (folder / "store.db-wal").write_bytes(b"")


def cut_log(folder: Path) -> None:
    log = (folder / "store.db-wal").read_bytes()
    (folder / "store.db-wal").write_bytes(log[: len(log) // 2])


def damage_log(folder: Path) -> None:
    log = bytearray((folder / "store.db-wal").read_bytes())
    middle = len(log) // 2
    log[middle : middle + 64] = random.Random(1).randbytes(64)
    (folder / "store.db-wal").write_bytes(log)


def remove_store(folder: Path) -> None:
    (folder / "store.db").unlink()


def remove_epoch(folder: Path) -> None:
    (folder / "epoch.json").unlink()


def damage_epoch(folder: Path) -> None:
    (folder / "epoch.json").write_text("{")


FAULTS: list[Callable[[Path], None]] = [
    remove_log,
    empty_log,
    cut_log,
    damage_log,
    remove_store,
    remove_epoch,
    damage_epoch,
]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_store_that_is_not_whole_is_refused_and_left_alone(
    tmp_path: Path, fault: Callable[[Path], None]
) -> None:
    acknowledged = crashed(tmp_path)
    fault(tmp_path)
    before = saved(tmp_path)
    for _ in range(2):
        with pytest.raises(StorageDamaged):
            await opened(tmp_path)
        assert {name: content for name, content in saved(tmp_path).items() if name in before} == before

    storage, records = await opened(tmp_path, accept=True)
    assert {record.key: record.version for record in records}.items() <= acknowledged.items()
    assert storage.version > max(acknowledged.values()), "nobody's version is ahead of the store"
    with pytest.raises(Compacted):
        await storage.history("g/k/", max(acknowledged.values()), storage.version)
    new = await storage.create("g/k/new", lambda version: b"%d" % version)
    assert new.version > max(acknowledged.values())
    await storage.close()

    storage, after = await opened(tmp_path)
    assert [record.key for record in after] == [*(record.key for record in records), "g/k/new"]
    await storage.close()


async def test_what_was_lost_is_named(tmp_path: Path) -> None:
    acknowledged = crashed(tmp_path)
    remove_log(tmp_path)
    with pytest.raises(StorageDamaged) as refused:
        await opened(tmp_path)
    last = max(acknowledged.values())
    assert f"ends at version {last - 30}, but writes up to version {last} were acknowledged" in str(refused.value)
    assert "store.db-wal is missing" in str(refused.value)


async def test_a_log_that_was_damaged_is_kept_aside(tmp_path: Path) -> None:
    crashed(tmp_path)
    damage_log(tmp_path)
    log = (tmp_path / "store.db-wal").read_bytes()
    storage, _ = await opened(tmp_path, accept=True)
    (kept,) = (tmp_path / name for name in os.listdir(tmp_path) if name.startswith("store.db-wal.2"))
    assert kept.read_bytes() == log
    assert kept.stat().st_mode & 0o777 == 0o600
    await storage.close()


async def test_an_older_file_under_a_newer_log_is_refused(tmp_path: Path) -> None:
    """SQLite would put pages of today into a file of yesterday."""
    store, old = tmp_path / "store", tmp_path / "old.db"
    crashed(store, "a")
    shutil.copyfile(store / "store.db", old)
    crashed(store, "b")
    shutil.copyfile(old, store / "store.db")
    with pytest.raises(StorageDamaged, match=r"store\.db is an older copy"):
        await opened(store)
    storage, records = await opened(store, accept=True)
    assert records, "the older file is used, without the log"
    assert not [record for record in records if record.key.startswith("g/k/b")]
    await storage.close()


async def test_an_older_log_under_a_newer_file_is_refused(tmp_path: Path) -> None:
    store, old = tmp_path / "store", tmp_path / "old-wal"
    crashed(store, "a")
    shutil.copyfile(store / "store.db-wal", old)
    acknowledged = crashed(store, "b", merged=30, more=0) | crashed(store, "c")
    shutil.copyfile(old, store / "store.db-wal")
    with pytest.raises(StorageDamaged, match=r"store\.db-wal is not the log that was last written"):
        await opened(store)
    storage, records = await opened(store, accept=True)
    assert "g/k/b-0029" in {record.key for record in records}, "the newer file is used, without the log"
    assert storage.version > max(acknowledged.values())
    await storage.close()


async def test_an_older_copy_of_a_store_that_was_closed_is_refused(tmp_path: Path) -> None:
    store, old = tmp_path / "store", tmp_path / "old.db"
    for number in range(2):
        storage, _ = await opened(store)
        await storage.create(f"g/k/{number}", lambda version: b"x")
        await storage.close()
        if not number:
            shutil.copyfile(store / "store.db", old)
    shutil.copyfile(old, store / "store.db")
    with pytest.raises(StorageDamaged, match="older copy"):
        await opened(store)


async def test_another_store_in_the_place_of_one_is_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        for _ in range(3):
            storage, _ = await opened(folder)
            await storage.close()
    shutil.copyfile(one / "store.db", two / "store.db")
    with pytest.raises(StorageDamaged, match="another store"):
        await opened(two)


async def test_a_file_that_was_half_merged_needs_its_log(tmp_path: Path) -> None:
    """Killed in the middle of a merge: some pages of the log are in the file, some are not."""
    store, whole = tmp_path / "store", tmp_path / "whole"
    acknowledged = crashed(store, merged=0, more=200)
    shutil.copytree(store, whole)
    with sqlite3.connect(whole / "store.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    pages = (whole / "store.db").read_bytes()
    half = pages[: len(pages) // 4096 // 2 * 4096]
    for folder in (store, whole):
        (folder / "store.db").write_bytes(half)
    assert not (whole / "store.db-wal").exists()
    with pytest.raises(StorageDamaged):
        await opened(whole)

    storage, records = await opened(store)
    assert {record.key: record.version for record in records} == acknowledged, "with its log it is whole"
    await storage.close()


async def test_a_log_that_somebody_else_merged_is_not_missed(tmp_path: Path) -> None:
    """SQLite's own shell does that when it looks at a store after a crash."""
    acknowledged = crashed(tmp_path)
    connection = sqlite3.connect(tmp_path / "store.db")
    assert connection.execute("SELECT count(*) FROM log").fetchone() == (50,)
    connection.close()
    assert not (tmp_path / "store.db-wal").exists()
    storage, records = await opened(tmp_path)
    assert {record.key: record.version for record in records} == acknowledged
    await storage.close()


async def test_a_store_of_a_version_that_kept_no_note_is_taken_in_once(tmp_path: Path) -> None:
    storage, _ = await opened(tmp_path)
    record = await storage.create("g/k/a", lambda version: b"x")
    await storage.close()
    for name in ("epoch.json", "mark"):
        (tmp_path / name).unlink()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("DELETE FROM state WHERE name = 'store'")
    connection.close()
    storage, records = await opened(tmp_path)
    assert records == [record]
    assert (await storage.create("g/k/b", lambda version: b"x")).version == record.version + 1
    await storage.close()
    (tmp_path / "epoch.json").unlink()
    with pytest.raises(StorageDamaged, match=r"epoch\.json"):
        await opened(tmp_path)


async def test_after_a_crash_versions_go_on_above_all_that_were_reserved(tmp_path: Path) -> None:
    first = crashed(tmp_path, "a")
    storage, records = await opened(tmp_path)
    assert {record.key: record.version for record in records} == first
    assert storage.version == max(first.values()), "what is read is as it was"
    assert storage.compacted == 0, "watches resume where they ended"
    second = await storage.create("g/k/b", lambda version: b"x")
    assert second.version == RESERVE + 1
    assert [change.version for change in await storage.history("g/k/", max(first.values()), second.version)] == [
        second.version
    ]
    await storage.close()
    storage, _ = await opened(tmp_path)
    third = await storage.create("g/k/c", lambda version: b"x")
    assert third.version == second.version + 1, "after an orderly end they just go on"
    await storage.close()


async def test_versions_are_reserved_before_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.server.storage.epoch.RESERVE", 10)
    acknowledged: list[int] = []
    for _ in range(3):
        storage, _ = await opened(tmp_path)
        for _ in range(25):
            acknowledged.append((await storage.create(f"g/k/{len(acknowledged)}", lambda version: b"x")).version)
        shutil.copytree(tmp_path, tmp_path / "copy")  # as a kill would leave it
        await storage.close()
        for name in ("store.db", "store.db-wal", "epoch.json", "mark"):
            if (tmp_path / "copy" / name).exists():
                shutil.copyfile(tmp_path / "copy" / name, tmp_path / name)
        shutil.rmtree(tmp_path / "copy")
        (tmp_path / "store.db-shm").unlink(missing_ok=True)
    assert len(set(acknowledged)) == len(acknowledged)


async def test_many_writes_are_merged_while_they_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MERGE_AFTER", 50)
    storage, _ = await opened(tmp_path)
    for turn in range(20):
        await asyncio.gather(*(storage.create(f"g/k/{turn}-{n}", lambda version: b"x" * 5000) for n in range(20)))
    await storage._in(storage._writing, lambda: None)
    assert (tmp_path / "store.db-wal").stat().st_size < 4_000_000 / 2, "the log starts over after a merge"
    assert (tmp_path / "store.db").stat().st_size > 400 * 5000 / 2
    assert not storage._epoch.mark.merging
    await storage.close()
