"""A backup of an API server: its store and its keys in one file, made while it runs, and restored into an unused folder.

The file is a compressed tar: `manifest.json` first, which lists every part with its size and hash, then `store.db` and `pki/…`.
Without the keys a restored server would not accept its own certificates and tokens; so a backup contains secrets, and only its
owner may read it.
"""

import contextlib
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from argosy import __version__
from argosy.kube import clock, timestamps
from argosy.server.storage.copy import check_copy, copy_store
from argosy.server.storage.epoch import EpochRecord, Mark, beyond_all, read_record, write_record
from argosy.server.storage.examine import examine
from argosy.server.storage.folder import RESTORING, FolderLock, refuse_half, sync_folder
from argosy.server.storage.schema import SCHEMA_VERSION, jump_ahead, newest_version, open_file

__all__ = ["BackupError", "Manifest", "Part", "Restored", "pack", "unpack"]

FORMAT = 1
_MANIFEST = "manifest.json"
_STORE = "store.db"
#: What a restore replaces, each as a whole.
_EXCHANGED = ("pki", "store")
_CHUNK = 1024 * 1024
_LARGEST_MANIFEST = 1024 * 1024
#: Called with the current step.
Tell = Callable[[str], None]


class BackupError(Exception):
    """What is wrong with a backup, or with its target, in one line. Nothing was changed."""


