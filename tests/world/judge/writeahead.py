"""Nothing leaks: placements, the note of removals and the status together name every cluster that holds a copy."""

from collections.abc import Callable, Mapping

import orjson

from argosy.plan.copies.placement import to_be_removed
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.departures import Departures
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, federated_key, found, managed, placed
from tests.world.places import PLANE

__all__ = ["WriteAhead"]

_FEDERATED = "core.kubeadmiral.io/federatedobjects/"
_TABLES = {"Deployment": "apps/deployments", "ConfigMap": "core/configmaps"}


class WriteAhead(Line):
    def __init__(self, broken: Callable[[str], None], plane: Disk, members: Mapping[str, Disk], departures: Departures):
        super().__init__(broken)
        self._plane = plane
        self._members = members
        self._departures = departures

    def stored(self, server: str, change: Change) -> None:
        if change.deleted:
            return
        if server == PLANE and change.key.startswith(_FEDERATED):
            federated = orjson.loads(change.value)
            template = federated["spec"]["template"]
            copy = f"{_TABLES[template['kind']]}/{federated['metadata']['namespace']}/{template['metadata']['name']}"
            for cluster, disk in self._members.items():
                self._judge(cluster, copy, found(disk, copy), federated)
        elif server != PLANE and change.previous is None and change.key.startswith(tuple(_TABLES.values())):
            federated = found(self._plane, federated_key(change.key))
            if federated is not None:
                self._judge(server, change.key, orjson.loads(change.value), federated)

    def _judge(self, cluster: str, key: str, copy: Object | None, federated: Object) -> None:
        if copy is None or not managed(copy) or "deletionTimestamp" in copy["metadata"]:
            return
        if self._members[cluster].restored or cluster in self._departures.since():
            return
        noted = to_be_removed(federated["metadata"].get("annotations") or {})
        told = [each["cluster"] for each in (federated.get("status") or {}).get("clusters") or ()]
        if cluster not in placed(federated) and cluster not in noted and cluster not in told:
            self.broken(f"{cluster} has {key}, and nothing of its federated object says so")
