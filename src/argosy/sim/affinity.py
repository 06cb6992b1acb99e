"""Node selectors: which nodes a pod asks for, by nodeSelector and required node affinity. Preferences are left aside."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["matches_node"]


def matches_node(spec: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    wanted = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    # Terms are alternatives, and one that asks for nothing selects nothing.
    return any(_term(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def _term(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    expressions: Sequence[Mapping[str, Any]] = term.get("matchExpressions") or ()
    fields: Sequence[Mapping[str, Any]] = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    own = {"metadata.name": name}
    return all(_holds(one, labels) for one in expressions) and all(_holds(one, own) for one in fields)


def _holds(requirement: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    value = values.get(requirement.get("key", ""))
    listed: Sequence[str] = requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _number(value) > _number(listed[0]) if _numeric(value, listed) else False
        case "Lt":
            return _number(value) < _number(listed[0]) if _numeric(value, listed) else False
    return False


def _numeric(value: str | None, listed: Sequence[str]) -> bool:
    texts = (value or "", *listed)
    return len(listed) == 1 and all(
        text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() for text in texts
    )


def _number(text: str | None) -> int:
    return int(text or 0)
