"""The epoch of a store: records beside it how far it had come, so that a loss is noticed and no version is used twice.

SQLite takes a missing, truncated or damaged log for a shorter one, and an older file for the store itself. Two small files tell
the difference at the next start:

* `epoch.json`, durable and rarely written: the store's identity, a *ceiling* above every version that was used, and the last
  version if it was closed cleanly. Versions are reserved by raising the ceiling, many at a time; after an unclean end they
  continue from it.
* `mark`, written in place with each commit, after it is durable and before it is acknowledged: the last version, the salts of
  its log, and the state of the last checkpoint. It is not synced to the disk: it survives a killed process, and after a loss of
  power it may lag behind. It is never ahead of the store, so what it says is missing is missing.

Checkpoints are done here rather than by SQLite, so that the mark knows of them. Used only by the writer's thread.
"""

import contextlib
import os
import sqlite3
import struct
import zlib
from pathlib import Path

import msgspec

from argosy.kube import chance, clock
from argosy.server.storage.base import StorageError, StorageFull
from argosy.server.storage.folder import is_full, sync_folder
from argosy.server.storage.schema import newest_version
from argosy.server.storage.wal import SALTS_AT, Salts, log_of

__all__ = [
    "RESERVE",
    "Epoch",
    "EpochRecord",
    "Mark",
    "beyond_all",
    "read_cookie",
    "read_mark",
    "read_record",
    "write_record",
]

#: Versions reserved at a time.
RESERVE = 100_000
_RECORD = "epoch.json"
_MARK = "mark"
_MARK_SIZE = 160
#: SQLite's schema cookie in the header of the file: raised with each checkpoint, so that an older copy has a lower one.
_COOKIE_AT = 40


class Mark(msgspec.Struct, frozen=True):
    """The state of the files after a commit or a checkpoint."""

    #: The epoch's own number, which tells whether the salts belong to it.
    run: int = 0
    acknowledged: int = 0
    #: State of the file after the last completed checkpoint.
    cookie: int = 0
    salts: Salts = Salts(0, 0)
    #: A checkpoint was begun and not completed: the file is useless without its log.
    merging: bool = True


class EpochRecord(msgspec.Struct, frozen=True):
    store: int
    run: int
    ceiling: int
    #: The last version that was used; None while the store is open.
    closed: int | None = None
    #: The mark as of this write, for when its file cannot be read.
    mark: Mark = Mark()


