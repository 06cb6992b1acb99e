"""A status tells of no fewer replicas than there were all the time: what cannot be seen is not taken for gone."""

from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.departures import Departures
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, federated_key, found, key_of, placed
from tests.world.places import PLANE

__all__ = ["Statuses"]

#: Seconds that a status may be behind, cuts and crashes included.
_BEHIND = 120.0
_DEPLOYMENTS = "apps/deployments/"
#: Marks counts of clusters as the last known ones.
_UNREACHABLE = "MembersUnreachable"
_NOWHERE: Object = {"spec": {}}


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    ready_replicas: int = 0
    conditions: list[_Condition] = []


class _Told(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class Statuses(Line):
    def __init__(
        self,
        broken: Callable[[str], None],
        plane: Disk,
        members: Mapping[str, Disk],
        time: Callable[[], float],
        departures: Departures,
    ):
        super().__init__(broken)
        self._plane = plane
        self._members = members
        self._departures = departures
        self._time = time
        #: Ready replicas by member, from those moments on.
        self._ready: dict[str, deque[tuple[float, dict[str, int]]]] = {}

    def stored(self, server: str, change: Change) -> None:
        if server not in self._members or not change.key.startswith(_DEPLOYMENTS):
            return
        copies = {name: found(disk, change.key) or {} for name, disk in self._members.items()}
        ready = {name: (copy.get("status") or {}).get("readyReplicas") or 0 for name, copy in copies.items()}
        states = self._ready.setdefault(change.key, deque([(0.0, {})], maxlen=500))
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
        told = msgspec.json.decode(answer.body, type=_Told).status
        if told.replicas is None:
            return  # nothing is told yet
        fewest = self._fewest(key, self._counted(key, told))
        if told.ready_replicas < fewest:
            self.broken(
                f"the status of {key} tells of {told.ready_replicas} ready replicas, and there were at least {fewest}"
            )

    def _counted(self, key: str, told: _Status) -> list[str]:
        """The clusters whose replicas are known as they are: copies in others were kept when those left."""
        last_known = [each.message for each in told.conditions if (each.type, each.status) == (_UNREACHABLE, "True")]
        federated = found(self._plane, federated_key(key))
        return [name for name in placed(federated or _NOWHERE) if not any(name in message for message in last_known)]

    def _fewest(self, key: str, clusters: list[str]) -> int:
        """Ready replicas at any time lately, in these clusters together."""
        limit, states = self._time() - _BEHIND, list(self._ready.get(key, ()))
        before = [ready for since, ready in states if since < limit]
        recent = [ready for since, ready in states if since >= limit]
        return min((sum(each.get(name, 0) for name in clusters) for each in before[-1:] + recent), default=0)
