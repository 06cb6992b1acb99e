"""Schemas of the built-in kinds: field types, required fields, merge keys and list types, for several minors.

The tables in `schemas/` are distilled from Kubernetes' published OpenAPI by `scripts/distill_schemas.py` and read lazily:
a definition is decoded on first use, descriptions only when they are read. They hold no defaults and no semantic rules; those
are in the server. `kube.typecheck` checks objects against a type.
"""

import lzma
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import msgspec

__all__ = [
    "DEFAULT_MINOR",
    "SchemaError",
    "Schemas",
    "Type",
    "load",
    "minors",
]

DEFAULT_MINOR: Final = "1.36"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
#: Definitions whose JSON form differs from their Go type: they have kinds of their own.
_SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    f"{_META}Time": "time",
    f"{_META}MicroTime": "micro-time",
    f"{_META}FieldsV1": "any",
    f"{_META}Patch": "any",
}
#: Python types that need no further check.
_PLAIN: Final = {"string": str, "boolean": bool}


class SchemaError(ValueError):
    """There is no table for this Kubernetes version."""


class _Node(msgspec.Struct, frozen=True):
    """One schema as the tables write it."""

    ref: str | None = msgspec.field(default=None, name="$")
    type: str | None = msgspec.field(default=None, name="t")
    format: str = msgspec.field(default="", name="f")
    items: "_Node | None" = msgspec.field(default=None, name="i")
    values: "_Node | None" = msgspec.field(default=None, name="v")
    merge_key: str = msgspec.field(default="", name="k")
    strategy: str = msgspec.field(default="", name="s")
    list_type: str = msgspec.field(default="", name="l")
    list_map_keys: tuple[str, ...] = msgspec.field(default=(), name="m")
    map_type: str = msgspec.field(default="", name="M")
    description: int | None = msgspec.field(default=None, name="d")
    unions: list[Any] | None = msgspec.field(default=None, name="u")
    properties: "dict[str, _Node]" = msgspec.field(default_factory=dict, name="p")
    required: tuple[str, ...] = msgspec.field(default=(), name="r")


class _Table(msgspec.Struct, frozen=True):
    kinds: list[tuple[str, str, str, str]]
    definitions: dict[str, msgspec.Raw]


class Type:
    """The type of a field or of a whole object, as used in one place. Immutable to callers.

    `kind` is one of string, integer, number, boolean, object, array, map, any, quantity, int-or-string, time,
    micro-time, bytes. `fields` of an object and `item` of an array or map lead on; types may be recursive.
    """

    __slots__ = (
        "_fields",
        "_item",
        "_node",
        "_schemas",
        "definition",
        "format",
        "kind",
        "list_map_keys",
        "list_type",
        "map_type",
        "merge_key",
        "plain",
        "strategies",
    )

    def __init__(self, schemas: "Schemas", node: _Node, definition: str | None):
        target = schemas._node(definition) if definition else node
        assert target is not None
        self._schemas = schemas
        self._node = node
        self._fields: Mapping[str, Type] | None = None
        self._item: Type | None = None
        #: Full name of the definition, such as io.k8s.api.core.v1.Container; None for inline types.
        self.definition = definition
        self.kind = _SPECIAL.get(definition or "") or _kind(target)
        self.format = target.format
        self.merge_key = node.merge_key
        #: Strategic merge patch strategies of this field: any of merge, replace, retainKeys.
        self.strategies = frozenset(node.strategy.split(",")) if node.strategy else frozenset()
        #: atomic, set or map; empty if the schema does not say (then it is atomic).
        self.list_type = node.list_type
        self.list_map_keys = node.list_map_keys
        self.map_type = node.map_type or target.map_type
        self.plain = _PLAIN.get(self.kind)

    @property
    def fields(self) -> Mapping[str, "Type"]:
        """Types of an object's fields by name; empty for everything else."""
        if self._fields is None:
            self._fields = self._schemas._fields(self.definition) if self.definition else {}
        return self._fields

    @property
    def item(self) -> "Type | None":
        """Type of an array's items or a map's values."""
        if self._item is None:
            node = self._node.items or self._node.values
            if node is None and self.definition:
                target = self._schemas._node(self.definition)
                node = (target.items or target.values) if target else None
            if node is not None:
                self._item = Type(self._schemas, node, node.ref)
        return self._item

    def child(self, key: str) -> "Type | None":
        """Type of the value under a key of this object or map, if it is known."""
        return self.item if self.kind == "map" else self.fields.get(key)

    @property
    def required(self) -> frozenset[str]:
        target = self._schemas._node(self.definition) if self.definition else None
        return frozenset(target.required) if target else frozenset()

    @property
    def description(self) -> str:
        """The field's description, or else its type's."""
        position = self._node.description
        if position is None and self.definition:
            target = self._schemas._node(self.definition)
            position = target.description if target else None
        return "" if position is None else _descriptions()[position]

    @property
    def name(self) -> str:
        """The definition's last part, such as Container; the kind for inline types."""
        return self.definition.rsplit(".", 1)[1] if self.definition else self.kind

    def __repr__(self) -> str:
        return f"<Type {self.name}>"


