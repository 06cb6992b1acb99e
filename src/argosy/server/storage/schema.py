"""The SQLite file of a store: its tables, its version, and upgrades of older ones.

One table holds every write that is still kept. The newest row of a key is its current state; older rows, and rows of deletions,
are history and are removed by compaction.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from argosy.server.storage.base import StorageError, StorageFull
from argosy.server.storage.folder import is_full, sync_folder

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "jump_ahead",
    "newest_version",
    "open_file",
    "readable_version",
    "storage_error",
]

SCHEMA_VERSION = 1
#: Marks the file as ours ("Argo" in ASCII).
APPLICATION_ID = 0x4172676F

_CREATE = """
CREATE TABLE log (
    version  INTEGER PRIMARY KEY,
    key      TEXT NOT NULL,
    previous INTEGER NOT NULL,  -- version of the row this one supersedes, 0 where the key was new
    deleted  INTEGER NOT NULL,
    value    BLOB NOT NULL
);
CREATE INDEX log_by_key ON log (key, version);
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO state VALUES ('compacted', 0);
"""
_MAY_BE_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
#: Upgrade steps from the version that is the key to the next one.
_UPGRADES: dict[int, str] = {}


def open_file(path: Path) -> sqlite3.Connection:
    """Open, create or upgrade a store. Raises StorageError with one clear line."""
    if not path.exists():
        _create(path)
    elif path.stat().st_size == 0:
        # SQLite would treat it as a new one, and its content as never written.
        raise StorageError(f"{path} was cut off: nothing is left in it; restore it, or remove it to start anew")
    connection = _connect(path)
    try:
        for version in range(readable_version(connection, path), SCHEMA_VERSION):
            _back_up(connection, path.with_name(f"{path.name}.schema-{version}.bak"))
            _execute(connection, _UPGRADES[version], version + 1)
    except sqlite3.Error as error:
        connection.close()
        raise storage_error(path, "read as a store", error) from error
    except StorageError:
        connection.close()
        raise
    return connection


def readable_version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of its tables. Raises StorageError for a file that is not our store, or a newer one."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner != APPLICATION_ID:
        raise StorageError(f"{path} is not a store of this program")
    if found > SCHEMA_VERSION:
        raise StorageError(
            f"{path} was written by a newer version (schema {found}; this version knows {SCHEMA_VERSION}): upgrade first"
        )
    return int(found)


def newest_version(connection: sqlite3.Connection) -> int:
    """The version of the last write. Its row may be gone if it was a deletion and is compacted."""
    (newest,) = connection.execute("SELECT max(version) FROM log").fetchone()
    (compacted,) = connection.execute("SELECT value FROM state WHERE name = 'compacted'").fetchone()
    return max(newest or 0, int(compacted))


def jump_ahead(connection: sqlite3.Connection, version: int) -> None:
    """Continue from a version above all that anybody has seen; nobody may resume from earlier history."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "DELETE FROM log WHERE deleted OR version NOT IN (SELECT max(version) FROM log GROUP BY key)"
        )
        connection.execute("UPDATE state SET value = ? WHERE name = 'compacted'", (version,))
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _create(path: Path) -> None:
    """By rename: a store exists completely or not at all, so an empty one was damaged."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        for suffix in ("", "-wal", "-shm"):  # left by a start that was killed right here
            temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
        with contextlib.closing(_connect(temporary)) as connection:
            _execute(connection, _CREATE, SCHEMA_VERSION)
        temporary.replace(path)
        sync_folder(path.parent)
    except sqlite3.Error as error:
        raise storage_error(path, "created", error) from error
    except OSError as error:
        raise StorageError(f"{path} cannot be created: {error.strerror}") from error


#: Pages of the file that a connection keeps in memory, once it has read them.
CACHE_KIB = 16 * 1024


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL: a commit that was acknowledged survives a loss of power.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        # `Epoch` does the checkpoints, and records them.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except sqlite3.Error as error:
        raise storage_error(path, "opened as a store", error) from error
    return connection


def storage_error(path: Path, done: str, error: sqlite3.Error) -> StorageError:
    """What failed with the file, and why."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    # The low byte is the kind of an extended code.
    if code == sqlite3.SQLITE_FULL or (code & 0xFF in _MAY_BE_FULL and is_full(path.parent)):
        return StorageFull(f"{path} cannot be {done}: the disk is full")
    return StorageError(f"{path} cannot be {done}: {error}")


def _execute(connection: sqlite3.Connection, script: str, version: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in script.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _back_up(connection: sqlite3.Connection, path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
    with contextlib.closing(sqlite3.connect(path)) as copy:
        connection.backup(copy)
