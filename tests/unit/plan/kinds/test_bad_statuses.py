"""What one member makes up costs its own part of the status only: it is found out, or left aside."""

from typing import Any

import pytest

from argosy.plan.fields import Json
from argosy.plan.kinds.observation import Observation
from argosy.plan.kinds.unmergeable import Unmergeable
from argosy.plan.status import aggregate
from argosy.plan.status.aggregate import source_status
from argosy.plan.status.misfit import misfit
from tests.unit.plan.test_misfit import CONFIGS
from tests.unit.plan.worlds import World

NOW = "2026-01-01T00:00:00Z"
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "generation": 1}}
ROLLOUT = {**WIDGET, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
GOOD = {"ready": 2, "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": ""}]}


def told(source: Json, **statuses: Json) -> Json | None:
    world = World()
    world.run()
    observations = [Observation(name, {"status": status}) for name, status in statuses.items()]
    return source_status(source, world.typed, observations, NOW)


@pytest.mark.parametrize(
    ("config", "status", "why"),
    [
        ("services", {"loadBalancer": {"ingress": [{"ip": "not an ip"}]}}, "'not an ip' is no ip"),
        ("services", {"loadBalancer": {"ingress": [{"ip": "2001:db8::1"}, {"hostname": "a.example"}]}}, ""),
        ("ingresses.networking.k8s.io", {"loadBalancer": {"ingress": [{"hostname": "a b"}]}}, "'a b' is no hostname"),
        ("statefulsets.apps", {"replicas": 1, "readyReplicas": 100}, ".status.readyReplicas: more than 1 replicas"),
        ("statefulsets.apps", {"replicas": 100, "readyReplicas": 1}, ""),
        ("poddisruptionbudgets.policy", {"currentHealthy": -9}, ".status.currentHealthy: -9 is negative"),
        ("statefulsets.apps", {"conditions": [{"type": "a b", "status": "True"}]}, "'a b' is no type of a condition"),
        ("statefulsets.apps", {"conditions": [{"type": "Ready", "status": "x"}]}, "Ready is 'x'"),
        ("statefulsets.apps", {"conditions": [{"type": "Ready", "status": "True"}]}, ""),
        ("poddisruptionbudgets.policy", {"conditions": [{"type": "A", "status": "True"}]}, "A has no reason"),
    ],
)
def test_what_a_server_refuses_is_found_in_the_copy(config: str, status: Json, why: str) -> None:
    assert misfit(CONFIGS[config], {"status": status}).endswith(why)
    assert bool(misfit(CONFIGS[config], {"status": status})) == bool(why)


@pytest.mark.parametrize("conditions", [{"Ready": "True"}, ["Ready"], "Ready", [[]], [{"type": []}]])
def test_conditions_of_another_shape_are_none(conditions: Any) -> None:
    """Of one member, whose status is shown as it is, and of one among several."""
    strange = {"ready": 1, "conditions": conditions}
    assert told(WIDGET, m1=strange) == strange
    assert told({**WIDGET, "status": strange}, m1=strange) is None
    assert told(WIDGET, m1=strange, m2={**strange, "ready": 4}) == {"ready": 5}
    status = told(WIDGET, m1=strange, m2=GOOD)
    assert status is not None
    assert status["ready"] == 3
    assert [each["type"] for each in status["conditions"]] == ["Ready"]


def test_a_phase_that_is_no_text_is_none() -> None:
    for phase in (5, ["Healthy"], {}):
        status = told(ROLLOUT, m1={"phase": phase}, m2={"phase": "Degraded", "message": "why"})
        assert status is not None
        assert (status["phase"], status["message"]) == ("Degraded", "m2: why")
        assert told(ROLLOUT, m1={"phase": phase, "replicas": 1}) == {"replicas": 1}


def test_whose_status_alone_cannot_be_merged_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "up_to_date", lambda source, federated: True)
    with pytest.raises(Unmergeable) as raised:
        told(WIDGET, m1=GOOD, m2={"observedGeneration": "abc"})
    assert list(raised.value.clusters) == ["m2"]
