"""Custom resource definitions of any size, in the shape real ones have: deep objects, lists of them, prose in every field."""

import random
from typing import Any

import orjson

from argosy.api import keys
from argosy.kube.resource import Resource

__all__ = ["CRDS", "large_definition", "large_object", "scaled_definition", "scaled_type"]

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)

Object = dict[str, Any]
_PROSE = (
    "The desired behaviour of this part. It is applied when the object is reconciled, and ignored where the feature is off. "
    "More in the documentation: https://example.com/docs/concepts/overview#what-it-means-and-when-to-use-it. "
)


def large_definition(name: str, size: int, *, group: str = "large.example.com", versions: int = 1) -> Object:
    """A definition of about so many bytes, whose kind is the name with a capital; always the same for a name."""
    chance = random.Random(name)
    each = size // versions
    listed = [_version(f"v{number}", each, chance, storage=number == 1) for number in range(1, versions + 1)]
    plural = f"{name}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": name,
                "kind": name.capitalize(),
                "listKind": f"{name.capitalize()}List",
            },
            "versions": listed,
        },
    }


def large_object(name: str, spec: Object, *, group: str = "large.example.com", version: str = "v1") -> Object:
    metadata = {"name": name, "namespace": "default"}
    kind = name.partition("-")[0].capitalize()
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def _version(name: str, size: int, chance: random.Random, *, storage: bool) -> Object:
    spec: Object = {"type": "object", "properties": {"text": {"type": "string"}, "free": _FREE}}
    left = size
    while left > 0:
        field = _part(chance, 4)
        left -= len(orjson.dumps(field)) + 20
        spec["properties"][f"field{len(spec['properties'])}"] = field
    root = {"type": "object", "description": _PROSE, "properties": {"spec": spec, "status": _part(chance, 2)}}
    column = {"name": "Text", "type": "string", "jsonPath": ".spec.text"}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column],
    }


_FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$",
    "x-kubernetes-int-or-string": True,
}


def _part(chance: random.Random, depth: int) -> Object:
    """One field of a spec with all that is below it."""
    described: Object = {"description": _PROSE * chance.randint(1, 3)}
    if depth == 0 or chance.random() < 0.3:
        scalars: list[Object] = [
            {"type": "string", "minLength": 1, "maxLength": 253},
            {"type": "string", "enum": ["Always", "Never", "IfNotPresent"], "default": "Always"},
            {"type": "integer", "format": "int32", "minimum": 0},
            {"type": "boolean"},
            {"type": "string", "format": "date-time"},
            _QUANTITY,
        ]
        return {**described, **chance.choice(scalars)}
    fields = {f"part{number}": _part(chance, depth - 1) for number in range(chance.randint(2, 6))}
    shape = chance.random()
    if shape < 0.3:
        items = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, **fields}}
        keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        return {**described, "type": "array", "items": items, **keyed}
    if shape < 0.4:
        return {**described, "type": "object", "additionalProperties": {"type": "object", "properties": fields}}
    return {**described, "type": "object", "properties": fields}


def scaled_definition(kind: Resource, labels: dict[str, str] | None = None) -> Object:
    """A small one, of a kind with replicas."""
    properties = {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "size": {"type": "integer"}}},
        "status": {
            "type": "object",
            "properties": {"readyReplicas": {"type": "integer"}, "phase": {"type": "string"}},
        },
    }
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": labels or {}},
        "spec": {
            "group": kind.group,
            "names": {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def scaled_type(kind: Resource) -> Object:
    """Its type config: it can be divided."""
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "sourceType": {
                "group": kind.group,
                "version": kind.version,
                "kind": kind.kind,
                "pluralName": kind.plural,
                "scope": "Namespaced",
            },
            "controllers": [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]],
            "pathDefinition": {"replicasSpec": "spec.replicas", "readyReplicasStatus": "status.readyReplicas"},
            "statusCollection": {"enabled": True, "fields": ["spec.replicas", "status"]},
            "statusAggregation": {"enabled": True},
        },
    }
