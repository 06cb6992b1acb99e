"""What lines read of stores and requests: keys and objects."""

from typing import Any

import msgspec
import orjson

from argosy.api import keys
from argosy.kube.transport import Request
from argosy.plan.copies.held_copies import held_copies
from argosy.server.http.request import parse_target
from argosy.server.storage.base import Record
from tests.world.disk import Disk

__all__ = [
    "READS",
    "Object",
    "Versioned",
    "body_of",
    "federated_key",
    "found",
    "held",
    "key_of",
    "leaders",
    "listed",
    "managed",
    "needs",
    "placed",
    "rescued",
]

Object = dict[str, Any]
READS = frozenset({"GET", "HEAD"})
_FEDERATED = "core.kubeadmiral.io/federatedobjects"


def body_of(record: Record | None) -> Object | None:
    return orjson.loads(record.value) if record is not None else None


def found(disk: Disk, key: str) -> Object | None:
    return body_of(disk.records.get(key))


def listed(disk: Disk, table: str) -> dict[str, Object]:
    """By namespace and name."""
    prefix = f"{table}/"
    return {
        key.removeprefix(prefix): orjson.loads(record.value)
        for key, record in disk.records.items()
        if key.startswith(prefix)
    }


def key_of(request: Request) -> str | None:
    """The store's key of the object that a request names."""
    target = parse_target(request)
    if target is None or not target.name:
        return None
    parts = [target.group or "core", target.plural, target.namespace, target.name]
    return "/".join(part for part in parts if part)


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class Versioned(msgspec.Struct):
    """What the body of a request or an answer tells of versions: of the object, or of the one to be deleted."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    preconditions: _Metadata = msgspec.field(default_factory=_Metadata)


def managed(copy: Object) -> bool:
    """Whether an object in a member is ours."""
    return bool((copy["metadata"].get("labels") or {}).get(keys.MANAGED_LABEL) == "true")


def rescued(copy: Object) -> bool:
    """Whether it was ours, and was left running."""
    return keys.RESCUED in (copy["metadata"].get("annotations") or {})


def federated_key(key: str) -> str:
    """The federated object's, of a source or a copy in a namespace."""
    group, plural, namespace, name = key.split("/")
    kind = plural if group == "core" else f"{plural}.{group}"
    return f"{_FEDERATED}/{namespace}/{name}-{kind}"


def held(federated: Object, cluster: str) -> bool:
    """Whether the copy in a cluster stays as it is, for want of overrides that can be applied."""
    return bool(held_copies(federated["metadata"].get("annotations") or {}).why(cluster))


def needs(template: Object) -> set[str]:
    """The ConfigMaps that a workload's pods need."""
    containers = template["spec"]["template"]["spec"]["containers"] if template["kind"] == "Deployment" else ()
    return {each["configMapRef"]["name"] for container in containers for each in container.get("envFrom") or ()}


def leaders(plane: Disk, namespace: str, name: str) -> list[Object]:
    """The federated objects of the workloads that need this ConfigMap."""
    return [
        federated
        for key, federated in listed(plane, _FEDERATED).items()
        if key.startswith(f"{namespace}/") and name in needs(federated["spec"]["template"])
    ]


def placed(federated: Object) -> dict[str, int | None]:
    """Replicas by cluster, None where the template's own count."""
    spec = federated["spec"]
    clusters = [
        each["cluster"] for placement in spec.get("placements") or () for each in placement.get("placement") or ()
    ]
    numbers: dict[str, int] = {}
    for override in spec.get("overrides") or ():
        for each in override.get("clusters") or ():
            for patch in each.get("patches") or ():
                if patch["path"] == "/spec/replicas":
                    numbers[each["cluster"]] = patch["value"]
    return {cluster: numbers.get(cluster) for cluster in clusters}
