"""Tolerations a pod takes over from its runtime class: none twice, none that another covers."""

from typing import Any

import pytest

from argosy.server.admission.runtime_classes import merged_tolerations

ALL = {"operator": "Exists"}
KEY = {"key": "a", "operator": "Exists"}
VALUE = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
SHORT = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
LONG = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 50}
OTHER = {"key": "c", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([VALUE, VALUE], [VALUE]),
        ([VALUE, KEY], [KEY]),
        ([KEY, VALUE], [KEY]),
        ([VALUE, OTHER, ALL], [ALL]),
        ([SHORT, LONG], [LONG]),
        ([LONG, SHORT], [LONG]),
        ([VALUE, OTHER], [VALUE, OTHER]),
        ([VALUE, {**VALUE, "value": "z"}], [VALUE, {**VALUE, "value": "z"}]),
        ([], []),
    ],
)
def test_covered_tolerations_go(given: list[dict[str, Any]], kept: list[dict[str, Any]]) -> None:
    assert merged_tolerations(given) == kept
