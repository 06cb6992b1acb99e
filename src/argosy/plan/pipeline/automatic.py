"""Automatic: which namespaces go to every cluster without a policy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from argosy.api import keys

if TYPE_CHECKING:
    from argosy.kube.regexp import Pattern

__all__ = ["propagates"]


def propagates(name: str, annotations: Mapping[str, str], exclude: "Pattern | None" = None) -> bool:
    """Whether a namespace goes everywhere; `annotations` are the source's own."""
    if name.startswith("kube-") or name in keys.PROTECTED_NAMESPACES:
        return False
    if exclude is not None and exclude.matches(name):
        return False
    return annotations.get(keys.NO_AUTO_PROPAGATION) != "true"
