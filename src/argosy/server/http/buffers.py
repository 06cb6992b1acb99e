"""Buffers: memory held for clients, bounded over all connections of a server together.

There are two: data that clients have not read yet, and bodies of requests that are not complete. An event that waits for many
watches is one object and counts once; data for one client counts for it alone. Over the limit the clients with most data are
cut off, until a quarter is free again. A client resumes a watch that was cut off from the last version it saw, as after any end
of a watch.
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
        """Release all of them; the client is cut off."""
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
            # Not at once: the caller may be in the middle of giving the same event to all watches.
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
    """Bytes held for one client alone."""

    def __init__(self, buffers: Buffers, cut_off: Callable[[], None]):
        self._buffers = buffers
        self._cut_off = cut_off
        self.waiting = 0

    def hold(self, size: int) -> None:
        """Set the bytes held from now on."""
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
    """There is nobody to cut off."""
