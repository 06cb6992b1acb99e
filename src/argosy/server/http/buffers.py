"""Buffers: what waits in memory for others, bounded over all connections of a server together.

There are two: what waits for clients to read it, and what clients have sent of requests that nobody answers yet. An event that
waits for many watches is one object and counts once; what was made or sent for one client counts for it alone. Over the limit
those are cut off for which most is held, until a quarter is free again. A watch that was cut off is resumed from the last
version its client saw, as after any end of a watch.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

__all__ = ["Buffers", "Holder", "Share"]

log = logging.getLogger(__name__)

DEFAULT = 256 * 1024 * 1024


class Holder(Protocol):
    @property
    def waiting(self) -> int:
        """Bytes that are held for this client, shared or not."""
        ...

    def cut(self) -> None:
        """Let go of all of them; the client is cut off."""
        ...


class Buffers:
    def __init__(
        self,
        limit: int = DEFAULT,
        on_cut: Callable[[int], None] = lambda clients: None,
        why: str = "wait for clients that do not read",
    ):
        self.limit = limit
        self._why = why
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
        log.warning("%d clients were cut off: more than %d bytes %s", cut, self.limit, self._why)


class Share:
    """What is held for one client alone."""

    def __init__(self, buffers: Buffers, cut_off: Callable[[], None]):
        self._buffers = buffers
        self._cut_off = cut_off
        self.waiting = 0

    def hold(self, size: int) -> None:
        """So much from now on, instead of what it was."""
        more = size - self.waiting
        self.waiting = size
        if size:
            self._buffers.holders.add(self)
        else:
            self._buffers.holders.discard(self)
        if more > 0:
            self._buffers.hold(more)
        elif more:
            self._buffers.release(-more)

    def cut(self) -> None:
        self.hold(0)
        self._cut_off()

    def close(self) -> None:
        """The client is gone."""
        self.hold(0)
        self._cut_off = _nobody


def _nobody() -> None:
    """There is no one to cut off."""
