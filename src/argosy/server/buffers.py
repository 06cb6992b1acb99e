"""Buffers: what waits in memory for readers that do not read, bounded over all watches of a server together.

An event that waits for many watches is one object and counts once; what was made or sent for one reader counts for it alone. Over
the limit those watches are cut off for which most waits, until a quarter is free again. A reader that was cut off resumes from
the last version it saw, as after any end of a watch.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

__all__ = ["Buffers", "Holder"]

log = logging.getLogger(__name__)

DEFAULT = 256 * 1024 * 1024


class Holder(Protocol):
    @property
    def waiting(self) -> int:
        """Bytes that wait for this reader, shared or not."""
        ...

    def cut(self) -> None:
        """Let go of all of them; the reader gets no more."""
        ...


class Buffers:
    def __init__(self, limit: int = DEFAULT, on_cut: Callable[[int], None] = lambda readers: None):
        self.limit = limit
        self.holders: set[Holder] = set()
        #: Bytes held now.
        self.held = 0
        self._on_cut = on_cut
        self._relieving = False

    def hold(self, size: int) -> None:
        self.held += size
        if self.held > self.limit and not self._relieving:
            # Not at once: whoever holds more now may be in the middle of giving the same event to all of them.
            self._relieving = True
            asyncio.get_running_loop().call_soon(self._relieve)

    def release(self, size: int) -> None:
        self.held -= size

    def _relieve(self) -> None:
        self._relieving = False
        goal = self.limit * 3 // 4
        if self.held <= self.limit:
            return
        cut = 0
        for holder in sorted(self.holders, key=lambda holder: holder.waiting, reverse=True):
            if self.held <= goal:
                break
            holder.cut()
            cut += 1
        self._on_cut(cut)
        log.warning("%d watches were cut off: more than %d bytes waited for readers that do not read", cut, self.limit)
