"""JSON Merge Patch (RFC 7386): null removes, objects merge, everything else replaces.

Neither input is changed; results share unchanged parts with them.
"""

from typing import Any

__all__ = ["apply", "create", "same"]


def apply(doc: Any, patch: Any) -> Any:
    """The document with the patch merged in."""
    if not isinstance(patch, dict):
        return patch
    result = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = apply(result.get(key), value)
        else:
            result[key] = value
    return result


def create(original: dict[str, Any], modified: dict[str, Any]) -> dict[str, Any]:
    """The patch that turns `original` into `modified`; a null inside `modified` cannot be expressed and is left out."""
    patch: dict[str, Any] = {key: None for key in original if key not in modified}
    for key, value in modified.items():
        if key not in original:
            if value is not None:
                patch[key] = value
            continue
        before = original[key]
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := create(before, value):
                patch[key] = inner
        elif not same(before, value):
            patch[key] = value
    return patch


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values, where True is not 1 as it is in Python; 1 and 1.0 are the same number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)
