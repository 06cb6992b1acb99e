"""Filling in what an object leaves out."""

from typing import Any

from argosy.server.registry import Object

__all__ = ["fill"]


def fill(values: Object, field: str, default: Any) -> None:
    """Default one field; null is absent to Kubernetes."""
    if values.get(field) is None:
        values[field] = default
