"""Collect: chosen fields of an object in each member, stored beside the federated object.

An unreachable member keeps the fields it had, marked by an error: after a restart nothing else is known.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import orjson

from argosy.api import keys
from argosy.api.federated import Cause
from argosy.api.resources import CLUSTER_COLLECTED_STATUSES, COLLECTED_STATUSES
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube import owners
from argosy.plan import fields
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import annotations_of, labels_of, without_managed_fields

__all__ = ["UNREACHABLE", "Seen", "collected_fields", "collected_status", "replicaset_digests"]

UNREACHABLE: Final = "cluster is not reachable, these fields are the last known ones"
#: Digits of a 64-bit number.
_LONGEST_NUMBER = 19
_DIGEST_FIELDS = {
    "replicasetName": "name",
    "replicas": "replicas",
    "availableReplicas": "available-replicas",
    "readyReplicas": "ready-replicas",
    "observedGeneration": "observed-generation",
}


class Seen(msgspec.Struct, frozen=True):
    """The object in one cluster: None if it does not exist; `error` if it could not be read. `cause` is why pods of it are not
    ready there."""

    object: Json | None = None
    error: str = ""
    reachable: bool = True
    #: When the cluster was heard of last, if it is not now.
    silent_since: str = ""
    cause: Cause | None = None


def collected_fields(obj: Json, paths: Sequence[str]) -> tuple[Json, str]:
    """The fields at the dotted paths, as a new nested object, and which paths were missing."""
    result: Json = {}
    missing = []
    for path in paths:
        value = fields.get(obj, path)
        if value is fields.ABSENT:
            missing.append(f"{path}: not found")
        else:
            result = fields.put(result, path, value)
    return result, f"Failed to get those fields: {', '.join(sorted(missing))}" if missing else ""


def collected_status(
    federated: Json, type_config: FederatedTypeConfig, seen: Mapping[str, Seen], existing: Json | None, now: str
) -> Json | None:
    """The CollectedStatus (or ClusterCollectedStatus) to write, None if the existing one says the same.

    An object that was placed nowhere yet has none.
    """
    if existing is None and not seen:
        return None
    before = {entry["cluster"]: entry for entry in (existing or {}).get("clusters") or ()}
    entries = [
        entry
        for cluster in sorted(seen)
        if (entry := _entry(cluster, seen[cluster], before.get(cluster), type_config)) is not None
    ]
    metadata = without_managed_fields(existing) if existing is not None else {}
    metadata["name"] = federated["metadata"]["name"]
    if type_config.namespaced:
        metadata["namespace"] = federated["metadata"]["namespace"]
    metadata["labels"] = labels_of(federated)
    metadata["ownerReferences"] = [owners.owner_reference(federated, controller=True, block_owner_deletion=True)]
    if type_config.kind == "Deployment" and type_config.spec.source_type.group == "apps":
        digests = orjson.dumps(replicaset_digests(seen)).decode()
        metadata["annotations"] = {**annotations_of({"metadata": metadata}), keys.LATEST_REPLICASET_DIGESTS: digests}
    wanted = {"metadata": metadata, "clusters": entries}
    if existing is not None and equal(wanted, {key: _comparable(existing)[key] for key in wanted}):
        return None
    kind = (COLLECTED_STATUSES if type_config.namespaced else CLUSTER_COLLECTED_STATUSES).kind
    return {"apiVersion": keys.API_VERSION, "kind": kind, **wanted, "lastUpdateTime": now}


def _comparable(existing: Json) -> Json:
    return {"metadata": without_managed_fields(existing), "clusters": existing.get("clusters") or []}


def _entry(cluster: str, seen: Seen, before: Json | None, type_config: FederatedTypeConfig) -> Json | None:
    if not seen.reachable:
        return None if before is None else {**before, "error": UNREACHABLE}
    if seen.error:
        return {"cluster": cluster, "collectedFields": {}, "error": seen.error}
    if seen.object is None:
        return None
    found, error = collected_fields(seen.object, type_config.spec.status_collection.fields)
    entry = {"cluster": cluster, "collectedFields": found}
    if seen.cause is not None:
        entry["cause"] = msgspec.to_builtins(seen.cause)
    return {**entry, "error": error} if error else entry


def replicaset_digests(seen: Mapping[str, Seen]) -> list[Json]:
    """One digest of the newest ReplicaSet for each member where a component reports it; stock members do not."""
    digests = []
    for cluster in sorted(seen):
        annotations = annotations_of(seen[cluster].object or {})
        stated = {field: annotations.get(keys.LATEST_REPLICASET_PREFIX + key) for field, key in _DIGEST_FIELDS.items()}
        generation = annotations.get(keys.SOURCE_GENERATION)
        digest: Json = {"clusterName": cluster, "replicasetName": stated.pop("replicasetName")}
        for field, value in {**stated, "sourceGeneration": generation}.items():
            if value is not None and value.isascii() and value.isdigit() and len(value) < _LONGEST_NUMBER:
                digest[field] = int(value)
        if digest["replicasetName"] and len(digest) == len(_DIGEST_FIELDS) + 2:
            digests.append(digest)
    return digests
