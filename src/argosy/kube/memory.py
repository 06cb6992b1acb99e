"""Memory: returns memory to the system after a burst.

glibc keeps freed memory for later allocations. After a burst of large responses or many connections that is most of the
process, and stays so: freed pieces lie between used ones. `give_back` returns all free pages; `tend` does so whenever the
process has grown and much is free. Without glibc both do nothing.
"""

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path

__all__ = ["give_back", "keep_together", "resident", "tend"]

#: When to return memory: so many free bytes, and such a share of all, since scanning takes time. Seconds between checks.
WORTH = 8 * 1024 * 1024
SHARE = 1 / 16
PERIOD = 10.0


#: mallopt's parameters: from which size an allocation has its own pages, and the number of heaps.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_OWN_PAGES = 1024 * 1024
_HEAPS = 2


class _Statistics(ctypes.Structure):
    """struct mallinfo2; `fordblks` is what is free in the heaps."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _glibc() -> ctypes.CDLL | None:
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _Statistics
        library.malloc_trim.argtypes = [ctypes.c_size_t]
        return library
    return None


def keep_together() -> None:
    """Settings for a server process: less fragmentation.

    Large allocations get their own pages, which are returned when freed; glibc would raise that size each time. And threads
    share heaps: they rarely allocate at the same time, since they share an interpreter.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)


def resident() -> int:
    """Resident memory of this process in bytes; 0 if the system does not tell."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def give_back() -> int:
    """Return free pages to the system. Returns how much the process shrank. Takes some milliseconds per 100 MB."""
    library = _glibc()
    if library is None:
        return 0
    before = resident()
    library.malloc_trim(0)
    return max(before - resident(), 0)


def _given_back(library: ctypes.CDLL) -> tuple[int, int]:
    """Memory of the process and its free part, read at the same moment."""
    library.malloc_trim(0)
    return resident(), library.mallinfo2().fordblks


async def tend() -> None:
    """Return memory whenever much has become free; until cancelled."""
    library = _glibc()
    if library is None:
        return
    least, kept = resident(), 0
    while True:
        await asyncio.sleep(PERIOD)
        now, free = resident(), library.mallinfo2().fordblks
        # glibc also counts pages as free that were already returned. Only newly freed memory, or a process that has grown
        # again, counts.
        least, kept = min(least, now), min(kept, free)
        worth = max(WORTH, now * SHARE)
        if free > worth and (free - kept > worth or now - least > worth):
            least, kept = await asyncio.to_thread(_given_back, library)
