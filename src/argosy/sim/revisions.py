"""The ReplicaSets of a Deployment: which one is its current template, how new ones are named and annotated. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from argosy.kube.hashing import fnv1a_32, safe_encode
from argosy.kube.owners import owner_reference

__all__ = [
    "DESIRED",
    "HASH_LABEL",
    "MAX_REPLICAS",
    "REVISION",
    "annotations_for",
    "current_of",
    "next_revision",
    "replica_set_for",
    "revision_of",
    "template_hash",
]

Object = dict[str, Any]
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
#: Annotations of a Deployment that its ReplicaSets do not inherit.
_OWN = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
}
#: A ReplicaSet's name is at most this long, as its pods' names add to it.
_MAX_NAME = 247


def current_of(deployment: Object, sets: Sequence[Object]) -> Object | None:
    """The oldest ReplicaSet with the Deployment's template."""
    wanted = _without_hash(deployment["spec"]["template"])
    same = [one for one in sets if _without_hash(one["spec"]["template"]) == wanted]
    return min(same, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]), default=None)


def _without_hash(template: Mapping[str, Any]) -> Object:
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def template_hash(template: Mapping[str, Any], collisions: int) -> str:
    text = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collisions:
        text += str(collisions).encode()
    return safe_encode(str(fnv1a_32(text)))


def revision_of(obj: Mapping[str, Any]) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def next_revision(old: Sequence[Object]) -> int:
    return max((revision_of(one) for one in old), default=0) + 1


def annotations_for(deployment: Object, found: Mapping[str, str], revision: int) -> dict[str, str]:
    """A ReplicaSet's annotations with those of its Deployment and the revision; a revision never goes back."""
    inherited = deployment["metadata"].get("annotations") or {}
    annotations = {**found, **{key: value for key, value in inherited.items() if key not in _OWN}}
    before = found.get(REVISION, "")
    known = int(before) if before.isascii() and before.isdigit() else 0
    if known < revision:
        annotations[REVISION] = str(revision)
        if known:
            past = [one for one in (found.get(HISTORY) or "").split(",") if one]
            annotations[HISTORY] = ",".join([*past, before])
    return annotations


def replica_set_for(deployment: Object, replicas: int, max_replicas: int, revision: int) -> Object:
    """The new ReplicaSet of a Deployment's template."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    collisions = (deployment.get("status") or {}).get("collisionCount") or 0
    hashed = template_hash(spec["template"], collisions)
    template = {**spec["template"], "metadata": dict(spec["template"].get("metadata") or {})}
    template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), HASH_LABEL: hashed}
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: hashed}
    annotations = annotations_for(deployment, {}, revision)
    annotations |= {DESIRED: str(spec["replicas"]), MAX_REPLICAS: str(max_replicas)}
    wanted: Object = {"replicas": replicas, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        wanted["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name'][: _MAX_NAME - len(hashed) - 1]}-{hashed}",
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [owner_reference(deployment, controller=True, block_owner_deletion=True)],
        },
        "spec": wanted,
    }
