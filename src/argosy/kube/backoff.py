"""Back-off: how long to wait before the next retry, as a pure function of the number of failures.

The caller counts failures and waits (queue, informer, supervisor, transport).
"""

from collections.abc import Callable

import msgspec

from argosy.kube import chance

__all__ = ["Backoff"]


class Backoff(msgspec.Struct, frozen=True):
    """Exponential growth from `base` to `cap` seconds; `jitter` spreads each delay by that share in both directions.

    Jitter keeps a fleet of clients that failed together from coming back together.
    """

    base: float = 1.0
    cap: float = 60.0
    factor: float = 2.0
    jitter: float = 0.2

    def delay(self, failures: int, rand: Callable[[], float] = chance.random) -> float:
        """The wait after the `failures`-th failure in a row (1 is the first one); never above `cap`."""
        if failures <= 0:
            return 0.0
        delay = self.base
        # A loop instead of a power: the exponent is unbounded, a float is not.
        for _ in range(failures - 1):
            delay *= self.factor
            if delay >= self.cap or delay <= 0:
                break
        delay = min(delay, self.cap)
        return min(delay * (1 + self.jitter * (2 * rand() - 1)), self.cap)
