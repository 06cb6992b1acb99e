"""Cause: why pods are not ready, as text for people. What the cause is, is decided in `plan.status.cause`."""

from collections.abc import Mapping
from typing import Final

from argosy.api.federated import Cause

__all__ = ["cause_text", "causes_text"]

#: Clusters named in one condition.
_MOST_CLUSTERS: Final = 5


def cause_text(cause: Cause) -> str:
    count = f"{cause.pods} of {cause.of} pods" if cause.of else f"{cause.pods} pod{'s' if cause.pods != 1 else ''}"
    return f"{count}: {cause.reason}" + (f": {cause.message}" if cause.message else "")


def causes_text(causes: Mapping[str, Cause]) -> str:
    """For a condition: cluster by cluster."""
    told = [f"{name}: {cause_text(causes[name])}" for name in sorted(causes)[:_MOST_CLUSTERS]]
    more = len(causes) - len(told)
    return "; ".join([*told, *([f"and in {more} more clusters"] if more else [])])
