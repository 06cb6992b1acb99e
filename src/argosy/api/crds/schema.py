"""Words to write OpenAPI schemas with, and the frame of a CustomResourceDefinition.

Descriptions are what `kubectl explain` shows, so every field has one.
"""

from typing import Any, Final

from argosy.api import keys
from argosy.api.crds.upgrade import REVISION

__all__ = [
    "AGE",
    "anything",
    "api_resource",
    "array",
    "boolean",
    "column",
    "crd",
    "integer",
    "mapping",
    "obj",
    "quantities",
    "string",
    "time",
]

Schema = dict[str, Any]


def string(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def time(description: str) -> Schema:
    return string(description, format="date-time")


def boolean(description: str, **more: Any) -> Schema:
    return {"type": "boolean", "description": description, **more}


def integer(description: str, **more: Any) -> Schema:
    return {"type": "integer", "format": "int64", "description": description, **more}


def anything(description: str) -> Schema:
    """Any JSON, kept as it is."""
    return {"description": description, "x-kubernetes-preserve-unknown-fields": True}


def array(description: str, items: Schema, **more: Any) -> Schema:
    return {"type": "array", "description": description, "items": items, **more}


def mapping(description: str, values: Schema | None = None) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": values or {"type": "string"}}


def quantities(description: str) -> Schema:
    quantity = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",  # noqa: E501
    }
    return mapping(description, quantity)


def obj(description: str, properties: dict[str, Schema], required: tuple[str, ...] = (), **more: Any) -> Schema:
    schema: Schema = {"type": "object", "description": description, "properties": properties}
    if required:
        schema["required"] = list(required)
    return {**schema, **more}


def api_resource(description: str) -> Schema:
    """A resource of some API, as a type config names it and a member serves it."""
    fields = {
        "group": string("API group, empty for the core group."),
        "version": string("API version."),
        "kind": string("Kind."),
        "pluralName": string("Name of the resource in URLs."),
        "scope": string("Namespaced or Cluster."),
    }
    return obj(description, fields, ("version", "kind", "pluralName", "scope"))


def column(name: str, path: str, type: str = "string") -> dict[str, str]:
    """What `kubectl get` shows. Only the first value of the path is shown; a list or an object is shown as JSON."""
    return {"name": name, "type": type, "jsonPath": path}


#: A kind with columns of its own has no other.
AGE: Final = column("age", ".metadata.creationTimestamp", "date")


def crd(
    kind: str,
    plural: str,
    schema: Schema,
    *,
    scope: str,
    short: str = "",
    status: bool = False,
    columns: tuple[dict[str, str], ...] = (),
    name_limit: int | None = None,
) -> dict[str, Any]:
    """One kind of the federation; `schema` describes everything but apiVersion, kind and metadata."""
    metadata: Schema = {"type": "object"}
    if name_limit is not None:
        metadata["properties"] = {"name": {"type": "string", "maxLength": name_limit}}
    properties = {
        "apiVersion": string("The API version this object is written in."),
        "kind": string("The kind of this object."),
        "metadata": metadata,
        **schema["properties"],
    }
    version: dict[str, Any] = {
        "name": keys.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {**schema, "properties": properties}},
    }
    if status:
        version["subresources"] = {"status": {}}
    if columns:
        version["additionalPrinterColumns"] = list(columns)
    names: dict[str, Any] = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    if short:
        names["shortNames"] = [short]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{keys.GROUP}",
            "annotations": {keys.NO_FEDERATED_RESOURCE: "true", keys.REVISION: str(REVISION)},
        },
        "spec": {"group": keys.GROUP, "names": names, "scope": scope, "versions": [version]},
    }
