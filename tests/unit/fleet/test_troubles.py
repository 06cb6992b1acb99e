"""Why pods are not ready: read from their status, by workload, with nothing kept of pods that are well."""

import json
import sys
from typing import Any

import pytest

from argosy.fleet.capacity import PodView
from argosy.fleet.pods.troubles import Trouble, Troubles, WorkloadRef
from argosy.kube.objects import decode

WEB = WorkloadRef("apps", "Deployment", "shop/web")
SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": "u1", "controller": True}


def pod(*containers: dict[str, Any], owner: dict[str, Any] | None = SET, **more: Any) -> PodView:
    """Decoded, as the watch does it."""
    conditions = [{"type": "PodScheduled", "status": "True", **more.pop("scheduled", {})}]
    metadata = {"name": "p", "namespace": "shop", "labels": {"pod-template-hash": "7d9f"}, **more.pop("metadata", {})}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    status = {"phase": "Pending", "conditions": conditions, "containerStatuses": list(containers), **more}
    return decode(json.dumps({"metadata": metadata, "spec": {}, "status": status}).encode(), PodView)


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "main", "image": "nginx:bad", "ready": False, "state": state, **more}


ENDED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


@pytest.mark.parametrize(
    ("container", "reason", "message"),
    [
        (waiting("ErrImagePull", "not found"), "ImagePullBackOff", 'image "nginx:bad": not found'),
        (waiting("ImagePullBackOff", 'Back-off pulling image "x"'), "ImagePullBackOff", 'image "nginx:bad"'),
        (
            waiting("ImagePullBackOff", 'Back-off pulling image "x": ErrImagePull: not found'),
            "ImagePullBackOff",
            'image "nginx:bad": not found',
        ),
        (
            waiting("CrashLoopBackOff", "back-off 5m0s restarting pod=web-7d9f-x1", lastState=ENDED),
            "CrashLoopBackOff",
            "container main: exit code 137 (OOMKilled)",
        ),
        (waiting("CrashLoopBackOff"), "CrashLoopBackOff", "container main"),
        (
            {"name": "main", "ready": False, "state": ENDED},
            "CrashLoopBackOff",
            "container main: exit code 137 (OOMKilled)",
        ),
        (
            {"name": "main", "ready": False, "state": {"running": {}}, "lastState": ENDED},
            "CrashLoopBackOff",
            "container main: exit code 137 (OOMKilled)",
        ),
        (
            waiting("CreateContainerConfigError", 'secret "key" not found'),
            "CreateContainerConfigError",
            'container main: secret "key" not found',
        ),
    ],
)
def test_what_a_container_waits_for(container: dict[str, Any], reason: str, message: str) -> None:
    assert pod(container).trouble == Trouble(reason, message, WEB)


def test_the_first_container_with_a_problem_counts_and_init_containers_come_first() -> None:
    seen = pod(
        waiting("PodInitializing"), initContainerStatuses=[{**waiting("ErrImagePull", "no"), "image": "init:bad"}]
    )
    assert seen.trouble is not None
    assert seen.trouble.message == 'image "init:bad": no'


def test_a_pod_without_a_node_tells_what_the_scheduler_said_without_preemption() -> None:
    text = (
        "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available."
    )
    seen = pod(scheduled={"status": "False", "reason": "Unschedulable", "message": text})
    assert seen.trouble == Trouble("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu", WEB)


def running(started: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "ready": False, "state": {"running": {"startedAt": started}}, **more}


def not_ready(*containers: dict[str, Any], **ready: Any) -> PodView:
    """Runs, and is not ready since it was placed."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z", **ready}
    scheduled = {"type": "PodScheduled", "status": "True"}
    return pod(*containers, phase="Running", conditions=[condition, scheduled])


UNREADY = {"reason": "ContainersNotReady", "message": "containers with unready status: [main]"}


def test_a_pod_that_runs_and_is_not_ready_counts_since_its_last_container_started() -> None:
    seen = not_ready(running("2026-01-01T00:00:20Z"), running("2026-01-01T00:00:10Z", ready=True), **UNREADY)
    assert seen.trouble == Trouble(UNREADY["reason"], UNREADY["message"], WEB, "2026-01-01T00:00:20Z")


def test_a_pod_that_was_ready_and_is_no_more_counts_since_then() -> None:
    seen = not_ready(running("2025-12-31T00:00:00Z"), **UNREADY)
    assert seen.trouble is not None
    assert seen.trouble.since == "2026-01-01T00:00:00Z"


def test_a_closed_gate_is_told_though_all_containers_are_ready() -> None:
    text = 'the status of pod readiness gate "open" is not "True"'
    seen = not_ready(running("2026-01-01T00:00:20Z", ready=True), reason="ReadinessGatesNotReady", message=text)
    assert seen.trouble is not None
    assert (seen.trouble.reason, seen.trouble.message) == ("ReadinessGatesNotReady", text)


def test_pods_of_a_lost_node_have_no_trouble_of_their_own() -> None:
    assert not_ready(running("2026-01-01T00:00:20Z", ready=True)).trouble is None


@pytest.mark.parametrize(
    "seen",
    [
        pod(waiting("ContainerCreating")),
        pod({"name": "main", "ready": False, "state": {"running": {}}}),
        pod({"name": "main", "ready": True, "state": {"running": {}}, "lastState": ENDED}, phase="Running"),
        pod(waiting("ErrImagePull"), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod({"name": "main", "ready": False, "state": ENDED}, phase="Failed"),
        pod(waiting("ErrImagePull"), owner=None),
    ],
)
def test_pods_that_start_run_go_end_or_are_nobodys_have_none(seen: PodView) -> None:
    assert seen.trouble is None


@pytest.mark.parametrize(
    ("owner", "workload"),
    [
        ({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}, WorkloadRef("apps", "StatefulSet", "shop/db")),
        ({"apiVersion": "batch/v1", "kind": "Job", "name": "once"}, WorkloadRef("batch", "Job", "shop/once")),
        ({"name": "web-blue"}, WorkloadRef("apps", "ReplicaSet", "shop/web-blue")),
    ],
)
def test_pods_belong_to_their_controller_or_the_deployment_of_their_replicaset(
    owner: dict[str, Any], workload: WorkloadRef
) -> None:
    found = pod(waiting("ErrImagePull"), owner={**SET, **owner}).trouble
    assert found is not None
    assert found.workload == workload


def test_a_running_pod_keeps_nothing_but_the_uid_of_its_replicaset() -> None:
    one, other = (pod({"name": "main", "ready": True}, phase="Running") for _ in range(2))
    assert one.status is other.status
    assert (one.metadata.owner_references, one.metadata.labels, one.metadata.replica_set) == ((), None, "u1")
    assert sys.getsizeof(one) <= 48


def test_changes_are_told_by_workload_and_what_is_well_is_forgotten() -> None:
    troubles = Troubles()
    a, b = Trouble("A", "", WEB), Trouble("B", "", WEB)
    assert troubles.change("p", None, None) == []
    assert troubles.change("p", None, a) == [WEB]
    assert troubles.change("p", a, a) == []
    assert troubles.change("q", None, b) == [WEB]
    assert list(troubles.of(WEB)) == [a, b]
    assert troubles.change("p", a, None) == [WEB]
    assert troubles.change("q", b, None) == [WEB]
    assert list(troubles.of(WEB)) == []
    assert troubles._of == {}


@pytest.mark.parametrize("status", [{"containerStatuses": None}, {"initContainerStatuses": None, "conditions": None}])
def test_what_a_member_leaves_out_is_no_error(status: dict[str, Any]) -> None:
    assert pod(**status).trouble is None
