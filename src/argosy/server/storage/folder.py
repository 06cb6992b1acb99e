"""The data folder of a store: private to its owner, and used by one process at a time."""

import contextlib
import fcntl
import os
from pathlib import Path

from argosy.server.storage.base import StorageError

__all__ = ["FolderLock"]


class FolderLock:
    """Held from construction to `release`; the system lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path):
        """Makes the folder (mode 0700) where it is not there yet. Raises StorageError."""
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
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
