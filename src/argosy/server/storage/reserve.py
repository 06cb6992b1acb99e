"""Reserve: disk space kept for the day the disk is full.

A store must write to delete something: into its log first, and then into its file. On a full disk it could not, and no space
could ever be freed. So a file of a few megabytes lies beside the store. It is deleted when a deletion needs the space, and
created again, as large as possible, when there is some. Blocking calls: used by the writer's thread.
"""

import contextlib
import os
from pathlib import Path

__all__ = ["Reserve"]

SIZE = 16 * 1024 * 1024
#: On a small disk at most this part of it.
PART = 8
_LEAST = 256 * 1024


class Reserve:
    def __init__(self, folder: Path):
        self._folder = folder
        self._path = folder / "reserve"

    @property
    def wanted(self) -> int:
        """How large it is to be."""
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._folder)
            return min(SIZE, disk.f_blocks * disk.f_frsize // PART)
        return SIZE

    def free(self) -> int:
        """Free bytes on the disk; 0 if unknown."""
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._folder)
            return disk.f_bavail * disk.f_frsize
        return 0

    def keep(self) -> None:
        """Create or enlarge it, if that leaves as much space to others. Never fails: it is optional."""
        try:
            has = self._path.stat().st_size if self._path.exists() else 0
            size = min(self.wanted, (has + self.free()) // 2)
            if size < _LEAST or size <= has:
                return
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, size)
            finally:
                os.close(descriptor)
        except OSError:
            self.give_up()

    def give_up(self) -> bool:
        """Returns whether that freed space."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
