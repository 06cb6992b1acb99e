"""Lists that are sets or maps: no element, no key twice."""

from typing import Any

import orjson

from argosy.kube.fieldpath import Path, written
from argosy.server.crd.structure import Structure
from argosy.server.crd.validation import MAX_PROBLEMS
from argosy.server.fielderrors import FieldError, duplicate, invalid

__all__ = ["validate_lists"]


def validate_lists(value: Any, structure: Structure | None, path: Path = None) -> list[FieldError]:
    """Duplicates in lists of type set and map, anywhere below."""
    if structure is None or not structure.lists_below:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        for name, item in value.items():
            if name in structure.properties:
                errors += validate_lists(item, structure.properties[name], (path, f".{name}"))
            elif structure.additional is not None:
                errors += validate_lists(item, structure.additional, (path, f"[{name}]"))
    elif type(value) is list:
        errors += _duplicates(value, structure, path)
        for index, item in enumerate(value):
            errors += validate_lists(item, structure.items, (path, f"[{index}]"))
    return errors


def _duplicates(items: list[Any], structure: Structure, path: Path) -> list[FieldError]:
    if structure.list_type == "set":
        return [duplicate(written((path, f"[{index}]")), items[index]) for index in _repeated(items)]
    if structure.list_type != "map":
        return []
    for index, item in enumerate(items):
        if item is not None and type(item) is not dict:
            return [invalid(written((path, f"[{index}]")), item, "must be an object for an array of list-type map")]
    keys = [{key: item[key] for key in structure.keys if key in item} if item else {} for item in items]
    return [duplicate(written((path, f"[{index}]")), keys[index]) for index in _repeated(keys)]


def _repeated(values: list[Any]) -> list[int]:
    """Where a value comes for the second time; a third time is not told again."""
    if len(values) < 2:
        return []
    seen: dict[bytes, int] = {}
    repeated = []
    for index, value in enumerate(values):
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        seen[encoded] = seen.get(encoded, 0) + 1
        if seen[encoded] == 2:
            repeated.append(index)
            if len(repeated) >= MAX_PROBLEMS:
                break
    return repeated
