"""What is not ours is left alone: no object without our label is changed or removed in a member, but for those we rescued."""

from collections.abc import Callable

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.judge.line import Line
from tests.world.judge.objects import READS, body_of, key_of, managed, rescued
from tests.world.places import PLANE

__all__ = ["Foreign"]

_COPIES = ("apps/deployments/", "core/configmaps/")


class Foreign(Line):
    def __init__(self, broken: Callable[[str], None]):
        super().__init__(broken)
        #: Whether the object was ours before it was written last.
        self._ours: dict[tuple[str, str], bool] = {}

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE and change.key.startswith(_COPIES):
            before = body_of(change.previous)
            self._ours[server, change.key] = before is None or managed(before) or rescued(before)

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        if server == PLANE or not client.startswith("controllers") or request.method in READS:
            return
        key = key_of(request) or ""
        done = isinstance(answer, Response) and answer.status == 200
        if done and request.method != "POST" and not self._ours.get((server, key), True):
            self.broken(f"{client} sent {request.method} for {key} to {server}, and that was somebody else's")
