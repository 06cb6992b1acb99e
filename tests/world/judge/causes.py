"""No copy is removed without a cause: its source is being deleted, or its federated object places it elsewhere.

A cause counts for a while after it is over: the removal that it started may still be on its way.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import orjson

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, federated_key, key_of
from tests.world.places import PLANE

__all__ = ["Causes"]

#: Seconds.
_COUNTS = 45.0
_FEDERATED = "core.kubeadmiral.io/federatedobjects/"
_SOURCES = ("apps/deployments/", "core/configmaps/")


class _Wanted(NamedTuple):
    """Where copies were to be, from that moment on; None where everything was to go."""

    since: float
    clusters: frozenset[str] | None


class Causes(Line):
    def __init__(self, broken: Callable[[str], None], time: Callable[[], float]):
        super().__init__(broken)
        self._time = time
        self._placed: dict[str, deque[_Wanted]] = {}
        self._lives: dict[str, deque[_Wanted]] = {}

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE:
            return
        if change.key.startswith(_FEDERATED):
            clusters = None if change.deleted else _clusters(orjson.loads(change.value))
            self._note(self._placed, change.key, clusters)
        elif change.key.startswith(_SOURCES):
            gone = change.deleted or "deletionTimestamp" in orjson.loads(change.value)["metadata"]
            self._note(self._lives, change.key, None if gone else frozenset())

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        if request.method != "DELETE" or not client.startswith("controllers") or server == PLANE:
            return
        key = key_of(request)
        if not isinstance(answer, Response) or answer.status != 200 or not (key or "").startswith(_SOURCES):
            return
        assert key is not None
        placed = self._recent(self._placed, federated_key(key))
        lived = self._recent(self._lives, key)
        wanted = all(each.clusters is not None and server in each.clusters for each in placed)
        if placed and wanted and all(each.clusters is not None for each in lived):
            self.broken(f"{client} removed {key} from {server}, where it was to be all the time")

    def _note(self, record: dict[str, deque[_Wanted]], key: str, clusters: frozenset[str] | None) -> None:
        record.setdefault(key, deque(maxlen=200)).append(_Wanted(self._time(), clusters))

    def _recent(self, record: dict[str, deque[_Wanted]], key: str) -> list[_Wanted]:
        """What held in the last seconds: the last one before them, and all since."""
        limit, states = self._time() - _COUNTS, list(record.get(key, ()))
        before = [each for each in states if each.since < limit]
        return before[-1:] + [each for each in states if each.since >= limit]


def _clusters(federated: Object) -> frozenset[str] | None:
    if "deletionTimestamp" in federated["metadata"]:
        return None
    placements = federated["spec"].get("placements") or ()
    return frozenset(each["cluster"] for placement in placements for each in placement.get("placement") or ())
