"""Names: how a federated object, an imported slice or a derived service is named after its source.

Stored in clusters and computed by other programs too, so the rules are fixed to the byte.
"""

import re
from typing import Final

from argosy.kube.hashing import fnv1_32

__all__ = [
    "derived_service_name",
    "federated_name",
    "imported_slice_name",
    "limit",
    "source_cluster_label_value",
]

NAME_LIMIT: Final = 253
LABEL_LIMIT: Final = 63

_ILLEGAL: Final = re.compile(rb"[^a-z0-9.-]")
_DOTS: Final = re.compile(rb"\.\.+")
#: Names that stay as they are: nearly all.
_PLAIN: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*")


def federated_name(source_name: str, type_config_name: str) -> str:
    """The name of the federated object of a source of that type."""
    name = f"{source_name}-{type_config_name}"
    if len(name) <= NAME_LIMIT and name.isascii() and _PLAIN.fullmatch(source_name):
        return name
    original = source_name.encode()
    transformed = _DOTS.sub(b".", _ILLEGAL.sub(b".", original.lower()))
    name = f"{transformed.decode()}-{type_config_name}"
    if transformed != original:
        name = f"{name}-{fnv1_32(original)}"
    return limit(name, NAME_LIMIT)


def imported_slice_name(cluster: str, slice_name: str) -> str:
    return limit(f"imported-{cluster}-{slice_name}", NAME_LIMIT)


def derived_service_name(service: str) -> str:
    """The federated object that carries the service derived from a ServiceImport."""
    return limit(f"derived-{service}-services", NAME_LIMIT)


def source_cluster_label_value(cluster: str) -> str:
    return limit(cluster, LABEL_LIMIT)


def limit(name: str, length: int) -> str:
    """The name, or as much of it as leaves room for a hash of the whole."""
    encoded = name.encode()
    if len(encoded) <= length:
        return name
    suffix = f"-{fnv1_32(encoded)}"
    return encoded[: length - len(suffix)].decode(errors="ignore") + suffix
