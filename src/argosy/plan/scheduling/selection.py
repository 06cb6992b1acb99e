"""Cluster selection: cluster selector terms matched against clusters.

Shared by propagation policies (which clusters may run an object) and override policies (which clusters a rule is for).
An invalid term raises SelectionError; the caller decides what follows.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from argosy.api.policies import ClusterSelectorRequirement, ClusterSelectorTerm
from argosy.kube.names import qualified_name_errors
from argosy.kube.selectors import (
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_IN,
    LabelSelector,
    Requirement,
    SelectorError,
    from_match,
    integer,
)

__all__ = ["SelectionError", "check", "expressions_match", "term_matches", "terms_match"]

_COMPARISONS: Final = {"Gt": GREATER_THAN, "Lt": LESS_THAN}
_FIELD_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN}
_NAME_FIELD: Final = "metadata.name"
#: Largest number of requirements and values of a selector that is cached.
_REMEMBERED: Final = 256


class SelectionError(ValueError):
    """A selector term that cannot be evaluated; the message says what is wrong with it."""


def terms_match(terms: Iterable[ClusterSelectorTerm], name: str, labels: Mapping[str, str]) -> bool:
    """Whether any term matches. Terms are evaluated in order: an invalid one raises unless an earlier one matched."""
    return any(term_matches(term, name, labels) for term in terms)


def check(terms: Iterable[ClusterSelectorTerm]) -> None:
    """Raises SelectionError if a term is invalid, whichever clusters there are."""
    for term in terms:
        _label_selector(term.match_expressions)
        for requirement in term.match_fields:
            _field_matches(requirement, "")


def term_matches(term: ClusterSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Labels and fields must both match if both are given; a term with neither matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    return expressions_match(term, labels) and all(
        _field_matches(requirement, name) for requirement in term.match_fields
    )


def expressions_match(term: ClusterSelectorTerm, labels: Mapping[str, str]) -> bool:
    """The term's label expressions alone; without any, everything matches."""
    return _label_selector(term.match_expressions).matches(labels)


def _label_selector(requirements: tuple[ClusterSelectorRequirement, ...]) -> LabelSelector:
    short = len(requirements) + sum(len(requirement.values) for requirement in requirements) <= _REMEMBERED
    return _remembered(requirements) if short else _last_long(requirements)


def _parsed(requirements: tuple[ClusterSelectorRequirement, ...]) -> LabelSelector:
    return LabelSelector(tuple(_label_requirement(requirement) for requirement in requirements))


_remembered = lru_cache(maxsize=1024)(_parsed)
#: One policy is matched against all clusters in a row.
_last_long = lru_cache(maxsize=1)(_parsed)


def _label_requirement(requirement: ClusterSelectorRequirement) -> Requirement:
    comparison = _COMPARISONS.get(requirement.operator)
    if comparison is None:
        try:
            return from_match(None, [msgspec.structs.asdict(requirement)]).requirements[0]
        except SelectorError as error:
            raise SelectionError(str(error)) from None
    if messages := qualified_name_errors(requirement.key):
        raise SelectionError(f"key {requirement.key!r}: {'; '.join(messages)}")
    if len(requirement.values) != 1 or integer(requirement.values[0]) is None:
        raise SelectionError(f"{requirement.operator} needs exactly one integer, not {list(requirement.values)}")
    return Requirement(requirement.key, comparison, requirement.values)


def _field_matches(requirement: ClusterSelectorRequirement, name: str) -> bool:
    operator = _FIELD_OPERATORS.get(requirement.operator)
    if operator is None:
        raise SelectionError(f"{requirement.operator!r} is not a valid field selector operator")
    if len(requirement.values) != 1:
        raise SelectionError(
            f"{requirement.operator} on a field needs exactly one value, not {list(requirement.values)}"
        )
    # A missing field counts as empty, whereas a missing label is absent.
    fields = {requirement.key: name if requirement.key == _NAME_FIELD else ""}
    return Requirement(requirement.key, operator, requirement.values).matches(fields)
