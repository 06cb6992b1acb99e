"""Patches that replace a whole list."""

from collections.abc import Mapping
from typing import Any

from argosy.plan.copies.placement import Patches

__all__ = ["replaced"]


def replaced(lists: Mapping[str, list[Any]]) -> Patches:
    """One patch for each list, by path. An empty list is null, and so no value: an API server drops a null value when it
    stores the patch, and absent means null."""
    return [
        {"op": "replace", "path": path, "value": lists[path]} if lists[path] else {"op": "replace", "path": path}
        for path in sorted(lists)
    ]
