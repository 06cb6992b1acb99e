"""Resources inside custom objects (x-kubernetes-embedded-resource).

An embedded resource names its apiVersion and kind; its metadata follows the rules of any object's.
"""

import re
from typing import Any

import msgspec

from argosy.kube import names
from argosy.kube.fieldpath import Path, written
from argosy.server import metadata as metadata_rules
from argosy.server.crd.structure import Structure
from argosy.server.crd.validation import MAX_PROBLEMS
from argosy.server.fielderrors import FieldError, invalid, required

__all__ = ["mistyped_resource", "validate_embedded"]

_API_VERSION = re.compile(r"[^/]+(/[^/]+)?")


def validate_embedded(value: Any, structure: Structure | None, path: Path = None) -> list[FieldError]:
    """The errors of every resource embedded below `value`, which is not one itself."""
    if structure is None or not structure.embedded_below:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        for name, item in value.items():
            if name in structure.properties:
                errors += _node(item, structure.properties[name], (path, f".{name}") if name else path)
            elif structure.additional is not None:
                errors += _node(item, structure.additional, (path, f"[{name}]"))
            if len(errors) >= MAX_PROBLEMS:
                break
    elif type(value) is list and structure.items is not None:
        for index, item in enumerate(value):
            errors += _node(item, structure.items, (path, f"[{index}]"))
            if len(errors) >= MAX_PROBLEMS:
                break
    return errors


def mistyped_resource(value: Any, structure: Structure | None, path: Path = None) -> FieldError | None:
    """What makes a resource embedded below `value` unreadable, if anything."""
    if structure is None or not structure.embedded_below:
        return None
    if type(value) is dict:
        for name, item in value.items():
            child, inner = structure.properties.get(name), (path, f".{name}")
            if child is None:
                child, inner = structure.additional, (path, f"[{name}]")
            if child is not None and (wrong := _mistyped(item, child, inner)) is not None:
                return wrong
    elif type(value) is list and structure.items is not None:
        for index, item in enumerate(value):
            if (wrong := _mistyped(item, structure.items, (path, f"[{index}]"))) is not None:
                return wrong
    return None


def _mistyped(value: Any, structure: Structure, path: Path) -> FieldError | None:
    if structure.embedded and type(value) is dict:
        for name in ("apiVersion", "kind"):
            if not isinstance(value.get(name, ""), str):
                return invalid(written((path, f".{name}")), value[name], "must be a string")
        metadata = value.get("metadata")
        wrong = metadata_rules.check_types(value) if metadata is not None else None
        if wrong:
            return invalid(written((path, ".metadata")), metadata, wrong)
    return mistyped_resource(value, structure, path)


def _node(value: Any, structure: Structure, path: Path) -> list[FieldError]:
    errors = _resource(value) if structure.embedded and type(value) is dict else []
    if errors:
        at = written(path)
        errors = [msgspec.structs.replace(error, field=at + error.field) for error in errors]
    return errors + validate_embedded(value, structure, path)


def _resource(value: dict[str, Any]) -> list[FieldError]:
    """The errors of a resource; fields are relative to it."""
    errors = [required(f".{name}") for name in ("apiVersion", "kind") if name not in value]
    for name in ("apiVersion", "kind"):
        text = value.get(name, "-")
        if not isinstance(text, str):
            errors.append(invalid(f".{name}", text, "must be a string"))
        elif not text:
            errors.append(invalid(f".{name}", text, "must not be empty"))
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(api_version, str) and api_version and not _API_VERSION.fullmatch(api_version):
        errors.append(invalid(".apiVersion", api_version, f"unexpected GroupVersion string: {api_version}"))
    if isinstance(kind, str) and kind and (found := names.dns1035_label_errors(kind.lower())):
        text = "may have mixed case, but should otherwise match: " + ",".join(found)
        errors.append(invalid(".kind", kind, text))
    return errors + _metadata(value, ".metadata")


def _metadata(value: dict[str, Any], path: str) -> list[FieldError]:
    metadata = value.get("metadata")
    if metadata is None:
        return []
    mistyped = metadata_rules.check_types(value)
    if mistyped:
        return [invalid(path, metadata, mistyped)]
    errors = []
    for field, rule in (("name", names.path_segment_name_errors), ("generateName", names.path_segment_prefix_errors)):
        text = metadata.get(field, "")
        errors += [invalid(f"{path}.{field}", text, found) for found in rule(text)]
    for key, label in (metadata.get("labels") or {}).items():
        errors += [invalid(f"{path}.labels", key, found) for found in names.qualified_name_errors(key)]
        errors += [invalid(f"{path}.labels", label, found) for found in names.label_value_errors(label)]
    for key in metadata.get("annotations") or ():
        errors += [invalid(f"{path}.annotations", key, found) for found in names.qualified_name_errors(key.lower())]
    return errors
