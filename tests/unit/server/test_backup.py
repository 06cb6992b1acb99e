"""Who has a store while it is backed up or exchanged for another one: never two at once, and never half of each."""

import asyncio
import fcntl
from pathlib import Path

import pytest

from argosy.server.storage import backup
from argosy.server.storage.backup import BackupError, Manifest, pack, unpack
from argosy.server.storage.base import StorageError
from argosy.server.storage.folder import RESTORING, FolderLock
from argosy.server.storage.sqlite import SqliteStorage


async def _open(server: Path) -> SqliteStorage:
    storage = SqliteStorage(server / "store")
    await storage.open(lambda changes: None, lambda writes, seconds: None)
    return storage


async def _write(server: Path) -> None:
    storage = await _open(server)
    await storage.create("g/k/a", lambda version: b"value")
    await storage.close()


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A server's folder with a store in it that nobody has open."""
    folder = tmp_path / "server"
    asyncio.run(_write(folder))
    (folder / "pki").mkdir()
    (folder / "pki" / "key").write_text("key")
    return folder


@pytest.fixture
def made(server: Path, tmp_path: Path) -> Path:
    file = tmp_path / "made"
    pack(server, file)
    return file


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _nothing(_: str) -> None:
    """Nobody watches the progress of a test."""


def _is_taken(store: Path) -> bool:
    try:
        lock = FolderLock(store)
    except StorageError:
        return True
    lock.release()
    return False


async def test_a_store_that_somebody_has_open_is_not_replaced(server: Path, made: Path) -> None:
    storage = await _open(server)
    before = _content(server)
    with pytest.raises(StorageError, match=r"store is in use by another server \(process \d+\)"):
        unpack(made, server, _nothing)
    assert _content(server) == before
    await storage.create("g/k/kept", lambda version: b"acknowledged")
    await storage.close()
    again = await _open(server)
    assert await again.get("g/k/kept") is not None
    await again.close()


@pytest.mark.parametrize("there", [True, False], ids=["over a store", "into an empty folder"])
def test_nobody_opens_a_store_while_it_is_restored(
    server: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    """Neither the old one nor the new one, before, in the middle of and right after the exchange."""
    folder = server if there else tmp_path / "new"
    moments: list[tuple[str, bool]] = []

    def look(moment: str) -> None:
        moments.append((moment, _is_taken(folder / "store")))

    def change(store: Path, manifest: Manifest) -> None:
        look("changed")

    real = backup.sync_folder

    def sync(path: Path) -> None:
        if path == folder:
            look("exchanging")
        real(path)

    monkeypatch.setattr(backup, "sync_folder", sync)
    restored = unpack(made, folder, look, change)
    assert [moment for moment, _ in moments].count("exchanging") == 3
    assert [moment for moment, taken in moments if not taken] == []
    assert not _is_taken(folder / "store")
    aside = sorted(path.name for path in folder.glob("*.before-*"))
    assert [path.name for path in restored.kept] == aside
    assert len(aside) == (2 if there else 0)


def test_a_restore_that_fails_leaves_no_folder_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"not a backup")
    with pytest.raises(BackupError):
        unpack(tmp_path / "file", tmp_path / "new", _nothing)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_lock_on_a_folder_that_was_exchanged_meanwhile_is_none(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of the folder that was there before, and whoever comes next takes the one of the new."""
    flock = fcntl.flock

    def late(file: int, how: int) -> None:
        (server / "store").rename(tmp_path / "aside")
        (server / "store").mkdir()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(StorageError, match="exchanged for another one"):
        FolderLock(server / "store")
    monkeypatch.undo()
    FolderLock(server / "store").release()


def test_a_half_restored_store_is_not_backed_up(server: Path, tmp_path: Path) -> None:
    (server / RESTORING).touch()
    with pytest.raises(StorageError, match=r"was interrupted: run `argosy restore` again"):
        pack(server, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_store_that_is_restored_while_it_is_backed_up_gives_no_backup(
    server: Path, made: Path, tmp_path: Path
) -> None:
    """It would have the objects of one server and the keys of another."""

    def tell(text: str) -> None:
        if text == "writing the backup":
            unpack(made, server, _nothing)

    with pytest.raises(BackupError, match="was restored meanwhile"):
        pack(server, tmp_path / "file", tell)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "server"]
