"""Nothing is written again and again: a write that fails or changes nothing is not repeated without a pause."""

from collections import deque
from collections.abc import Callable

from argosy.kube.transport import Request
from tests.world.judge.line import Line
from tests.world.judge.objects import READS

__all__ = ["Busy"]

#: So many writes of one object by one process, within so many seconds.
_WRITES, _SECONDS = 60, 20.0


class Busy(Line):
    def __init__(self, broken: Callable[[str], None], time: Callable[[], float]):
        super().__init__(broken)
        self._time = time
        self._sent: dict[tuple[str, str, str], deque[float]] = {}

    def sent(self, client: str, server: str, request: Request) -> None:
        if not client.startswith("controllers") or request.method in READS or request.method == "POST":
            return
        times = self._sent.setdefault((client, server, request.path), deque(maxlen=_WRITES))
        times.append(self._time())
        if len(times) == _WRITES and times[-1] - times[0] < _SECONDS:
            self.broken(f"{client} sent {_WRITES} writes of {request.path} to {server} in {times[-1] - times[0]:.1f} s")
            times.clear()
