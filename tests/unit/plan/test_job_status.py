"""The status of a Job that runs in several clusters, and what Kubernetes accepts as one."""

from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from argosy.server.kinds.batch.job_status import validate

JOB: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": {}}


def merged(before: dict[str, Any], **members: dict[str, Any] | None) -> dict[str, Any]:
    observations = [Observation(name, {"status": status} if status else None) for name, status in members.items()]
    source = {**JOB, "status": before}
    status = kind_of(source).aggregate(Aggregation(source, observations, True, "2026-01-01T00:00:09Z"))
    assert status is not None
    return status


def running(start: str = "2026-01-01T00:00:01Z", **counts: int) -> dict[str, Any]:
    return {"startTime": start, **counts}


def ended(kind: str, **counts: int) -> dict[str, Any]:
    announced = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    conditions = [{"type": each, "status": "True", "reason": "R", "message": ""} for each in (announced, kind)]
    completion = {"completionTime": f"2026-01-01T00:00:0{counts.get('succeeded', 5)}Z"} if kind == "Complete" else {}
    return {**running(), **counts, **completion, "conditions": conditions}


def types(status: dict[str, Any]) -> set[str]:
    return {each["type"] for each in status.get("conditions", ())}


def test_it_runs_until_it_has_ended_everywhere() -> None:
    status = merged({}, a=ended("Complete", succeeded=3), b=running(active=2, ready=1))
    assert status == {"startTime": "2026-01-01T00:00:01Z", "succeeded": 3, "active": 2, "ready": 1}


def test_it_is_complete_at_the_time_of_the_last_and_kubernetes_accepts_it() -> None:
    before = merged({}, a=running(active=1), b=running(active=1))
    status = merged(before, a=ended("Complete", succeeded=3), b=ended("Complete", succeeded=4))
    assert (status["succeeded"], status["completionTime"]) == (7, "2026-01-01T00:00:04Z")
    assert types(status) == {"Complete", "SuccessCriteriaMet"}
    assert not validate({**JOB, "status": status}, {**JOB, "status": before})
    assert merged(status, a=ended("Complete", succeeded=3), b=ended("Complete", succeeded=4)) == status


def test_one_that_failed_somewhere_has_failed() -> None:
    status = merged({}, a=ended("Complete", succeeded=3), b=ended("Failed", failed=1))
    assert types(status) == {"Failed", "FailureTarget"}
    assert "completionTime" not in status
    assert not validate({**JOB, "status": status}, {**JOB, "status": {}})


def test_a_cluster_that_has_not_got_it_yet_keeps_it_from_having_ended() -> None:
    assert types(merged({}, a=ended("Complete", succeeded=3), b=None)) == set()


def test_its_start_is_told_once_all_have_begun_and_never_moves() -> None:
    early, late = "2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z"
    assert "startTime" not in merged({}, a=running(late, active=1), b={"active": 1})
    before = merged({}, a=running(late, active=1), b=running(early, active=1))
    assert before["startTime"] == early
    assert merged(before, a=running(late, active=1))["startTime"] == early


def test_what_succeeded_in_a_cluster_that_left_stays_counted() -> None:
    before = merged({}, a=running(succeeded=2), b=running(succeeded=1, active=1))
    after = merged(before, b=running(succeeded=1, active=1))
    assert after["succeeded"] == 3
    assert not validate({**JOB, "status": after}, {**JOB, "status": before})


# Divided.


def divided(before: dict[str, Any], completed: str = "", **members: dict[str, Any] | None) -> dict[str, Any]:
    """The status of a Job of 12 completions, 4 of them for each cluster."""
    patches = [{"path": "/spec/completions", "value": 4}]
    shares = [{"cluster": name, "patches": patches} for name in members]
    federated = {
        "metadata": {"name": "one", "annotations": {keys.COMPLETED: completed} if completed else {}},
        "spec": {"overrides": [{"controller": keys.GLOBAL_SCHEDULER, "clusters": shares}]},
    }
    observations = [
        Observation(name, {"status": status} if status else None, reachable=bool(status), known=bool(status))
        for name, status in members.items()
    ]
    source = {**JOB, "spec": {"completions": 12}, "status": before}
    now, stored = "2026-01-01T00:00:09Z", msgspec.convert(federated, FederatedObject)
    status = kind_of(source).aggregate(Aggregation(source, observations, True, now, stored))
    assert status is not None
    return status


def test_a_divided_job_is_complete_when_all_completions_have_succeeded() -> None:
    done = ended("Complete", succeeded=4)
    assert types(divided({}, a=done, b=done, c=done)) == {"Complete", "SuccessCriteriaMet"}
    open_work = divided({}, a=done, b=done)
    assert types(open_work) == set()
    assert open_work["succeeded"] == 8
    assert "completionTime" not in open_work


def test_what_was_done_in_a_cluster_it_left_counts_once() -> None:
    done = ended("Complete", succeeded=4)
    before = divided({}, a=done, b=done, c=running(succeeded=3, active=1))
    assert before["succeeded"] == 11
    leaving = divided(before, '{"leaving":{"c":{"share":4,"done":3}}}', a=done, b=done)
    assert (leaving["succeeded"], types(leaving)) == (11, set())
    rest = divided(leaving, '{"total":3}', a=done, b=done, d=running(active=1))
    assert (rest["succeeded"], types(rest)) == (11, set())
    complete = divided(rest, '{"total":3}', a=done, b=done, d=ended("Complete", succeeded=1))
    assert complete["succeeded"] == 12
    assert types(complete) == {"Complete", "SuccessCriteriaMet"}
    stored, written = {"spec": {"completions": 12}, "status": rest}, {"spec": {"completions": 12}, "status": complete}
    assert not validate({**JOB, **written}, {**JOB, **stored})


def test_it_is_complete_without_the_cluster_it_left_if_all_was_done_there() -> None:
    done = ended("Complete", succeeded=4)
    assert "Complete" in types(divided({}, '{"total":4}', a=done, b=done))


def test_a_member_of_which_nothing_is_known_keeps_it_from_being_complete() -> None:
    done = ended("Complete", succeeded=6)
    assert types(divided({}, a=done, b=done, c=None)) == {"MembersUnreachable"}


def test_an_end_that_was_told_is_not_taken_back() -> None:
    done = ended("Complete", succeeded=4)
    failed = divided({}, a=done, b=done, c=ended("Failed", succeeded=2, failed=1))
    assert types(failed) == {"Failed", "FailureTarget"}
    # The cluster where it failed is left, and so no member tells of it any more.
    after = divided(failed, '{"total":2}', a=done, b=done)
    assert after == failed


def test_a_duplicated_job_is_complete_when_it_is_everywhere() -> None:
    source = {**JOB, "spec": {"completions": 12}}
    stored = msgspec.convert({"metadata": {"name": "one"}}, FederatedObject)
    observations = [Observation(name, {"status": ended("Complete", succeeded=4)}) for name in "ab"]
    status = kind_of(source).aggregate(Aggregation(source, observations, True, "2026-01-01T00:00:09Z", stored))
    assert status is not None
    assert "Complete" in types(status)
