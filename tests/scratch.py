"""Where a run of the tests writes: into memory where there is enough of it, since a disk takes milliseconds for each commit.

What tests tell of lost and kept writes is told by killing processes, which no file system notices.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["environment"]

MEMORY = Path("/dev/shm")
MEMORY_INFO = Path("/proc/meminfo")
#: Several times what a run leaves there.
ROOM = 6 * 2**30


@contextmanager
def environment(memory: Path = MEMORY, info: Path = MEMORY_INFO) -> Iterator[dict[str, str]]:
    """Variables for the processes of a run; its temporary folder goes afterwards. Who names one by TMPDIR gets that one."""
    # Tests start hundreds of interpreters: what these compile is kept, whatever is usual on this machine.
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    if "TMPDIR" in os.environ or not _has_room(memory, info):
        yield variables
        return
    with tempfile.TemporaryDirectory(prefix="argosy-tests-", dir=memory, ignore_cleanup_errors=True) as folder:
        yield {**variables, "TMPDIR": folder}


def _has_room(memory: Path, info: Path) -> bool:
    """Containers often have a small one, or one from which no program can be run."""
    try:
        there = os.statvfs(memory)
        available = re.search(r"^MemAvailable:\s+(\d+) kB$", info.read_text(), re.MULTILINE)
    except OSError:
        return False
    if available is None or there.f_flag & os.ST_NOEXEC or not os.access(memory, os.W_OK):
        return False
    return min(there.f_bavail * there.f_frsize, int(available[1]) * 1024) >= ROOM
