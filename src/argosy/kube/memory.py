"""Memory: what a burst took goes back to the system.

glibc keeps what was freed for the next allocation. After a burst of large answers or many connections that is most of what the
process has, and stays so: freed pieces lie between used ones. `give_back` returns all free pages; `tend` does so whenever the
process has grown and much is free. Elsewhere than on glibc both do nothing.
"""

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path

__all__ = ["give_back", "keep_together", "resident", "tend"]

#: Free bytes that are worth it: so many, and such a share of all, since looking through all takes time. Seconds between looks.
WORTH = 8 * 1024 * 1024
SHARE = 1 / 16
PERIOD = 10.0


#: mallopt's names for: from which size on an allocation has pages of its own, and how many heaps there are.
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
    """For a process that serves: less is left lying between.

    What is large has pages of its own, which go back as soon as it is freed; glibc would raise that size with each such
    piece. And threads share heaps: they hardly ever allocate at the same time, since they share an interpreter.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)


def resident() -> int:
    """Bytes of memory this process has; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def give_back() -> int:
    """Return free pages to the system: how many bytes less the process has. Takes some milliseconds for each 100 MB."""
    library = _glibc()
    if library is None:
        return 0
    before = resident()
    library.malloc_trim(0)
    return max(before - resident(), 0)


def _given_back(library: ctypes.CDLL) -> tuple[int, int]:
    """What the process has then, and what is free in it: at that very moment, since the loop goes on meanwhile."""
    library.malloc_trim(0)
    return resident(), library.mallinfo2().fordblks


async def tend() -> None:
    """Give back whenever much has become free; until cancelled."""
    library = _glibc()
    if library is None:
        return
    least, kept = resident(), 0
    while True:
        await asyncio.sleep(PERIOD)
        now, free = resident(), library.mallinfo2().fordblks
        # glibc counts pages as free that were given back already. What has become free since is news, and so is what the
        # process has again.
        least, kept = min(least, now), min(kept, free)
        worth = max(WORTH, now * SHARE)
        if free > worth and (free - kept > worth or now - least > worth):
            least, kept = await asyncio.to_thread(_given_back, library)
