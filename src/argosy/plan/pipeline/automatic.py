"""Automatic: which namespaces go to every cluster without a policy."""

import re
from collections.abc import Mapping

from argosy.api import keys

__all__ = ["propagates"]


def propagates(name: str, annotations: Mapping[str, str], exclude: re.Pattern[str] | None = None) -> bool:
    """Whether a namespace goes everywhere; `annotations` are the source's own."""
    if name.startswith("kube-") or name in keys.PROTECTED_NAMESPACES:
        return False
    if exclude is not None and exclude.search(name):
        return False
    return annotations.get(keys.NO_AUTO_PROPAGATION) != "true"
