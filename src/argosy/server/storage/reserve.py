"""Reserve: room on the disk that is kept for the day it is full.

To delete something a store has to write: into its log first, and then into its file. On a disk without any room it could not, and
nobody could make any. So a file of a few megabytes lies beside the store. It is given up when a deletion needs the room, and made
again, as large as it may be, when there is some. Blocking calls: used by the writer's thread.
"""

import contextlib
import os
from pathlib import Path

__all__ = ["Reserve"]

SIZE = 16 * 1024 * 1024
#: On a small disk no more than this part of it.
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
        """Bytes on the disk that anybody may take; 0 where that cannot be told."""
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._folder)
            return disk.f_bavail * disk.f_frsize
        return 0

    def keep(self) -> None:
        """Make it, or make it larger, where it leaves as much room to others. Never fails: without it nothing is wrong."""
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
        """Whether that made room."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
