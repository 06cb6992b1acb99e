"""Why pods of a copy are not ready: the reason of most of them, in words that stay the same while it lasts."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.federated import Cause
from argosy.fleet.pods.troubles import Trouble
from argosy.plan.fields import Json
from argosy.plan.kinds.cause import cause_text, causes_text
from argosy.plan.status.cause import cause_of, counted, lacks_pods, refusal_text, steady
from tests.unit.plan.worlds import DEPLOYMENTS, TYPE_CONFIGS

STATEFULSETS, DAEMONSETS, JOBS = (TYPE_CONFIGS[name] for name in ("statefulsets.apps", "daemonsets.apps", "jobs.batch"))
PULL = Trouble("ImagePullBackOff", 'image "nginx:bad"')
CPU = Trouble("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu")
QUOTA = "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2"


def copy(wanted: int, existing: int, **status: Any) -> Json:
    return {"spec": {"replicas": wanted}, "status": {"replicas": existing, **status}}


def test_the_reason_most_pods_have_is_told_with_how_many_of_how_many():
    found = cause_of(copy(5, 5), DEPLOYMENTS, [PULL, CPU, PULL], "", None)
    assert found == Cause("ImagePullBackOff", 'image "nginx:bad"', 2, 5)
    assert cause_text(found) == '2 of 5 pods: ImagePullBackOff: image "nginx:bad"'


def test_nothing_is_told_of_a_copy_whose_pods_have_no_trouble():
    assert cause_of(copy(3, 3), DEPLOYMENTS, [], "", None) is None


def test_pods_that_a_deployment_could_not_create_count_by_what_is_missing():
    failing = {"type": "ReplicaFailure", "status": "True", "message": f'pods "web-7d9f-x2" is forbidden: {QUOTA}'}
    found = cause_of(copy(5, 2, conditions=[failing]), DEPLOYMENTS, [PULL, PULL], "", None)
    assert found == Cause("FailedCreate", QUOTA, 3, 5)
    fewer = cause_of(copy(5, 4, conditions=[failing]), DEPLOYMENTS, [PULL, PULL], "", None)
    assert fewer is not None
    assert fewer.reason == "ImagePullBackOff"


NOW = datetime.datetime(2026, 1, 1, 0, 1, tzinfo=datetime.UTC)


def since(second: int) -> Trouble:
    return Trouble(
        "ContainersNotReady", "containers with unready status: [main]", since=f"2026-01-01T00:00:{second:02}Z"
    )


def test_what_has_not_lasted_yet_is_told_later():
    assert counted([PULL, since(10), since(40), since(50)], NOW, 30.0, None) == ([PULL, since(10)], 10.0)
    assert counted([since(30)], NOW, 30.0, None) == ([since(30)], None)


def test_what_was_told_stays_told_while_pods_fail_anew():
    told = Cause("ContainersNotReady", "containers with unready status: [main]", 1, 2)
    assert counted([since(59)], NOW, 30.0, told) == ([since(59)], None)


def test_a_member_whose_clock_is_ahead_is_looked_at_again_before_long():
    _, soon = counted([Trouble("ContainersNotReady", since="2026-01-02T00:00:00Z")], NOW, 30.0, None)
    assert soon == 30.0


def test_a_refusal_counts_only_while_pods_are_missing():
    refused = f'Error creating: pods "db-1" is forbidden: {QUOTA}'
    assert cause_of(copy(3, 1), STATEFULSETS, [], refused, None) == Cause("FailedCreate", QUOTA, 2, 3)
    assert cause_of(copy(3, 3), STATEFULSETS, [], refused, None) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'pods "web-7d9f-x2" is forbidden: {QUOTA}', QUOTA),
        (f'Error creating: pods "web-7d9f-x2" is forbidden: {QUOTA}', QUOTA),
        (f'Create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: {QUOTA}', QUOTA),
        ('Error creating: admission webhook "x.io" denied the request', 'admission webhook "x.io" denied the request'),
    ],
)
def test_a_refusal_is_told_without_the_name_of_a_pod(text, told):
    assert refusal_text(text) == told


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu", "0/4 nodes are available: 4 Insufficient cpu", "before"),
        ("0/3 nodes are available: 3 Insufficient cpu", "0/3 nodes are available: 3 Insufficient memory", "now"),
        ('image "nginx:bad": not found', 'image "nginx:bad"', "before"),
        ('image "nginx:bad"', 'image "nginx:bad": not found', "now"),
    ],
)
def test_a_text_stays_unless_it_says_something_else(before, now, told):
    found = steady(Cause("A", before, 1, 3), Cause("A", now, 2, 3))
    assert found == Cause("A", before if told == "before" else now, 2, 3)
    assert steady(Cause("B", before), Cause("A", now)) == Cause("A", now)


@pytest.mark.parametrize(
    ("config", "seen", "lacks"),
    [
        (STATEFULSETS, copy(3, 1), True),
        (STATEFULSETS, copy(3, 3), False),
        (STATEFULSETS, {}, False),
        (DAEMONSETS, {"status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 2}}, True),
        (DAEMONSETS, {"status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 3}}, False),
        (JOBS, {"status": {"startTime": "t"}}, True),
        (JOBS, {"status": {"startTime": "t", "active": 1}}, False),
        (JOBS, {"status": {"startTime": "t", "terminating": 1}}, False),
        (JOBS, {"status": {}}, False),
        (JOBS, {"status": {"startTime": "t", "conditions": [{"type": "Complete", "status": "True"}]}}, False),
    ],
)
def test_which_copies_lack_pods(config, seen, lacks):
    assert lacks_pods(seen, config) is lacks


def test_how_many_pods_a_job_is_to_have_is_not_known():
    found = cause_of({"status": {"startTime": "t", "active": 2}}, JOBS, [PULL, PULL], "", None)
    assert found is not None
    assert cause_text(found) == '2 pods: ImagePullBackOff: image "nginx:bad"'


def test_a_condition_names_some_clusters_and_counts_the_others():
    text = causes_text({f"m{number}": Cause("A", "", 1, 2) for number in range(7)})
    assert text.startswith("m0: 1 of 2 pods: A; m1: ")
    assert text.endswith("; and in 2 more clusters")


@given(st.lists(st.sampled_from([PULL, CPU]), max_size=8), st.randoms())
def test_the_order_of_pods_does_not_matter_and_telling_it_again_changes_nothing(troubles, random):
    found = cause_of(copy(8, 8), DEPLOYMENTS, troubles, "", None)
    mixed = random.sample(troubles, len(troubles))
    assert cause_of(copy(8, 8), DEPLOYMENTS, mixed, "", None) == found
    assert cause_of(copy(8, 8), DEPLOYMENTS, mixed, "", found) == found
    assert (found is None) == (not troubles)
