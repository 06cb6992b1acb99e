"""Node selectors: which nodes a pod requires, by nodeSelector and required node affinity. Preferences are ignored."""

from collections.abc import Mapping
from typing import Any

from argosy.kube.selectors import from_expressions, from_map

__all__ = ["matches_node"]


def matches_node(spec: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    if not from_map(spec.get("nodeSelector")).matches(labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    # Terms are alternatives, and an empty term selects nothing.
    return any(_term(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def _term(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return from_expressions(expressions).matches(labels) and from_expressions(fields).matches({"metadata.name": name})
