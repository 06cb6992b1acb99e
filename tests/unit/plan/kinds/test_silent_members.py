"""What no member reports is not claimed any more, and what only some report is not claimed of all."""

from typing import Any

import pytest

from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from tests.harness.statuses import EARLY, KINDS, LATE
from tests.unit.plan.kinds.test_merging import NAMES, observed, source_of

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "generation": 1}}
CERTIFICATE = {**WIDGET, "apiVersion": "cert-manager.io/v1", "kind": "Certificate"}
ROLLOUT = {**WIDGET, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
VOLCANO = {**WIDGET, "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
READY = {"type": "Ready", "status": "True", "reason": "R", "message": "fine", "lastTransitionTime": EARLY}

NOWHERE: list[Observation] = []
REFUSED = [observed("m2", None)]


def merged(source: Json, observations: list[Observation], now: str = LATE) -> Json | None:
    return kind_of(source).aggregate(Aggregation(source, observations, True, now))


def counts(status: Json) -> dict[str, int]:
    numbers = {k: v for k, v in status.items() if isinstance(v, int) and not isinstance(v, bool)}
    return {k: v for k, v in numbers.items() if k not in ("observedGeneration", "collisionCount")}


@pytest.mark.parametrize("observations", [NOWHERE, REFUSED])
@pytest.mark.parametrize("kind", NAMES)
def test_nothing_is_left_of_what_there_was_when_no_member_reports_any(
    kind: str, observations: list[Observation]
) -> None:
    source = source_of(kind, KINDS[kind].merged)
    status = merged(source, observations)
    assert status is not None
    assert not any(counts(status).values())
    assert all(each["status"] == "Unknown" for each in status.get("conditions", ()))
    assert status.get("phase", "Pending") == "Pending"
    assert (merged({**source, "status": status}, observations, "2027-01-01T00:00:00Z") or {}) == status


def test_a_job_that_is_not_complete_does_not_become_so_where_it_is_nowhere() -> None:
    job = {**WIDGET, "apiVersion": "batch/v1", "kind": "Job", "status": {"active": 3, "startTime": EARLY}}
    for observations in (NOWHERE, REFUSED):
        assert merged(job, observations) == {"startTime": EARLY}


@pytest.mark.parametrize("observations", [NOWHERE, REFUSED])
@pytest.mark.parametrize("source", [WIDGET, CERTIFICATE])
def test_a_kind_of_any_controller_is_ready_nowhere(source: Json, observations: list[Observation]) -> None:
    stored = {"readyReplicas": 3, "observedGeneration": 1, "url": "x", "conditions": [READY]}
    status = merged({**source, "status": stored}, observations)
    assert status is not None
    assert counts(status) == {"readyReplicas": 0}
    assert "url" not in status
    ready = find(status["conditions"], "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"], ready["lastTransitionTime"]) == ("Unknown", "NotReported", LATE)
    assert merged({**source, "status": status}, observations, "2027-01-01T00:00:00Z") == status


def test_a_status_that_the_control_plane_gives_by_itself_stays() -> None:
    source = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}, "status": {"phase": "Active"}}
    assert merged(source, REFUSED) is None
    assert merged(WIDGET, REFUSED) is None


def test_a_new_pod_is_not_written_before_anybody_reports_it() -> None:
    status = {"phase": "Pending", "qosClass": "BestEffort"}
    assert merged(source_of("Pod", status), REFUSED) == status


@pytest.mark.parametrize(
    ("source", "of_one", "phase"),
    [
        (VOLCANO, {"state": {"phase": "Completed"}}, None),
        (VOLCANO, {"state": {"phase": "Failed"}}, "Failed"),
        (ROLLOUT, {"phase": "Healthy"}, None),
        (ROLLOUT, {"phase": "Degraded"}, "Degraded"),
        (source_of("PersistentVolumeClaim"), {"phase": "Bound"}, "Pending"),
        (source_of("PersistentVolume"), {"phase": "Available"}, "Pending"),
        (source_of("PersistentVolume"), {"phase": "Failed"}, "Failed"),
    ],
)
def test_the_best_phase_is_not_shown_until_all_clusters_report_it(source: Json, of_one: Json, phase: str) -> None:
    status: Any = merged(source, [observed("m1", of_one), observed("m2", None)])
    assert (status.get("state") or status).get("phase") == phase


def test_a_cronjob_has_succeeded_everywhere_only_if_all_clusters_say_so() -> None:
    done = {"lastSuccessfulTime": EARLY}
    source = source_of("CronJob")
    assert merged(source, [observed("m1", done), observed("m2", done)]) == done
    assert merged(source, [observed("m1", done), observed("m2", None)]) == {}