class Epoch:
    def __init__(self, folder: Path, writer: sqlite3.Connection, before: EpochRecord | None, first: int):
        """A new epoch begins: versions continue after `first`. Raises StorageError."""
        self._folder = folder
        newest = newest_version(writer)
        row = writer.execute("SELECT value FROM state WHERE name = 'store'").fetchone()
        old = before.mark if before is not None else Mark()
        run = before.run + 1 if before is not None else 1
        mark = Mark(run=run - 1, acknowledged=newest, cookie=old.cookie, merging=old.merging)
        store = row[0] if row is not None else chance.randrange(2**62)
        self._record = EpochRecord(store, run, first + RESERVE, mark=mark)
        write_record(folder, self._record)
        try:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("INSERT OR REPLACE INTO state VALUES ('store', ?)", (store,))
            _raise_cookie(writer)
            writer.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                writer.execute("ROLLBACK")
            raise
        # Open for as long as SQLite has it open: closing any descriptor of a file drops all locks of the process on it.
        self._file = os.open(folder / "store.db", os.O_RDONLY | os.O_CLOEXEC)
        self._log = os.open(log_of(folder / "store.db"), os.O_RDONLY | os.O_CLOEXEC)
        self._mark_file = os.open(folder / _MARK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._mark = msgspec.structs.replace(mark, run=run)
        self.acknowledge(newest)
        self._sync_mark()

    @property
    def mark(self) -> Mark:
        return self._mark

    def reserve(self, version: int) -> None:
        """Called before a version is written. Raises StorageError if no more can be reserved."""
        left = self._record.ceiling - version
        if left > RESERVE // 2:
            return
        try:
            record = msgspec.structs.replace(self._record, ceiling=version + RESERVE, mark=self._mark)
            write_record(self._folder, record)
            self._record = record
        except StorageError:
            # Early enough that a disk that is full for a while does not matter.
            if left < 0:
                raise

    def acknowledge(self, version: int) -> None:
        """Called after the commit that ends with this version, before it is acknowledged."""
        # The commit stands, whether the mark can be written or not.
        with contextlib.suppress(OSError, struct.error):
            salts = Salts(*struct.unpack(">II", os.pread(self._log, 8, SALTS_AT)))
            self._note(msgspec.structs.replace(self._mark, acknowledged=version, salts=salts))

    def merge(self, writer: sqlite3.Connection) -> bool:
        """Checkpoint the log into the file, as far as readers and the disk allow; returns whether it is complete.

        Never raises: the rest stays in the log.
        """
        self._note(msgspec.structs.replace(self._mark, merging=True))
        self._sync_mark()
        with contextlib.suppress(sqlite3.Error):
            _raise_cookie(writer)
        try:
            busy, frames, merged = writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return False
        if busy or frames != merged:
            return False
        cookie = _cookie(os.pread(self._file, 4, _COOKIE_AT))
        self._note(msgspec.structs.replace(self._mark, merging=False, cookie=cookie))
        self._sync_mark()
        return True

    def end(self, given: int | None) -> None:
        """Called after SQLite has closed the store; `given` is the last version used, None after an unclean end."""
        for file in (self._file, self._log, self._mark_file):
            os.close(file)
        if given is not None:
            # If this fails the next start assumes a crash, which only costs version numbers.
            with contextlib.suppress(StorageError):
                write_record(self._folder, msgspec.structs.replace(self._record, closed=given, mark=self._mark))

    def _note(self, mark: Mark) -> None:
        self._mark = mark
        # Without it the mark lags behind, and fewer losses are noticed; nothing else breaks.
        with contextlib.suppress(OSError):
            os.pwrite(self._mark_file, _encoded(mark), 0)

    def _sync_mark(self) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._mark_file)


def beyond_all(*known: int) -> int:
    """A version above all that were ever used: above the known ones by a reserve, and above any count by the clock."""
    return max(max(known) + RESERVE, int(clock.time() * 1_000_000))


def read_record(folder: Path) -> EpochRecord | None:
    """Raises ValueError if it is damaged."""
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=EpochRecord)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def write_record(folder: Path, record: EpochRecord) -> None:
    """Durable when this returns. Raises StorageError."""
    path = folder / _RECORD
    temporary = folder / f".{_RECORD}.new"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(folder)
    except OSError as error:
        kind = StorageFull if is_full(folder) else StorageError
        raise kind(f"{path} cannot be written: {error.strerror}") from error


def read_mark(folder: Path) -> Mark | None:
    """None if there is none that can be read."""
    try:
        line = (folder / _MARK).read_bytes()[:_MARK_SIZE]
    except FileNotFoundError:
        return None
    text, _, checksum = line.rstrip().rpartition(b" ")
    try:
        if int(checksum) != zlib.crc32(text):
            return None
        return msgspec.json.decode(text, type=Mark)
    except (ValueError, msgspec.MsgspecError):
        return None


def read_cookie(store: Path) -> int:
    """Of the file alone, without its log. Only while no connection to it is open in this process."""
    with store.open("rb") as file:
        file.seek(_COOKIE_AT)
        return _cookie(file.read(4))


def _encoded(mark: Mark) -> bytes:
    text = msgspec.json.encode(mark)
    # Always of one length, so that no older end is left behind it.
    return (b"%s %d" % (text, zlib.crc32(text))).ljust(_MARK_SIZE - 1) + b"\n"


def _cookie(four: bytes) -> int:
    return int.from_bytes(four, "big") if len(four) == 4 else 0


def _raise_cookie(writer: sqlite3.Connection) -> None:
    (cookie,) = writer.execute("PRAGMA schema_version").fetchone()
    writer.execute(f"PRAGMA schema_version = {cookie + 1}")