def _kind(node: _Node) -> str:
    if node.values is not None:
        return "map"
    if node.type == "string" and node.format == "byte":
        return "bytes"
    return node.type or "any"


class Schemas:
    """The built-in kinds of one Kubernetes minor."""

    def __init__(self, minor: str, table: _Table):
        self.minor = minor
        self._raw = table.definitions
        self._kinds = {(group, version, kind): name for group, version, kind, name in table.kinds}
        self._nodes: dict[str, _Node] = {}
        self._field_types: dict[str, Mapping[str, Type]] = {}
        self._types: dict[str, Type] = {}

    def kind(self, group: str, version: str, kind: str) -> Type | None:
        name = self._kinds.get((group, version, kind))
        return self.definition(name) if name else None

    def kinds(self) -> Iterable[tuple[str, str, str]]:
        """Every group, version and kind known, lists and option objects included."""
        return self._kinds.keys()

    def definition(self, name: str) -> Type | None:
        """The type of a definition by its full name."""
        found = self._types.get(name)
        if found is None and (node := self._node(name)) is not None:
            found = self._types[name] = Type(self, node, name)
        return found

    def definitions(self, reference: str = "#/definitions/") -> dict[str, dict[str, Any]]:
        """All definitions as OpenAPI, descriptions included; `reference` goes in front of a definition's name in $ref.

        A new value each time: the caller keeps what it publishes.
        """
        kinds: dict[str, list[dict[str, str]]] = {}
        for (group, version, kind), name in self._kinds.items():
            kinds.setdefault(name, []).append({"group": group, "kind": kind, "version": version})
        result = {}
        for name in self._raw:
            node = self._node(name)
            assert node is not None
            result[name] = _openapi(node, reference)
            if name in kinds:
                result[name]["x-kubernetes-group-version-kind"] = kinds[name]
        return result

    def _node(self, name: str) -> _Node | None:
        node = self._nodes.get(name)
        if node is None and (raw := self._raw.get(name)) is not None:
            node = self._nodes[name] = msgspec.json.decode(raw, type=_Node)
        return node

    def _fields(self, name: str) -> Mapping[str, Type]:
        """Shared by all uses of a definition."""
        fields = self._field_types.get(name)
        if fields is None:
            node = self._node(name)
            properties = node.properties if node else {}
            fields = {field: Type(self, inner, inner.ref) for field, inner in properties.items()}
            self._field_types[name] = fields
        return fields


def _openapi(node: _Node, reference: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if node.description is not None:
        out["description"] = _descriptions()[node.description]
    if node.ref:
        out["$ref"] = reference + node.ref
    if node.type:
        out["type"] = node.type
    if node.format:
        out["format"] = node.format
    if node.items:
        out["items"] = _openapi(node.items, reference)
    if node.values:
        out["additionalProperties"] = _openapi(node.values, reference)
    if node.properties:
        out["properties"] = {name: _openapi(inner, reference) for name, inner in node.properties.items()}
    if node.required:
        out["required"] = list(node.required)
    extensions = {
        "x-kubernetes-list-map-keys": list(node.list_map_keys),
        "x-kubernetes-list-type": node.list_type,
        "x-kubernetes-map-type": node.map_type,
        "x-kubernetes-patch-merge-key": node.merge_key,
        "x-kubernetes-patch-strategy": node.strategy,
        "x-kubernetes-unions": node.unions,
    }
    out.update((key, value) for key, value in extensions.items() if value)
    return out


def minors() -> list[str]:
    """The Kubernetes minors there are tables for, oldest first."""
    names = (entry.name for entry in resources.files("argosy.kube.schemas").iterdir())
    found = [name.removesuffix(".json.z") for name in names if name.endswith(".json.z")]
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


@lru_cache(maxsize=4)
def load(minor: str | None = None) -> Schemas:
    """The schemas of a minor such as "1.36"; the default one when none is named. Loaded once and shared."""
    wanted = minor or DEFAULT_MINOR
    if minor is None:
        return load(wanted)
    if wanted not in minors():
        raise SchemaError(f"no schemas for Kubernetes {wanted!r}; there are {', '.join(minors())}")
    packed = resources.files("argosy.kube.schemas").joinpath(f"{wanted}.json.z").read_bytes()
    return Schemas(wanted, msgspec.json.decode(zlib.decompress(packed), type=_Table))


@lru_cache(maxsize=1)
def _descriptions() -> list[str]:
    packed = resources.files("argosy.kube.schemas").joinpath("descriptions.json.xz").read_bytes()
    return msgspec.json.decode(lzma.decompress(packed), type=list[str])
