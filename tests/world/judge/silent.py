"""When nothing happens, nothing is written but leases and each cluster's heartbeat, also by controllers that were restarted."""

from collections.abc import Callable

from argosy.kube.transport import Request
from tests.world.judge.line import Line
from tests.world.judge.objects import READS

__all__ = ["Silent"]

_HEARTBEATS = ("/leases/", "/federatedclusters/")
#: A question, for all that it is sent as an object.
_QUESTIONS = ("/selfsubjectaccessreviews",)


class Silent(Line):
    """Judges only between `begin` and the end."""

    def __init__(self, broken: Callable[[str], None]):
        super().__init__(broken)
        self._begun = False

    def begin(self) -> None:
        self._begun = True

    def sent(self, client: str, server: str, request: Request) -> None:
        writes = client.startswith("controllers") and request.method not in READS
        if self._begun and writes and not any(each in request.path for each in _HEARTBEATS + _QUESTIONS):
            self.broken(f"{client} sent {request.method} {request.path} to {server} although nothing happens")
