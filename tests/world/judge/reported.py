"""What is reported as carried out was: a cluster that is said to be OK had the copy, with the replicas that were wanted."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import orjson

from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, body_of, found, placed
from tests.world.places import PLANE

__all__ = ["Reported"]

#: Seconds that a report may be old.
_AGE = 60.0
_FEDERATED = "core.kubeadmiral.io/federatedobjects/"
_TABLES = {"Deployment": "apps/deployments", "ConfigMap": "core/configmaps"}


class _State(NamedTuple):
    since: float
    exists: bool
    replicas: int | None


class Reported(Line):
    def __init__(self, broken: Callable[[str], None], members: Mapping[str, Disk], time: Callable[[], float]):
        super().__init__(broken)
        self._members = members
        self._time = time
        self._copies: dict[tuple[str, str], deque[_State]] = {}

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE:
            if change.key.startswith(tuple(_TABLES.values())):
                states = self._copies.setdefault((server, change.key), deque(maxlen=200))
                states.append(_state(self._time(), None if change.deleted else orjson.loads(change.value)))
        elif change.key.startswith(_FEDERATED) and not change.deleted:
            self._judge(change.key, body_of(change.previous) or {}, orjson.loads(change.value))

    def _judge(self, key: str, before: Object, federated: Object) -> None:
        status, metadata, template = federated.get("status") or {}, federated["metadata"], federated["spec"]["template"]
        if status.get("syncedGeneration") != metadata["generation"] or template["kind"] not in _TABLES:
            return
        wanted, told = placed(federated), before.get("status") or {}
        known = told.get("clusters") or () if told.get("syncedGeneration") == status["syncedGeneration"] else ()
        copy = f"{_TABLES[template['kind']]}/{metadata['namespace']}/{template['metadata']['name']}"
        for entry in status.get("clusters") or ():
            cluster = entry["cluster"]
            if entry.get("status") != "OK" or cluster not in wanted or entry in known:  # told before
                continue
            lately = self._lately(cluster, copy)
            if not any(each.exists and wanted[cluster] in (None, each.replicas) for each in lately):
                self.broken(f"{key} is OK in {cluster}, it says; there it was {[tuple(each) for each in lately]}")

    def _lately(self, cluster: str, copy: str) -> list[_State]:
        """As it was within the age of a report, and as it is: a backup is not told."""
        limit, states = self._time() - _AGE, list(self._copies.get((cluster, copy), ()))
        before = [each for each in states if each.since < limit]
        now = _state(self._time(), found(self._members[cluster], copy))
        return [*before[-1:], *(each for each in states if each.since >= limit), now]


def _state(since: float, copy: Object | None) -> _State:
    return _State(since, copy is not None, ((copy or {}).get("spec") or {}).get("replicas"))
