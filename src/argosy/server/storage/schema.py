"""The SQLite file of a store: its tables, its version, and how an older one becomes a current one.

One table holds every write that is still remembered. The newest row of a key is its current state; older rows, and rows that tell
of a deletion, are history and go when they are compacted.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from argosy.server.storage.base import StorageError

__all__ = ["SCHEMA_VERSION", "open_file"]

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
#: Steps from the version that is the key to the next one.
_UPGRADES: dict[int, str] = {}


def open_file(path: Path) -> sqlite3.Connection:
    """Open, create or upgrade a store. Raises StorageError with one clear line."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    connection = _connect(path)
    try:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and owner != APPLICATION_ID:
            raise StorageError(f"{path} is not a store of this program")
        if found > SCHEMA_VERSION:
            raise StorageError(
                f"{path} was written by a newer version (schema {found}; this version knows {SCHEMA_VERSION}): upgrade first"
            )
        if not tables:
            _execute(connection, _CREATE, SCHEMA_VERSION)
        for version in range(found, SCHEMA_VERSION) if tables else ():
            _back_up(connection, path.with_name(f"{path.name}.schema-{version}.bak"))
            _execute(connection, _UPGRADES[version], version + 1)
    except sqlite3.Error as error:
        connection.close()
        raise StorageError(f"{path} cannot be read as a store: {error}") from error
    except StorageError:
        connection.close()
        raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL: a commit that was acknowledged survives a loss of power.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be opened as a store: {error}") from error
    return connection


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
