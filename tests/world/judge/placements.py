"""Placements, as they are stored: never emptied while the source lives, within the room there is, and moved for a reason only.

Those of followers: never without a cluster where something is placed that needs them.
"""

from collections.abc import Callable, Iterator, Mapping, Set

import orjson

from argosy.api import keys
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, body_of, found, leaders, listed, placed
from tests.world.places import PLANE

__all__ = ["Placements"]

_FEDERATED = "core.kubeadmiral.io/federatedobjects"
_CLUSTERS = "core.kubeadmiral.io/federatedclusters"
_POLICIES = "core.kubeadmiral.io/propagationpolicies"
_REASONS = (f"{_CLUSTERS}/", f"{_POLICIES}/", "apps/deployments/", "core/configmaps/")
#: Seconds for which a change counts as a reason.
_REASON = 120.0
_TABLES = {"Deployment": "apps/deployments", "ConfigMap": "core/configmaps"}


class Placements(Line):
    def __init__(
        self,
        broken: Callable[[str], None],
        time: Callable[[], float],
        plane: Disk,
        cpus: Mapping[str, int],
        shards: int,
    ):
        """`cpus` is what each cluster has."""
        super().__init__(broken)
        self._time = time
        self._plane = plane
        self._cpus = cpus
        self._shards = shards
        #: When what may be a reason changed last, by key.
        self._changed: dict[str, float] = {}

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE:
            return
        if change.key.startswith(f"{_FEDERATED}/") and not change.deleted and change.previous is not None:
            before, after = body_of(change.previous), orjson.loads(change.value)
            assert before is not None
            self._judge(change.key, before, after)
        elif change.key.startswith(_REASONS) and _has_changed(change):
            self._changed[change.key] = self._time()

    def _judge(self, key: str, before: Object, after: Object) -> None:
        old, new = placed(before), placed(after)
        if old == new:
            return
        source_key = _source_key(key, after)
        source = found(self._plane, source_key)
        if source is None or not _lives(source):
            return
        if not _policy(source):
            self._followed(key, source, old.keys() - new.keys())
            return
        if old and not new and any(self._still_there(cluster) for cluster in old):
            self.broken(f"{key} was placed in {sorted(old)} and is placed nowhere now, and its source lives")
        policy = _policy(source)
        policy_key = f"{_POLICIES}/{source['metadata']['namespace']}/{policy}"
        if policy == "within" and self._shards == 1:
            self._within_room(key, old, new)
        if policy == "copies":
            for cluster in old.keys() - new.keys():
                if not self._reason(source_key, policy_key, f"{_CLUSTERS}/{cluster}"):
                    self.broken(f"{key} left {cluster} for no reason of its own")
            return
        if _policy(before) == _policy(after):  # another policy may leave a cluster that takes no more
            self._surplus(key, policy_key, old, new, after["spec"]["template"])
        if not self._reason(source_key, policy_key, *self._clusters()) and "autoMigration" not in str(
            found(self._plane, policy_key)
        ):
            self.broken(f"{key} was placed as {old} and is placed as {new}, for no reason")

    def _followed(self, key: str, source: Object, left: Set[str]) -> None:
        """A follower leaves no cluster where an object is placed that needs it."""
        metadata = source["metadata"]
        for leader in leaders(self._plane, metadata["namespace"], metadata["name"]):
            lives = found(self._plane, _source_key(f"{_FEDERATED}/{metadata['namespace']}/", leader))
            if lives is None or not _lives(lives):
                continue
            for cluster in sorted(left & placed(leader).keys()):
                name = leader["metadata"]["name"]
                self.broken(f"{key} is no more to be in {cluster}, where {name} is placed and needs it")

    def _surplus(
        self, key: str, policy_key: str, old: Mapping[str, int | None], new: Mapping[str, int | None], template: Object
    ) -> None:
        """Scaling stops no more than there is too much, where no cluster is to be left."""
        if self._reason(policy_key) or any(self._drives_out(cluster) for cluster in old):
            return
        wanted, running = (template.get("spec") or {}).get("replicas", 0), sum(number or 0 for number in old.values())
        if sum(number or 0 for number in new.values()) < min(wanted, running):
            self.broken(f"{key} was placed as {old} and is placed as {new}, and {wanted} replicas are wanted")

    def _drives_out(self, cluster: str) -> bool:
        stored = found(self._plane, f"{_CLUSTERS}/{cluster}")
        if stored is None or not _lives(stored):
            return True
        conditions = (stored.get("status") or {}).get("conditions") or ()
        ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
        return not ready or any(each["effect"] == "NoExecute" for each in stored["spec"].get("taints") or ())

    def _within_room(self, key: str, old: Mapping[str, int | None], new: Mapping[str, int | None]) -> None:
        for cluster, replicas in new.items():
            if (replicas or 0) <= (old.get(cluster) or 0):
                continue
            asked = sum(self._asked(cluster))
            if asked > self._cpus[cluster]:
                self.broken(
                    f"{key} got {replicas} replicas in {cluster}: {asked} CPUs are asked of {self._cpus[cluster]}"
                )

    def _asked(self, cluster: str) -> Iterator[int]:
        """CPUs that all limited objects together ask of a cluster. Others may take room at any time, and more than there is."""
        for key, federated in listed(self._plane, _FEDERATED).items():
            source = found(self._plane, _source_key(f"{_FEDERATED}/{key}", federated))
            if source is not None and _lives(source) and _lives(federated) and _policy(source) == "within":
                yield placed(federated).get(cluster) or 0

    def _still_there(self, cluster: str) -> bool:
        stored = found(self._plane, f"{_CLUSTERS}/{cluster}")
        return stored is not None and "deletionTimestamp" not in stored["metadata"]

    def _clusters(self) -> list[str]:
        return [f"{_CLUSTERS}/{cluster}" for cluster in self._cpus]

    def _reason(self, *keys: str) -> bool:
        """Whether one of these changed lately."""
        return any(self._time() - self._changed.get(key, -_REASON) < _REASON for key in keys)


def _source_key(key: str, federated: Object) -> str:
    template = federated["spec"]["template"]
    table, namespace = _TABLES[template["kind"]], key.removeprefix(f"{_FEDERATED}/").partition("/")[0]
    return f"{table}/{namespace}/{template['metadata']['name']}"


def _lives(thing: Object) -> bool:
    return "deletionTimestamp" not in thing["metadata"]


def _policy(source: Object) -> str:
    name: str = (source["metadata"].get("labels") or {}).get(keys.PROPAGATION_POLICY_LABEL, "")
    return name


def _has_changed(change: Change) -> bool:
    before = body_of(change.previous)
    return before is None or change.deleted or _matters(orjson.loads(change.value)) != _matters(before)


def _matters(thing: Object) -> object:
    """What of an object can be a reason: its content, labels and annotations, and whether a cluster is ready."""
    metadata, status = thing.get("metadata") or {}, thing.get("status") or {}
    ready = [(each["type"], each["status"]) for each in status.get("conditions") or () if "replicas" not in status]
    content = {key: value for key, value in thing.items() if key not in ("metadata", "status")}
    return content, metadata.get("labels"), metadata.get("deletionTimestamp"), ready, status.get("resources")
