"""What drift costs: the work grows with the copy, whatever it is. Whoever may edit it in one member must not stop everything."""

from typing import Any

import pytest

from argosy.api.federated import DriftedField
from argosy.plan.copies.drift import Since, drift_of, keeping
from tests.harness.growth import assert_linear

NOW = "2024-01-01T00:00:00Z"
MINE: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "1"}}
PART = (DriftedField("data", NOW, "theirs", {"a": "1"}, left=True),)
SINCE = {
    "nothing else changed": Since(unchanged=True, reports=True),
    "something else changed": Since(reports=True, left=PART),
}


def wide(size: int) -> dict[str, Any]:
    return {**MINE, "data": {f"k{number}": "v" for number in range(size)}}


def deep(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"d": leaf}
    return leaf


@pytest.mark.parametrize("since", SINCE)
def test_keeping_what_somebody_added(since):
    assert_linear(lambda found: keeping(MINE, found, MINE, SINCE[since]), wide, 2_000)


def test_telling_what_differs_deep_inside():
    def make(levels: int) -> tuple[Any, Any]:
        mine, theirs = ({f"k{number}": sign * number for number in range(50 * levels)} for sign in (1, -1))
        return {**MINE, "data": deep(levels, mine)}, {**MINE, "data": deep(levels, theirs)}

    assert_linear(lambda pair: drift_of(*pair, secret=False, left=False), make, 50)
