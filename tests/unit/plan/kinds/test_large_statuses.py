"""A member may report as much as a server stores: what is merged of it takes time in proportion."""

import pytest

from argosy.plan.kinds import folding
from argosy.plan.kinds.conditions import settled
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.stock import autoscaler


def test_each_metric_of_a_member_is_looked_at_a_fixed_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    identity = autoscaler._identity

    def counted(metric: dict[str, object]) -> bytes:
        nonlocal asked
        asked += 1
        return identity(metric)

    monkeypatch.setattr(autoscaler, "_identity", counted)
    metrics = [
        {"type": "Pods", "pods": {"metric": {"name": f"n{at}"}, "current": {"averageValue": "1"}}} for at in range(50)
    ]
    observations = [Observation(name, {"status": {"currentMetrics": metrics}}) for name in ("m1", "m2")]
    source = {"metadata": {"generation": 1}}
    status = autoscaler.KIND.aggregate(Aggregation(source, observations, True, "now"))
    assert status is not None
    assert len(status["currentMetrics"]) == 50
    assert asked <= 4 * 50


class _Counted(str):
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)


def test_conditions_are_found_by_type_without_comparing_all_with_all() -> None:
    before = [{"type": _Counted(f"T{at}"), "status": "True"} for at in range(100)]
    wanted = folding.folded([("m1", [{"type": f"T{at}", "status": "True"} for at in range(100)])])
    assert len(settled(wanted, before, "now")) == 100
    assert _Counted.compared < 1000
