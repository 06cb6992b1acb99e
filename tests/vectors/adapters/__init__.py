"""Adapters, one module a subject area: each has `ADAPTERS`, from the name of a vector file to the product's answer.

A module may also have `SAME`, from file name to a comparison of (expected, actual), where equality is not the question.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple


class Adapter(NamedTuple):
    answer: Callable[[dict[str, Any]], Any]
    same: Callable[[Any, Any], bool]


def equal(expected: Any, actual: Any) -> bool:
    """Equal where absent, null and empty mean the same."""
    return _stripped(expected) == _stripped(actual)


def adapters() -> dict[str, Adapter]:
    found: dict[str, Adapter] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        same = getattr(module, "SAME", {})
        for name, answer in getattr(module, "ADAPTERS", {}).items():
            found[name] = Adapter(answer, same.get(name, equal))
    return found


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        items = {key: _stripped(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None and item != {} and item != []}
    if isinstance(value, list | tuple):
        return [_stripped(item) for item in value]
    return value
