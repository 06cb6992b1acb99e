"""What is not ours is left alone: no object without our label is changed or removed in a member."""

from collections.abc import Callable

import orjson

from argosy.api import keys
from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change, Record
from tests.world.judge.line import Line
from tests.world.judge.objects import READS, key_of
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
            self._ours[server, change.key] = change.previous is None or _managed(change.previous)

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        if server == PLANE or not client.startswith("controllers") or request.method in READS:
            return
        key = key_of(request) or ""
        done = isinstance(answer, Response) and answer.status == 200
        if done and request.method != "POST" and not self._ours.get((server, key), True):
            self.broken(f"{client} sent {request.method} for {key} to {server}, and that was somebody else's")


def _managed(record: Record) -> bool:
    labels = orjson.loads(record.value)["metadata"].get("labels") or {}
    return bool(labels.get(keys.MANAGED_LABEL) == "true")
