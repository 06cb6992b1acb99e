"""The shape of a structural schema: what pruning, defaulting and list rules need of it, built once per version.

A tree of plain slots instead of schema dictionaries. Each node knows whether anything below it needs a visit, so that walks
skip whole subtrees.
"""

from typing import Any

import orjson

__all__ = ["META_FIELDS", "Structure"]

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


class Structure:
    """One node. `additional` is set when additionalProperties is; its node is None where any value is allowed."""

    __slots__ = (
        "additional",
        "defaulted",
        "defaults_below",
        "embedded",
        "embedded_below",
        "has_additional",
        "items",
        "keys",
        "list_type",
        "lists_below",
        "nullable",
        "preserve",
        "properties",
    )

    def __init__(self, schema: dict[str, Any], *, root: bool = False):
        self.defaults_below: bool
        self.lists_below: bool
        self.embedded_below: bool
        self.properties = {name: Structure(node) for name, node in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.has_additional = additional is not None
        self.additional = Structure(additional) if isinstance(additional, dict) else None
        items = schema.get("items")
        self.items = Structure(items) if isinstance(items, dict) else None
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        #: The root is a resource like an embedded one: its metadata has rules of its own.
        self.embedded = root or bool(schema.get("x-kubernetes-embedded-resource"))
        self.nullable = bool(schema.get("nullable"))
        self.list_type: str = schema.get("x-kubernetes-list-type") or "atomic"
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        #: (name, encoded default): decoded anew for each object, so that objects share no parts.
        self.defaulted = tuple(
            (name, orjson.dumps(node["default"]))
            for name, node in (schema.get("properties") or {}).items()
            if node.get("default") is not None
        )
        below = [*self.properties.values(), *(n for n in (self.additional, self.items) if n is not None)]
        self.defaults_below = bool(self.defaulted) or any(n.defaults_below for n in below)
        self.lists_below = self.list_type in ("set", "map") or any(n.lists_below for n in below)
        self.embedded_below = any(n.embedded or n.embedded_below for n in below)

    def child(self, name: str) -> "Structure | None":
        return self.properties.get(name) or self.additional
