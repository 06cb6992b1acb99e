"""Namespaces: propagated to every cluster without a policy, unless they opt out.

Those that are already there are adopted, and adopted ones are never deleted.
"""

import re
from collections.abc import Mapping
from typing import Final

from argosy.api import keys

__all__ = ["ANNOTATIONS", "propagates"]

#: What makes dispatch adopt existing namespaces and leave adopted ones behind.
ANNOTATIONS: Final[Mapping[str, str]] = {
    keys.INTERNAL_CONFLICT_RESOLUTION: keys.ADOPT,
    keys.INTERNAL_CLUSTERS_TO_ADOPT: '{"regexp":".*"}',
    keys.INTERNAL_ORPHAN: keys.ORPHAN_ADOPTED,
}


def propagates(name: str, annotations: Mapping[str, str], exclude: re.Pattern[str] | None = None) -> bool:
    """Whether a namespace goes everywhere; `annotations` are the source's own."""
    if name.startswith("kube-") or name in keys.PROTECTED_NAMESPACES:
        return False
    if exclude is not None and exclude.search(name):
        return False
    return annotations.get(keys.NO_AUTO_PROPAGATION) != "true"