class Part(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    format: int
    argosy: str
    schema: int
    #: The version of its last write.
    version: int
    objects: int
    made: str
    parts: dict[str, Part]


#: May work on the folder of a restored store before it is put in place.
Change = Callable[[Path, Manifest], None]


class Restored(msgspec.Struct, frozen=True):
    manifest: Manifest
    #: The first version after the restore is above this one.
    first: int
    #: The previous content, under its new name.
    kept: list[Path]


def pack(server: Path, target: Path, tell: Tell = lambda text: None, *, replace: bool = False) -> Manifest:
    """Back up the server of a folder, running or not. `target` is complete or absent. Raises BackupError, StorageError."""
    if target.exists() and not replace:
        raise BackupError(f"{target} is there already")
    refuse_half(server)
    found = _place(server)
    # Also for a running server: the mark is never ahead of what can be read after it.
    problems = examine(server / "store").problems
    if problems:
        raise BackupError(f"the store in {server} is not whole: {'; '.join(problems)}")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as name:
            folder = Path(name)
            version = copy_store(
                server / "store" / _STORE,
                folder / _STORE,
                lambda done, total: tell(f"copying the store: {100 * done // max(total, 1)} %"),
            )
            files = {_STORE: folder / _STORE}
            files |= {f"pki/{path.name}": path for path in sorted((server / "pki").glob("*")) if _is_key(path)}
            manifest = Manifest(
                format=FORMAT,
                argosy=__version__,
                schema=SCHEMA_VERSION,
                version=version,
                objects=_objects(folder / _STORE),
                made=timestamps.now(),
                parts={name: _part(path) for name, path in files.items()},
            )
            tell("writing the backup")
            partial = folder / "backup"
            _write(partial, manifest, files)
            refuse_half(server)
            if _place(server) != found:
                raise BackupError(f"{server} was restored meanwhile: no backup was made, try again")
            partial.replace(target)
        sync_folder(target.parent)
    except (OSError, tarfile.TarError) as error:
        raise BackupError(f"{target} cannot be written: {_why(error)}") from error
    return manifest


def unpack(source: Path, server: Path, tell: Tell, change: Change = lambda store, manifest: None) -> Restored:
    """Replace the content of an unused folder by a backup; the old content is kept under another name.

    Everything is checked before anything is moved. `change` may modify the new store's folder before that. Versions continue
    above all that the store, here or anywhere, can have used. Raises BackupError, StorageError.
    """
    stamp = f"{clock.now():%Y%m%dT%H%M%SZ}"
    fresh = server / f".restore-{stamp}"
    with contextlib.ExitStack() as held:
        try:
            server.mkdir(mode=0o700, parents=True, exist_ok=True)
            _hold(held, server / "store")
            shutil.rmtree(fresh, ignore_errors=True)
            held.callback(shutil.rmtree, fresh, ignore_errors=True)
            fresh.mkdir(mode=0o700)
            manifest = _extract(source, fresh, tell)
            store = fresh / "store"
            store.mkdir(mode=0o700)
            (fresh / _STORE).replace(store / _STORE)
            tell("checking the store")
            first = _prepare(store, _ceiling(server / "store"))
            change(store, manifest)
            tell("putting it in place")
            # The lock on the old folder is moved aside with it.
            _hold(held, store)
            kept = _exchange(fresh, server, stamp)
        except (OSError, tarfile.TarError, EOFError) as error:
            raise BackupError(f"{source} cannot be restored to {server}: {_why(error)}") from error
    return Restored(manifest, first, kept)


def _hold(held: contextlib.ExitStack, store: Path) -> None:
    """Prevents that anybody opens or creates the store until `held` ends. Raises StorageError."""
    held.callback(FolderLock(store).release)
    held.callback(_is_dropped, store)


def _is_dropped(store: Path) -> bool:
    """A folder that contains only a lock was created for the lock."""
    with contextlib.suppress(OSError):
        if [path.name for path in store.iterdir()] == ["lock"]:
            (store / "lock").unlink()
            store.rmdir()
            return True
    return False


def _prepare(store: Path, ceiling: int) -> int:
    path = store / _STORE
    check_copy(path)
    with contextlib.closing(open_file(path)) as connection:
        first = beyond_all(newest_version(connection), ceiling)
        jump_ahead(connection, first)
        row = connection.execute("SELECT value FROM state WHERE name = 'store'").fetchone()
    if row is not None:
        mark = Mark(acknowledged=first, merging=False)
        write_record(store, EpochRecord(row[0], run=1, ceiling=first, closed=first, mark=mark))
    return first


def _ceiling(store: Path) -> int:
    """The ceiling of the present store; 0 if unknown."""
    with contextlib.suppress(ValueError):
        record = read_record(store)
        return record.ceiling if record is not None else 0
    return 0


def _place(server: Path) -> list[int]:
    """The inodes of the existing folders, which a restore replaces."""
    return [(server / name).stat().st_ino for name in _EXCHANGED if (server / name).exists()]


def _exchange(fresh: Path, server: Path, stamp: str) -> list[Path]:
    kept = []
    mark = server / RESTORING
    mark.touch(mode=0o600)
    sync_folder(server)
    for name in _EXCHANGED:
        if not (fresh / name).exists():
            continue
        if (server / name).exists():
            aside = server / f"{name}.before-{stamp}"
            (server / name).rename(aside)
            if not _is_dropped(aside):
                kept.append(aside)
        (fresh / name).rename(server / name)
    sync_folder(server)
    mark.unlink()
    sync_folder(server)
    return kept


def _write(path: Path, manifest: Manifest, files: dict[str, Path]) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
            text = msgspec.json.format(msgspec.json.encode(manifest))
            archive.addfile(_entry(_MANIFEST, len(text)), io.BytesIO(text))
            for name, each in files.items():
                with each.open("rb") as content:
                    archive.addfile(_entry(name, manifest.parts[name].size), content)
        file.flush()
        os.fsync(file.fileno())


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, int(clock.time())
    return entry


def _extract(source: Path, folder: Path, tell: Tell) -> Manifest:
    try:
        with tarfile.open(source, mode="r|gz") as archive:
            entries = _entries(archive)
            manifest = _manifest(source, *next(entries, ("", io.BytesIO())))
            missing = set(manifest.parts)
            for name, content in entries:
                part = manifest.parts.get(name)
                if part is None:
                    raise BackupError(f"{source} holds {name!r}, which its manifest does not name")
                tell(f"reading {name}")
                _extract_part(source, name, part, content, folder / name)
                missing.discard(name)
    except (tarfile.ReadError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise BackupError(f"there is no file {source}") from None
        raise BackupError(f"{source} is not a backup, or a damaged one: {_why(error)}") from error
    if missing:
        raise BackupError(f"{source} is damaged: {', '.join(sorted(missing))} is missing")
    return manifest


def _entries(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for entry in archive:
        content = archive.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise tarfile.ReadError(f"{entry.name!r} is no file")
        yield entry.name, content


def _manifest(source: Path, name: str, content: IO[bytes]) -> Manifest:
    if name != _MANIFEST:
        raise BackupError(f"{source} is not a backup: it does not begin with a manifest")
    try:
        manifest = msgspec.json.decode(content.read(_LARGEST_MANIFEST), type=Manifest)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{source} has a damaged manifest: {error}") from None
    if manifest.format > FORMAT or manifest.schema > SCHEMA_VERSION:
        raise BackupError(f"{source} was made by a newer version ({manifest.argosy}): upgrade first")
    if _STORE not in manifest.parts:
        raise BackupError(f"{source} holds no store")
    for part in manifest.parts:
        pieces = PurePosixPath(part).parts
        if pieces != (_STORE,) and not (len(pieces) == 2 and pieces[0] == "pki" and pieces[1] not in (".", "..")):
            raise BackupError(f"{source} holds {part!r}, which belongs to no server")
    return manifest


def _extract_part(source: Path, name: str, part: Part, content: IO[bytes], path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := content.read(_CHUNK):
            size += len(chunk)
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if (size, digest.hexdigest()) != (part.size, part.sha256):
        raise BackupError(f"{source} is damaged: {name} is not what its manifest says")


def _part(path: Path) -> Part:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        return Part(file.tell(), digest.hexdigest())


def _is_key(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".") and not path.name.endswith(".new")


def _objects(store: Path) -> int:
    with contextlib.closing(sqlite3.connect(store)) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM (SELECT max(version), deleted FROM log GROUP BY key) WHERE NOT deleted"
        ).fetchone()
    return int(count)


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
