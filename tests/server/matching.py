"""What an answer must look like: subsets, whole objects with volatile metadata masked, and causes in any order.

Pure functions from (expected, actual) to a list of differences, one line each; an empty list means it is as expected.
"""

import copy
import re
from typing import Any

__all__ = ["ABSENT", "at", "causes", "differences", "subset", "whole"]

#: Differs from one run to the next on any server, so whole-object comparisons leave it out.
_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink")
ABSENT = object()


def at(value: Any, path: str) -> Any:
    """The value at a dotted path (`items.0.metadata.name`; `\\.` is a dot inside a key; `.` is the whole), or ABSENT."""
    if path == ".":
        return value
    for part in re.split(r"(?<!\\)\.", path):
        key = part.replace("\\.", ".")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.lstrip("-").isdigit() and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        else:
            return ABSENT
    return value


def subset(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Everything expected is there; objects may have more fields, lists have the same length."""
    if (matched := _matcher(expected, actual, path)) is not None:
        return matched
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            line
            for key, value in expected.items()
            for line in (subset(value, actual[key], f"{path}.{key}") if key in actual else [f"{path}.{key}: is absent"])
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{path}: {len(actual)} items instead of {len(expected)}: {actual!r}"]
        pairs = zip(expected, actual, strict=True)
        return [line for index, (e, a) in enumerate(pairs) for line in subset(e, a, f"{path}[{index}]")]
    return _same(expected, actual, path)


def whole(expected: Any, actual: Any) -> list[str]:
    """The same object, field by field, apart from what each server makes up anew."""
    return _whole(_masked(expected), _masked(actual), "")


def differences(expected: Any, actual: Any) -> list[str]:
    """The same value, field by field, with nothing left aside."""
    return _whole(expected, actual, "")


def causes(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[str]:
    """Each expected cause is there once, in any order, and there are no others."""
    left = list(actual)
    missing = []
    for cause in expected:
        found = next((given for given in left if not subset(cause, given)), None)
        if found is None:
            missing.append(cause)
        else:
            left.remove(found)
    return [f"causes: missing {cause!r}" for cause in missing] + [f"causes: unexpected {cause!r}" for cause in left]


def _whole(expected: Any, actual: Any, path: str) -> list[str]:
    if (matched := _matcher(expected, actual, path)) is not None:
        return matched
    if isinstance(expected, dict) and isinstance(actual, dict):
        lines = []
        for key in {**expected, **actual}:
            if key not in actual:
                lines.append(f"{path}.{key}: is absent")
            elif key not in expected:
                lines.append(f"{path}.{key}: is there: {actual[key]!r}")
            else:
                lines += _whole(expected[key], actual[key], f"{path}.{key}")
        return lines
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = zip(expected, actual, strict=True)
        return [line for index, (e, a) in enumerate(pairs) for line in _whole(e, a, f"{path}[{index}]")]
    return _same(expected, actual, path)


def _matcher(expected: Any, actual: Any, path: str) -> list[str] | None:
    """The differences if `expected` is a matcher (`$any`, `{$match: …}`, …), None if it is a plain value."""
    if expected == "$any":
        return []
    if not (isinstance(expected, dict) and len(expected) == 1):
        return None
    ((name, wanted),) = expected.items()
    match name:
        case "$match":
            holds = isinstance(actual, str) and re.search(wanted, actual) is not None
        case "$contains":
            holds = isinstance(actual, str) and wanted in actual
        case "$has":
            given = actual if isinstance(actual, list) else []
            return [
                f"{path}: no item like {item!r} in {actual!r}"
                for item in wanted
                if not any(not subset(item, one) for one in given)
            ]
        case "$count":
            holds = isinstance(actual, list) and len(actual) == wanted
        case "$not":
            holds = bool(subset(wanted, actual))
        case _:
            return None
    return [] if holds else [f"{path}: {actual!r} is not {name} {wanted!r}"]


def _same(expected: Any, actual: Any, path: str) -> list[str]:
    # True == 1 in Python, not in JSON.
    if expected == actual and isinstance(expected, bool) == isinstance(actual, bool):
        return []
    return [f"{path or '.'}: {actual!r} instead of {expected!r}"]


def _masked(obj: Any) -> Any:
    masked = copy.deepcopy(obj)
    if isinstance(masked, dict) and isinstance(masked.get("metadata"), dict):
        for field in _VOLATILE:
            masked["metadata"].pop(field, None)
    return masked
