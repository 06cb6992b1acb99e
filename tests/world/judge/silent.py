"""When nothing happens, nothing is written but leases and heartbeats, also by controllers that were restarted."""

from collections.abc import Callable

from argosy.kube.transport import Request
from tests.world.judge.line import Line
from tests.world.judge.objects import READS

__all__ = ["Silent"]

_LEASES, _CLUSTERS = "/leases/", "/federatedclusters/"
#: What a shard has reserved is told again while there is any: of what is held, say, and lost its copy. One that has just
#: started, and has not heard of all copies, reserves for them until it has.
_RESERVED = "argosy-reserved-"
#: A question, for all that it is sent as an object.
_QUESTIONS = ("/selfsubjectaccessreviews", "/selfsubjectrulesreviews")


class Silent(Line):
    """Judges only between `begin` and the end."""

    def __init__(self, broken: Callable[[str], None], time: Callable[[], float]):
        super().__init__(broken)
        self._time = time
        self._begun = False
        #: The last write, and when it was.
        self.last, self.at = "", 0.0

    def lasts(self) -> float:
        """Seconds since something was written."""
        return self._time() - self.at

    def begin(self) -> None:
        self._begun = True

    def sent(self, client: str, server: str, request: Request) -> None:
        if request.method in READS or not client.startswith("controllers"):
            return
        heartbeat = _CLUSTERS in request.path and request.path.endswith("/status")
        if heartbeat or _tells_reservations(request) or any(each in request.path for each in (_LEASES, *_QUESTIONS)):
            return
        self.last, self.at = f"{client} sent {request.method} {request.path} to {server}", self._time()
        if self._begun:
            self.broken(f"{self.last} although nothing happens")


def _tells_reservations(request: Request) -> bool:
    """The first time, their object is made: its name is in the body."""
    return _RESERVED in request.path or (request.path.endswith("/configmaps") and _RESERVED.encode() in request.body)
