"""Components of the OpenAPI documents: definitions of built-in kinds from the tables, of custom ones from their schemas."""

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.kube.schema import Schemas
from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.registry import Kind

__all__ = ["Components", "custom_schema", "definition_name"]

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_TYPE_META: dict[str, Schema] = {
    "apiVersion": {"description": "The group and version of this representation of the object.", "type": "string"},
    "kind": {"description": "The kind of the object, in CamelCase.", "type": "string"},
}
_METADATA = "The metadata every object has: name, namespace, labels, annotations and what the server keeps about it."
#: What definitions of custom kinds refer to.
_REFERRED = (f"{_META}ObjectMeta", f"{_META}ListMeta")
#: Keywords that OpenAPI 2 does not have.
_ONLY_V3 = ("nullable", "anyOf", "oneOf", "allOf", "not")


class Components:
    """The definitions of one document style; `reference` is what stands in front of a name in $ref."""

    def __init__(self, schemas: Schemas, reference: str):
        self.reference = reference
        definitions = schemas.definitions(reference)
        if "components" in reference:
            definitions = {name: _without_siblings(node) for name, node in definitions.items()}
        self._definitions = definitions
        self._names: dict[tuple[str, str, str], str] = {}
        for name, node in definitions.items():
            kinds = node.get("x-kubernetes-group-version-kind") or ()
            for entry in kinds if len(kinds) == 1 else ():
                self._names[entry["group"], entry["version"], entry["kind"]] = name

    def name(self, kind: Kind, suffix: str = "") -> str:
        """The definition of a kind or of its list."""
        wanted = f"{kind.kind}{suffix}"
        return self._names.get((kind.group, kind.version, wanted)) or definition_name(kind.group, kind.version, wanted)

    def named(self, group: str, version: str, kind: str) -> str | None:
        return self._names.get((group, version, kind))

    def definitions(self, kinds: Iterable[Kind], roots: Iterable[str] | None = None) -> Iterator[tuple[str, Schema]]:
        """Definitions by name: of custom kinds and their lists, and built-in ones: all, or those the roots refer to.

        Custom ones are made one at a time: there may be hundreds of megabytes of them.
        """
        custom: dict[str, tuple[Kind, bool]] = {}
        for kind in kinds:
            if (kind.group, kind.version, kind.kind) not in self._names:
                custom[self.name(kind)] = kind, False
                custom[self.name(kind, "List")] = kind, True
        builtin = self._definitions if roots is None else self._reachable([*roots, *_REFERRED])
        for name in sorted({*builtin, *custom}):
            if name not in custom:
                yield name, builtin[name]
                continue
            kind, is_list = custom[name]
            yield name, self._list(kind) if is_list else custom_schema(kind, self.reference)

    def _reachable(self, roots: Iterable[str]) -> dict[str, Schema]:
        """The named built-in definitions and all they refer to."""
        found: dict[str, Schema] = {}
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            node = self._definitions.get(name)
            if name in found or node is None:
                continue
            found[name] = node
            waiting += [reference.removeprefix(self.reference) for reference in _references(node)]
        return found

    def _list(self, kind: Kind) -> Schema:
        properties: dict[str, Schema] = {
            **_TYPE_META,
            "items": {
                "description": f"The {kind.plural} of the list.",
                "type": "array",
                "items": {"$ref": self.reference + self.name(kind)},
            },
            "metadata": _referring(
                f"{_META}ListMeta", "The version of the list and how to go on with it.", self.reference
            ),
        }
        return {
            "description": f"{kind.list_kind} is a list of {kind.kind}",
            "type": "object",
            "required": ["items"],
            "properties": properties,
            "x-kubernetes-group-version-kind": [_identity(kind, kind.list_kind)],
        }


def definition_name(group: str, version: str, kind: str) -> str:
    """`com.example.v1.Widget`: the group's labels in reverse, so that names of one owner are sorted together."""
    return ".".join([*reversed(group.split(".")), version, kind]) if group else f"{version}.{kind}"


def custom_schema(kind: Kind, reference: str) -> Schema:
    """The published schema of a custom resource, with the fields of every object."""
    if isinstance(kind.strategy, CustomResourceStrategy):
        schema = kind.strategy.schema
    else:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if "components" not in reference:
        schema = _as_v2(schema)
    _add_meta(schema, reference, root=True)
    schema["x-kubernetes-group-version-kind"] = [_identity(kind, kind.kind)]
    return schema


def _identity(kind: Kind, name: str) -> dict[str, str]:
    return {"group": kind.group, "kind": name, "version": kind.version}


def _add_meta(schema: Schema, reference: str, *, root: bool) -> None:
    if root or schema.get("x-kubernetes-embedded-resource"):
        metadata = _referring(f"{_META}ObjectMeta", _METADATA, reference)
        schema["properties"] = {**(schema.get("properties") or {}), **_TYPE_META, "metadata": metadata}
        if not root:
            schema["required"] = sorted({*(schema.get("required") or ()), "apiVersion", "kind"})
    for name, node in (schema.get("properties") or {}).items():
        if name not in ("apiVersion", "kind", "metadata"):
            _add_meta(node, reference, root=False)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            _add_meta(schema[keyword], reference, root=False)


def _as_v2(schema: Schema) -> Schema:
    """The part of a schema that OpenAPI 2 can express; the rest is left out."""
    result = {key: value for key, value in schema.items() if key not in _ONLY_V3}
    if schema.get("x-kubernetes-int-or-string") or schema.get("nullable"):
        for keyword in ("type", "items", "properties", "additionalProperties"):
            result.pop(keyword, None)
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        result.pop("items", None)
        result.pop("properties", None)
    if result.get("properties"):
        result["properties"] = {name: _as_v2(node) for name, node in result["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(result.get(keyword), dict):
            result[keyword] = _as_v2(result[keyword])
    return result


def _referring(name: str, description: str, reference: str) -> Schema:
    if "components" in reference:
        return {"description": description, "allOf": [{"$ref": reference + name}]}
    return {"description": description, "$ref": reference + name}


def _without_siblings(node: Schema) -> Schema:
    """OpenAPI 3 ignores the siblings of a $ref, so with a description the reference goes inside an allOf."""
    result = dict(node)
    if "$ref" in result and len(result) > 1:
        result["allOf"] = [{"$ref": result.pop("$ref")}]
    if "properties" in result:
        result["properties"] = {name: _without_siblings(inner) for name, inner in result["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(result.get(keyword), dict):
            result[keyword] = _without_siblings(result[keyword])
    return result


def _references(node: Any) -> Iterable[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)
