"""A status tells of no fewer replicas than there were all the time: what cannot be seen is not taken for gone."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import msgspec

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.departures import Departures
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, federated_key, found, key_of, managed, placed
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


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Told(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
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
        #: Uids of sources of which counts were told.
        self._told: set[str] = set()
        #: Ready replicas by member, from those moments on.
        self._ready: dict[str, deque[tuple[float, dict[str, int]]]] = {}

    def stored(self, server: str, change: Change) -> None:
        if server not in self._members or not change.key.startswith(_DEPLOYMENTS):
            return
        copies = {name: found(disk, change.key) or {} for name, disk in self._members.items()}
        # What is not ours is not told of.
        ours = {name: copy.get("status") or {} for name, copy in copies.items() if copy and managed(copy)}
        ready = {name: status.get("readyReplicas") or 0 for name, status in ours.items()}
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
        source = msgspec.json.decode(answer.body, type=_Told)
        told, uid = source.status, source.metadata.uid
        if told.replicas is not None:
            self._told.add(uid)
        elif uid not in self._told:
            return  # nothing is known of some cluster, so nothing is told
        unreachable = self._unreachable(told)
        federated = found(self._plane, federated_key(key))
        # Copies in other clusters were kept when those left.
        seen = [name for name in placed(federated or _NOWHERE) if name not in unreachable]
        fewest = self._fewest(key, seen) + sum(self._last_known(key, unreachable))
        if told.ready_replicas < fewest:
            self.broken(
                f"the status of {key} tells of {told.ready_replicas} ready replicas, and there were at least {fewest}"
            )

    def _unreachable(self, told: _Status) -> list[str]:
        messages = [each.message for each in told.conditions if (each.type, each.status) == (_UNREACHABLE, "True")]
        return [name for name in self._members if any(name in message for message in messages)]

    def _last_known(self, key: str, clusters: list[str]) -> Iterator[int]:
        """Ready replicas in these clusters, as they were collected last. Those that were lost since may be known to be."""
        collected = found(self._plane, federated_key(key).replace("/federatedobjects/", "/collectedstatuses/"))
        for each in (collected or {}).get("clusters") or ():
            if each["cluster"] in clusters:
                ready = ((each.get("collectedFields") or {}).get("status") or {}).get("readyReplicas") or 0
                yield min(ready, self._fewest(key, [each["cluster"]]))

    def _fewest(self, key: str, clusters: list[str]) -> int:
        """Ready replicas at any time lately, in these clusters together."""
        limit, states = self._time() - _BEHIND, list(self._ready.get(key, ()))
        before = [ready for since, ready in states if since < limit]
        recent = [ready for since, ready in states if since >= limit]
        return min((sum(each.get(name, 0) for name in clusters) for each in before[-1:] + recent), default=0)
