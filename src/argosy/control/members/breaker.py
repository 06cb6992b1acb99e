"""Circuit breaker: after several failures in a row nothing is sent to a member for a while, so that it blocks nothing else."""

from collections.abc import Callable

from argosy.kube import clock
from argosy.kube.errors import TransportError

__all__ = ["Breaker", "BreakerOpen"]


class BreakerOpen(TransportError):
    """The member did not answer lately; nothing was sent. `retry_after` is when one call is let through again."""

    def __init__(self, retry_after: float):
        super().__init__("the member did not answer lately")
        self.retry_after = retry_after


class Breaker:
    """Closed: all calls pass. Open: none does. After a time one call passes, and its result decides."""

    _LONGEST = 60.0

    def __init__(self, failures: int, open_for: float, clock: Callable[[], float] = clock.monotonic):
        self._allowed_failures = failures
        self._first_open = open_for
        self._clock = clock
        self._failures = 0
        self._open_for = open_for
        self._open_until = 0.0
        self._trying = False

    @property
    def is_open(self) -> bool:
        return self._failures >= self._allowed_failures

    def check(self) -> None:
        """Raise BreakerOpen unless a call may be sent now."""
        if not self.is_open:
            return
        remaining = self._open_until - self._clock()
        if remaining > 0 or self._trying:
            raise BreakerOpen(max(remaining, 0.1))
        self._trying = True

    def succeeded(self) -> None:
        self._failures = 0
        self._trying = False
        self._open_for = self._first_open

    def abandoned(self) -> None:
        """The call was cancelled before it had an answer."""
        self._trying = False

    def failed(self) -> None:
        self._failures += 1
        if self.is_open:
            self._open_until = self._clock() + self._open_for
            self._open_for = min(self._open_for * 2, self._LONGEST)
        self._trying = False
