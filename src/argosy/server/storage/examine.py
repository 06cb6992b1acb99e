"""Examines the files of a store before it is opened: complete, or with acknowledged writes missing. Changes nothing.

Compares them with the records beside them (`epoch`). A kill or a loss of power at any moment leaves files that pass.
"""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import msgspec

from argosy.kube import clock
from argosy.server.storage.epoch import EpochRecord, Mark, beyond_all, read_cookie, read_mark, read_record
from argosy.server.storage.schema import APPLICATION_ID, SCHEMA_VERSION, newest_version, storage_error
from argosy.server.storage.wal import log_of, salts_of

__all__ = ["Findings", "examine", "keep_aside"]


class Findings(msgspec.Struct):
    #: How far it had come; None for a store that no version with epochs has opened yet.
    record: EpochRecord | None = None
    #: The last version in the store.
    newest: int = 0
    problems: list[str] = []
    #: The log belongs to another store, or to another time of this one: they do not fit together.
    foreign_log: bool = False

    @property
    def first(self) -> int:
        """Versions continue after this one."""
        record = self.record
        if self.problems:
            return beyond_all(self.newest, *((record.ceiling, record.mark.acknowledged) if record is not None else ()))
        if record is None:
            return self.newest
        return max(self.newest, record.ceiling if record.closed is None else record.closed)


def examine(folder: Path) -> Findings:
    """For a folder that nobody else has open, in this process or another. Raises StorageError if it cannot be read at all."""
    path = folder / "store.db"
    log = log_of(path)
    found = Findings()
    try:
        found.record = read_record(folder)
    except ValueError as error:
        found.problems.append(f"epoch.json, which says how far the store had come, is damaged ({error})")
    mark = _known(folder, found.record)
    if found.record is not None and mark is not None:
        found.record = msgspec.structs.replace(found.record, mark=mark)
    if not path.exists():
        if found.record is not None or salts_of(log) is not None:
            found.problems.append("store.db is missing, with everything in it")
            found.foreign_log = True
        return found
    if path.stat().st_size == 0:
        return found  # the opener reports it
    if mark is not None:
        _compare_files(found, path, mark)
    if not found.problems:
        _compare_content(found, path, mark)
    return found


def _known(folder: Path, record: EpochRecord | None) -> Mark | None:
    if record is None:
        return None
    mark = read_mark(folder)
    return mark if mark is not None and mark.run == record.run else record.mark


def _compare_files(found: Findings, path: Path, mark: Mark) -> None:
    if read_cookie(path) < mark.cookie:
        found.problems.append("store.db is an older copy of what was last written")
        found.foreign_log = True
    salts = salts_of(log_of(path))
    # Salts from before this epoch are not known.
    known = found.record is not None and mark.run == found.record.run
    if salts is not None and known and not salts.may_follow(mark.salts):
        found.problems.append("store.db-wal is not the log that was last written")
        found.foreign_log = True


def _compare_content(found: Findings, path: Path, mark: Mark | None) -> None:
    without_log = salts_of(log_of(path)) is None
    missing = " (store.db-wal is missing or empty)" if without_log else ""
    try:
        # A read-only connection leaves file and log as they are, even if it is the last one.
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as store:
            (schema,) = store.execute("PRAGMA user_version").fetchone()
            (owner,) = store.execute("PRAGMA application_id").fetchone()
            if owner != APPLICATION_ID or schema > SCHEMA_VERSION:
                return  # the opener reports it
            found.newest = newest_version(store)
            row = store.execute("SELECT value FROM state WHERE name = 'store'").fetchone()
            half_merged = mark is not None and mark.merging and without_log and not _sound(store)
    except sqlite3.Error as error:
        if mark is not None and without_log and mark.merging:
            found.problems.append(f"store.db cannot be read without its log{missing}")
            return
        raise storage_error(path, "read as a store", error) from error
    record = found.record
    if record is None:
        if row is not None:
            found.problems.append("epoch.json, which says how far the store had come, is missing")
        return
    if row is not None and row[0] != record.store:
        found.problems.append("store.db is another store than the one that was last open here")
    if mark is not None and found.newest < mark.acknowledged:
        found.problems.append(
            f"the store ends at version {found.newest}, but writes up to version {mark.acknowledged} were acknowledged{missing}"
        )
    elif half_merged:
        found.problems.append(f"store.db was being brought up to date from its log, which is gone{missing}")


def _sound(store: sqlite3.Connection) -> bool:
    """Whether every row and every index entry is in place: the checkpoint was complete."""
    return bool(store.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))


def keep_aside(folder: Path, found: Findings) -> None:
    """Before a store with problems is opened nevertheless: the rest of its log is kept, and a foreign one is not used."""
    log = log_of(folder / "store.db")
    if not log.exists():
        return
    aside = log.with_name(f"{log.name}.{clock.now():%Y%m%dT%H%M%SZ}")
    if found.foreign_log:
        log.replace(aside)
    else:
        shutil.copyfile(log, aside)
        os.chmod(aside, 0o600)
