"""Defaults of a schema: each must itself be valid, without unknown fields, so that defaulting never breaks an object."""

import copy
from typing import Any

from argosy.server.crd.embedded import validate_embedded
from argosy.server.crd.problems import fields
from argosy.server.crd.pruning import prune
from argosy.server.crd.structure import Structure
from argosy.server.crd.validation import compile_schema
from argosy.server.fielderrors import FieldError, invalid

__all__ = ["validate_defaults"]


def validate_defaults(schema: dict[str, Any], path: str) -> list[FieldError]:
    """The errors in the defaults of a schema whose structure is already known to be valid."""
    errors: list[FieldError] = []
    default = schema.get("default")
    if default is not None:
        errors += _validate(default, schema, f"{path}.default")
    if isinstance(schema.get("items"), dict):
        errors += validate_defaults(schema["items"], f"{path}.items")
    for name, node in (schema.get("properties") or {}).items():
        errors += validate_defaults(node, f"{path}.properties[{name}]")
    return errors


def _validate(default: Any, schema: dict[str, Any], path: str) -> list[FieldError]:
    structure = Structure(schema)
    pruned = copy.deepcopy(default)
    prune(pruned, structure)
    if pruned != default:
        return [invalid(path, default, "must not have unknown fields")]
    if structure.embedded and isinstance(default, dict):
        # As the only property of another schema, so that its own root is treated as embedded.
        holding = Structure({"properties": {"": schema}})
        embedded = validate_embedded({"": default}, holding, (None, path))
        if embedded:
            return embedded
    return fields(compile_schema(schema)(default) or (), path)
