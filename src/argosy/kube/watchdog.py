"""Watchdog: a thread that notices a blocked event loop.

While something blocks the loop nothing on it can report that: requests, health checks and leases stand still. The thread logs,
once per blockage, the stack of the loop's thread, functions and lines only. When the loop runs again, `on_turn` is called with
the duration. One per process: `with Watchdog(...)`, entered on the loop.

A call that also holds the interpreter lock (a long call into C) is noticed, too, but only afterwards, and without its stack.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

__all__ = ["Watchdog"]

log = logging.getLogger(__name__)

#: Seconds of blockage after which the stack is logged.
PATIENCE = 5.0


class Watchdog:
    def __init__(self, on_turn: Callable[[float], None] = lambda seconds: None, *, patience: float = PATIENCE):
        self._on_turn = on_turn
        self._patience = patience
        self._period = patience / 5
        self._turned = 0.0
        self._watched = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._beat_timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "Watchdog":
        self._watched = threading.get_ident()
        self._turned = time.monotonic()
        self._beat_timer = asyncio.get_running_loop().call_later(self._period, self._beat)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        now = time.monotonic()
        late = now - self._turned - self._period
        self._turned = now
        self._beat_timer = asyncio.get_running_loop().call_later(self._period, self._beat)
        if late > self._patience:
            log.error("the event loop runs again; it was blocked for %.1f s", late)
            self._on_turn(late)

    def _watch(self) -> None:
        told_of = 0.0
        while True:
            asked = time.monotonic()
            if self._over.wait(self._period):
                return
            now, turned = time.monotonic(), self._turned
            if now - asked > self._patience:
                continue  # the whole process was stopped: nothing on the loop caused that
            if now - turned > self._patience + self._period and turned != told_of:
                told_of = turned
                log.error("the event loop has been blocked for %.1f s; it is here:\n%s", now - turned, self._stack())

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._watched)
        return "".join(traceback.format_stack(frame)) if frame is not None else "(its thread has ended)"
