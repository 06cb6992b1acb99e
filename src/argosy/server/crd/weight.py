"""Weight: how much more than its size an object of a schema costs to write.

A small body may grow by its defaults, is walked once for each alternative of the schema, and each string is matched against its
pattern.
"""

from typing import Any

import msgspec
import orjson

from argosy.kube.regexp import compile_pattern

__all__ = ["Weight", "weigh"]

#: Instructions of a pattern that cost as much, at worst, as everything else that is done with a string.
_LOOK = 32
#: Bytes of the smallest item that gets defaults: {} and a comma.
_ITEM = 3
#: Bytes around the name of a field.
_AROUND = 4


class Weight(msgspec.Struct, frozen=True):
    #: Bytes of all defaults together, including names; and of those that each item of a list or map may get again.
    defaults: int
    per_item: int
    #: How often a value is visited at most.
    looks: int

    def effort(self, size: int) -> int:
        """The cost of an object of so many bytes, in bytes of one whose schema has neither defaults nor alternatives."""
        size += self.defaults
        return (size + size // _ITEM * self.per_item) * self.looks


def weigh(schema: dict[str, Any]) -> Weight:
    default = schema.get("default")
    size = 0 if default is None else len(orjson.dumps(default))
    pattern = schema.get("pattern")
    looks = 1 + (compile_pattern(pattern).size // _LOOK if pattern else 0)
    per_item = 0
    for name, node in (schema.get("properties") or {}).items():
        inner = weigh(node)
        size += inner.defaults + (len(name.encode()) + _AROUND if node.get("default") is not None else 0)
        per_item += inner.per_item
        looks = max(looks, inner.looks)
    for node in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(node, dict):
            inner = weigh(node)
            size += inner.defaults
            per_item += inner.defaults
            looks = max(looks, inner.looks)
    alternatives = [node for keyword in ("allOf", "anyOf", "oneOf") for node in schema.get(keyword) or ()]
    negated = schema.get("not")
    if isinstance(negated, dict):
        alternatives.append(negated)
    return Weight(size, per_item, looks + sum(weigh(node).looks for node in alternatives))
