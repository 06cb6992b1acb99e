"""The data folder of a store: private to its owner, and used by one process at a time."""

import contextlib
import fcntl
import os
from pathlib import Path

from argosy.server.storage.base import StorageError

__all__ = ["RESTORING", "FolderLock", "is_full", "refuse_half", "sync_folder"]

#: In the folder of a server while a restore exchanges its parts.
RESTORING = "restoring"

#: SQLite needs some room to open a store at all.
LEAST_ROOM = 64 * 1024


def is_full(folder: Path) -> bool:
    """Whether the disk caused a failure: SQLite often only reports "disk I/O error"."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize < LEAST_ROOM or (disk.f_files > 0 and disk.f_favail == 0)
    return False


def sync_folder(folder: Path) -> None:
    """A file name must survive a loss of power, too, before anything is acknowledged."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_half(server: Path) -> None:
    """Raises StorageError if a restore was interrupted: the folder may be a mixture of two servers."""
    if (server / RESTORING).exists():
        raise StorageError(f"a restore into {server} was interrupted: run `argosy restore` again")


def _is_at(file: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(file), os.stat(path))
    return False


class FolderLock:
    """Held from construction to `release`; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path):
        """Creates the folder (mode 0700) if need be. Raises StorageError."""
        path = folder / "lock"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"the data folder {folder} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            with contextlib.suppress(OSError):
                holder = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            os.close(self._file)
            who = f" (process {holder})" if holder.isdigit() else ""
            raise StorageError(f"the data folder {folder} is in use by another server{who}") from None
        if not _is_at(self._file, path):
            # A restore replaced the folder after we had opened the file: the lock is on the old one.
            os.close(self._file)
            raise StorageError(f"the data folder {folder} was exchanged for another one just now: try again")
        # Informational, for the process that is refused; not written if the disk is full.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
