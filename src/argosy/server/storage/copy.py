"""A consistent copy of a store, even while a server writes to it: the state at its beginning."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from argosy.server.storage.base import StorageError
from argosy.server.storage.schema import newest_version, readable_version, storage_error

__all__ = ["check_copy", "copy_store"]

#: Pages copied in one step; progress is reported after each.
PAGES = 2048


def copy_store(store: Path, target: Path, tell: Callable[[int, int], None] = lambda done, total: None) -> int:
    """From one file to a new one (mode 0600), durable when this returns. Returns its last version. Raises StorageError.

    `tell` is called with the pages done, and their total. The source is not changed; its log grows until the copy is complete.
    """
    if not store.exists():
        raise StorageError(f"there is no store {store}")
    try:
        with contextlib.closing(
            sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
        ) as source:
            readable_version(source, store)
            # One read transaction over all steps: otherwise each write of a server would restart the copy.
            source.execute("BEGIN")
            version = newest_version(source)
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
                source.backup(copy, pages=PAGES, progress=lambda _, left, total: tell(total - left, total))
                # One file without a log beside it, until a server opens it.
                copy.execute("PRAGMA journal_mode = DELETE")
                copy.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raise storage_error(store, "copied", error) from error
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}") from error
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return version


def check_copy(path: Path) -> None:
    """Raises StorageError unless it is a complete store that this version can read."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
            readable_version(store, path)
            (found,) = store.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        raise storage_error(path, "read as a store", error) from error
    if found != "ok":
        raise StorageError(f"{path} is damaged: {found}")
