"""Conditions of kinds that require a lastUpdateTime have one, and of other kinds none."""

from typing import Any

import pytest

from argosy.plan.fields import Json
from argosy.plan.kinds.conditions import concluded
from argosy.plan.kinds.lack import About, Lack
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from tests.harness.statuses import EARLY, LATE
from tests.unit.plan.kinds.test_merging import observed

ROLLOUT = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "x", "generation": 1}}
WIDGET = {**ROLLOUT, "apiVersion": "example.com/v1", "kind": "Widget"}
#: What the CRD of Rollouts requires.
REQUIRED = {"type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime"}


def status(timed: bool, ready: str = "True") -> Json:
    times = {"lastTransitionTime": EARLY} | ({"lastUpdateTime": EARLY} if timed else {})
    return {"conditions": [{"type": "Ready", "status": ready, "reason": "R", "message": "", **times}]}


def told(source: Json, observations: list[Observation], now: str = LATE) -> Json:
    lacking = [Lack("m2 is not ready", About.CLUSTER, "m2")]
    aggregation = Aggregation(source, observations, True, now, lacking=lacking)
    status = kind_of(source).aggregate(aggregation)
    assert status is not None
    return concluded(status, aggregation, has_pods=False, update_time=False)


@pytest.mark.parametrize("source", [ROLLOUT, WIDGET])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(
    "of_second", [{}, {"reachable": False}, {"reachable": False, "known": False, "object": None}, {"object": None}]
)
def test_all_conditions_have_what_their_kind_requires(source: Json, timed: bool, of_second: Any) -> None:
    second = observed("m2", status(timed, "False"))
    fields = {"object": second.object, **of_second}
    observations = [observed("m1", status(timed)), Observation("m2", **fields)]
    found = told({**source, "status": status(timed)}, observations)
    assert found["conditions"]
    for each in found["conditions"]:
        assert set(each) == (REQUIRED if timed else REQUIRED - {"lastUpdateTime"})
    assert told({**source, "status": found}, observations, "2027-01-01T00:00:00Z") == found


def test_a_mark_beside_the_conditions_of_the_only_member_has_one() -> None:
    found = told(WIDGET, [observed("m1", status(timed=True), reachable=False)])
    assert [set(each) for each in found["conditions"]] == [REQUIRED, REQUIRED]
