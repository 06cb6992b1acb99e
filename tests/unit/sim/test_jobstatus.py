"""How a Job's pods are counted: each once, whatever the order in which they end, are noted and are let go."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from argosy.sim import jobstatus
from argosy.sim.pods import Pod, Shape

_SHAPE = Shape((), {"containers": []})


def pod(number: int, phase: str = "Running", *, tracked: bool = True, deleting: bool = False) -> Pod:
    made = Pod(f"core/pods/n/{number}", "n", str(number), f"uid-{number}", _SHAPE)
    made.phase, made.tracked, made.deleted_at = phase, tracked, float(deleting)
    return made


@given(st.sets(st.integers(0, 200)))
def test_ranges_are_read_as_they_are_written(indexes: set[int]) -> None:
    assert jobstatus.parsed(jobstatus.ranges(sorted(indexes))) == sorted(indexes)


def test_ranges_are_short() -> None:
    assert jobstatus.ranges([0, 2, 3, 4, 7]) == "0,2-4,7"


@given(
    phases=st.lists(st.sampled_from(["Succeeded", "Failed"]), min_size=1, max_size=8),
    data=st.data(),
)
def test_every_pod_is_counted_once(phases: list[str], data: st.DataObject) -> None:
    pods = [pod(number, "Running") for number in range(len(phases))]
    status: dict[str, Any] = {}
    for _ in range(40):
        number = data.draw(st.integers(0, len(pods) - 1))
        pods[number].phase = phases[number]
        to_go = jobstatus.note(status, pods, {})
        # Some are let go before the next look, and some of those are even removed.
        for one in to_go[: data.draw(st.integers(0, len(to_go)))]:
            one.tracked = False
        total = jobstatus.succeeded(status) + jobstatus.failed(status)
        assert total == sum(one.phase != "Running" for one in pods)
    for one, phase in zip(pods, phases, strict=True):
        one.phase = phase
    for one in jobstatus.note(status, pods, {}):
        one.tracked = False
    assert jobstatus.note(status, [], {}) == []
    assert status["uncountedTerminatedPods"] == {}
    assert status.get("succeeded", 0) == phases.count("Succeeded")
    assert status.get("failed", 0) == phases.count("Failed")


def test_a_deleted_pod_that_had_not_ended_counts_as_failed() -> None:
    status: dict[str, Any] = {}
    assert [one.name for one in jobstatus.note(status, [pod(1, deleting=True), pod(2)], {})] == ["1"]
    assert status == {"uncountedTerminatedPods": {"failed": ["uid-1"]}}
    assert (jobstatus.succeeded(status), jobstatus.failed(status)) == (0, 1)


def test_an_index_is_done_once_however_often_it_succeeds() -> None:
    status: dict[str, Any] = {}
    pods = [pod(1, "Succeeded"), pod(2, "Succeeded"), pod(3, "Failed")]
    jobstatus.note(status, pods, {"uid-1": 0, "uid-2": 0, "uid-3": 1})
    assert status["completedIndexes"] == "0"
    assert jobstatus.succeeded(status) == 1
    assert status["uncountedTerminatedPods"] == {"failed": ["uid-3"]}


def test_the_end_says_what_was_headed_for() -> None:
    status: dict[str, Any] = {
        "conditions": [{"type": "FailureTarget", "status": "True", "reason": "R", "message": "m"}]
    }
    assert not jobstatus.finished(status)
    assert jobstatus.conclude(status, "now") == ("R", "m")
    assert jobstatus.finished(status)
    assert "completionTime" not in status
