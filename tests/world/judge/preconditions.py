"""What is replaced or deleted is what was read: a PUT carries its version, a DELETE its uid, and that of a copy both."""

import msgspec

from argosy.kube.transport import Request
from tests.world.judge.line import Line
from tests.world.judge.objects import Versioned
from tests.world.places import PLANE

__all__ = ["Preconditions"]

_COPIES = ("/deployments/", "/configmaps/")


class Preconditions(Line):
    def sent(self, client: str, server: str, request: Request) -> None:
        if not client.startswith("controllers") or request.method not in ("PUT", "DELETE"):
            return
        body = msgspec.json.decode(request.body or b"{}", type=Versioned)
        if request.method == "PUT":
            known = bool(body.metadata.resource_version)
        else:
            copy = any(each in request.path for each in _COPIES) and server != PLANE
            known = bool(body.preconditions.uid and (body.preconditions.resource_version or not copy))
        if not known:
            self.broken(f"{client} sent {request.method} {request.path} to {server} without saying what it had read")
