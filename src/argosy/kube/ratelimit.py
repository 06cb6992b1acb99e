"""Token bucket: at most `burst` at once and `rate` a second after that.

`try_take` answers at once (events), `acquire` waits its turn in order of arrival (requests). No task is kept.
"""

import asyncio
from collections.abc import Callable

from argosy.kube import clock

__all__ = ["TokenBucket"]


class TokenBucket:
    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = clock.monotonic) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError("a token bucket needs a positive rate and a burst of at least 1")
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled = clock()

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self.burst, self._tokens + max(0.0, now - self._filled) * self.rate)
        self._filled = now

    def try_take(self) -> bool:
        """Take a token if there is one."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self) -> float:
        """Take a token, even a future one: returns the seconds until it may be used."""
        self._refill()
        self._tokens -= 1
        return 0.0 if self._tokens >= 0 else -self._tokens / self.rate

    def give_back(self) -> None:
        """Return a reserved token that was not used."""
        self._tokens = min(self.burst, self._tokens + 1)

    async def acquire(self) -> None:
        """Wait for a token. A caller that is cancelled while waiting gives its place back."""
        wait = self.reserve()
        if wait <= 0:
            return
        try:
            await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self.give_back()
            raise
