"""Turns: one piece of work in each round of the event loop, so that answers and timers are served in between.

Many workers that each compute for a millisecond would together hold the event loop for as many milliseconds, in each of its
rounds, and whatever takes several rounds (a write and its answer) would take many times that. Belongs to one event loop; runs no
task.
"""

import asyncio
from collections import deque

__all__ = ["Turns"]


class Turns:
    def __init__(self) -> None:
        #: Whether this round's turn is taken.
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def begin(self) -> None:
        """Returns when it is the caller's turn: until it waits for something itself."""
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            loop.call_soon(self._next)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._taken = False
