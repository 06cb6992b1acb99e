"""A status tells of no fewer replicas than there were all the time: what cannot be seen is not taken for gone."""

from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.departures import Departures
from tests.world.judge.line import Line
from tests.world.judge.objects import found, key_of
from tests.world.places import PLANE

__all__ = ["Statuses"]

#: Seconds that a status may be behind, cuts and crashes included.
_BEHIND = 120.0
_DEPLOYMENTS = "apps/deployments/"


class _Status(msgspec.Struct, rename="camel"):
    ready_replicas: int = 0


class _Told(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class Statuses(Line):
    def __init__(
        self,
        broken: Callable[[str], None],
        members: Mapping[str, Disk],
        time: Callable[[], float],
        departures: Departures,
    ):
        super().__init__(broken)
        self._members = members
        self._departures = departures
        self._time = time
        #: Ready replicas in all members together, from those moments on.
        self._ready: dict[str, deque[tuple[float, int]]] = {}

    def stored(self, server: str, change: Change) -> None:
        if server not in self._members or not change.key.startswith(_DEPLOYMENTS):
            return
        copies = [found(disk, change.key) for disk in self._members.values()]
        ready = sum(((copy or {}).get("status") or {}).get("readyReplicas") or 0 for copy in copies)
        states = self._ready.setdefault(change.key, deque([(0.0, 0)], maxlen=500))
        if states[-1][1] != ready:
            states.append((self._time(), ready))

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        if server != PLANE or request.method != "PATCH" or not request.path.endswith("/status"):
            return
        key = key_of(request) or ""
        if not key.startswith(_DEPLOYMENTS) or not isinstance(answer, Response) or answer.status != 200:
            return
        if self._departures.since(self._time() - _BEHIND) or any(disk.restored for disk in self._members.values()):
            return  # replicas in a cluster that left are not counted, and a backup changes all of them at once
        told = msgspec.json.decode(answer.body, type=_Told).status.ready_replicas
        limit, states = self._time() - _BEHIND, list(self._ready.get(key, ()))
        recent = [ready for since, ready in states if since >= limit]
        before = [ready for since, ready in states if since < limit]
        fewest = min(before[-1:] + recent, default=0)
        if told < fewest:
            self.broken(f"the status of {key} tells of {told} ready replicas, and there were at least {fewest}")
