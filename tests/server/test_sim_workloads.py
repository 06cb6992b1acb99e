"""StatefulSets, DaemonSets and Jobs on a simulated member."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from argosy.server.watchcache.store import StoreEvent
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec, NodePool
from tests.server.sim_world import FAST, NODES, PODS, condition, image_of, is_ready, pods, stored, until

STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
JOBS = Resource("batch", "v1", "jobs", "Job")


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    one = Member(MemberSpec("m", (NodePool(3),)), FAST)
    await one.open()
    yield one
    await one.close()


def template(image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    if kind != "Job":
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def status_of(member: Member, table: str) -> dict[str, Any]:
    [obj] = stored(member, table)
    return dict(obj.get("status") or {})


def with_image(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


async def test_a_stateful_set_starts_in_order_and_stops_in_reverse(member: Member) -> None:
    started: list[str] = []

    def note(event: StoreEvent) -> None:
        if event.entry.key.startswith("core/pods/") and event.previous is None:
            assert all(is_ready(pod) for pod in pods(member) if pod["metadata"]["name"] != event.entry.name)
            started.append(event.entry.name)

    stop = member.embedded.server.store.subscribe(note)
    await member.client().create(STATEFULSETS, workload("StatefulSet", replicas=3, serviceName="x"), "default")
    status = await until(member, lambda: (s := status_of(member, "apps/statefulsets")).get("readyReplicas") == 3 and s)
    stop()
    assert started == ["x-0", "x-1", "x-2"]
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["replicas"], status["availableReplicas"], status["updatedReplicas"]) == (3, 3, 3)
    await member.client().patch(STATEFULSETS, "x", {"spec": {"replicas": 1}}, "default")
    await until(member, lambda: [pod["metadata"]["name"] for pod in stored(member, "core/pods")] == ["x-0"])


async def test_a_stateful_set_is_updated_from_the_last_pod_down_to_its_partition(member: Member) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    await member.client().create(
        STATEFULSETS, workload("StatefulSet", replicas=3, serviceName="x", updateStrategy=strategy), "default"
    )
    await until(member, lambda: status_of(member, "apps/statefulsets").get("readyReplicas") == 3)
    await member.client().patch(STATEFULSETS, "x", with_image("nginx:2"), "default", kind=Patch.STRATEGIC)

    def images() -> dict[str, str]:
        return {pod["metadata"]["name"]: image_of(pod) for pod in pods(member) if is_ready(pod)}

    await until(member, lambda: images() == {"x-0": "nginx:1", "x-1": "nginx:2", "x-2": "nginx:2"})
    status = await until(
        member, lambda: (s := status_of(member, "apps/statefulsets")).get("updatedReplicas") == 2 and s
    )
    assert status["currentRevision"] != status["updateRevision"]
    whole = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    await member.client().patch(STATEFULSETS, "x", whole, "default")
    await until(member, lambda: set(images().values()) == {"nginx:2"} and len(images()) == 3)
    await until(
        member,
        lambda: (s := status_of(member, "apps/statefulsets"))["currentRevision"] == s["updateRevision"],
    )


async def test_a_daemon_set_has_a_pod_on_every_node_and_on_new_ones(member: Member) -> None:
    await member.client().create(DAEMONSETS, workload("DaemonSet"), "default")
    status = await until(member, lambda: (s := status_of(member, "apps/daemonsets")).get("numberReady") == 3 and s)
    assert status == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberAvailable": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    }
    assert {pod["spec"]["nodeName"] for pod in pods(member)} == {"m-node-0", "m-node-1", "m-node-2"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "new"},
        "status": {"allocatable": {"cpu": "1", "pods": "5"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    await member.client().create(NODES, node)
    await until(member, lambda: status_of(member, "apps/daemonsets").get("numberReady") == 4)
    await member.client().delete(NODES, "new")
    await until(member, lambda: status_of(member, "apps/daemonsets")["desiredNumberScheduled"] == 3)
    await until(member, lambda: "new" not in {pod["spec"]["nodeName"] for pod in stored(member, "core/pods")})


async def test_a_daemon_set_is_updated_node_by_node(member: Member) -> None:
    await member.client().create(DAEMONSETS, workload("DaemonSet"), "default")
    await until(member, lambda: status_of(member, "apps/daemonsets").get("numberReady") == 3)
    least = 3

    def sample(event: StoreEvent) -> None:
        nonlocal least
        least = min(least, sum(is_ready(pod) for pod in pods(member)))

    stop = member.embedded.server.store.subscribe(sample)
    await member.client().patch(DAEMONSETS, "x", with_image("nginx:2"), "default", kind=Patch.STRATEGIC)
    await until(member, lambda: [image_of(pod) for pod in pods(member) if is_ready(pod)] == ["nginx:2"] * 3)
    stop()
    assert least == 2


async def test_a_job_runs_to_completion(member: Member) -> None:
    job = workload("Job", completions=3, parallelism=2, template=template(restartPolicy="Never"))
    await member.client().create(JOBS, job, "default")
    most = 0

    def sample(event: StoreEvent) -> None:
        nonlocal most
        most = max(most, sum(pod["status"]["phase"] in ("Pending", "Running") for pod in pods(member)))

    stop = member.embedded.server.store.subscribe(sample)
    status = await until(
        member, lambda: condition(stored(member, "batch/jobs")[0], "Complete") and status_of(member, "batch/jobs")
    )
    stop()
    assert status["succeeded"] == 3
    assert "failed" not in status
    assert "active" not in status
    assert most == 2
    assert condition({"status": status}, "Complete")["status"] == "True"
    assert [pod["status"]["phase"] for pod in stored(member, "core/pods")] == ["Succeeded"] * 3


async def test_an_indexed_job_has_every_index_once(member: Member) -> None:
    job = workload(
        "Job", completions=4, parallelism=4, completionMode="Indexed", template=template(restartPolicy="Never")
    )
    await member.client().create(JOBS, job, "default")
    await until(member, lambda: condition(stored(member, "batch/jobs")[0], "Complete"))
    assert status_of(member, "batch/jobs")["completedIndexes"] == "0-3"


async def test_a_job_that_keeps_failing_gives_up(member: Member) -> None:
    job = workload("Job", backoffLimit=1, template=template("app:crash", restartPolicy="Never"))
    await member.client().create(JOBS, job, "default")
    failed = await until(member, lambda: condition(stored(member, "batch/jobs")[0], "Failed"))
    assert failed["reason"] == "BackoffLimitExceeded"
    assert status_of(member, "batch/jobs")["failed"] == 2


async def test_a_suspended_job_runs_when_it_is_resumed_and_goes_when_its_time_is_over(member: Member) -> None:
    job = workload("Job", suspend=True, ttlSecondsAfterFinished=0, template=template(restartPolicy="Never"))
    await member.client().create(JOBS, job, "default")
    await until(member, lambda: condition(stored(member, "batch/jobs")[0], "Suspended").get("status") == "True")
    assert not stored(member, "core/pods")
    await member.client().patch(JOBS, "x", {"spec": {"suspend": False}}, "default")
    await until(member, lambda: pods(member))
    await until(member, lambda: not stored(member, "batch/jobs"))
    await until(member, lambda: not stored(member, "core/pods"))


TRACKING = "batch.kubernetes.io/job-tracking"
NOWHERE = {"nodeSelector": {"disk": "none-has-this"}, "restartPolicy": "Never"}


def tracked(member: Member) -> list[bool]:
    return [TRACKING in (pod["metadata"].get("finalizers") or ()) for pod in stored(member, "core/pods")]


async def test_a_jobs_pods_are_kept_until_they_are_counted(member: Member) -> None:
    await member.client().create(JOBS, workload("Job", backoffLimit=3, template=template(**NOWHERE)), "default")
    await until(member, lambda: tracked(member) == [True])
    [first] = pods(member)
    await member.client().delete(PODS, first["metadata"]["name"], "default")
    # A pod that somebody deletes has failed, and another takes its place.
    await until(member, lambda: status_of(member, "batch/jobs").get("failed") == 1 and tracked(member) == [True])
    assert status_of(member, "batch/jobs")["uncountedTerminatedPods"] == {}
    assert pods(member)[0]["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_job_that_is_deleted_lets_its_pods_go(member: Member, propagation: str) -> None:
    await member.client().create(JOBS, workload("Job", parallelism=2, template=template(**NOWHERE)), "default")
    await until(member, lambda: tracked(member) == [True, True])
    await member.client().delete(JOBS, "x", "default", propagation=propagation)
    await until(member, lambda: not stored(member, "core/pods") and not stored(member, "batch/jobs"))


async def test_orphans_of_a_job_are_let_go(member: Member) -> None:
    await member.client().create(JOBS, workload("Job", parallelism=1, template=template(**NOWHERE)), "default")
    await until(member, lambda: tracked(member) == [True])
    await member.client().delete(JOBS, "x", "default", propagation="Orphan")
    await until(member, lambda: not stored(member, "batch/jobs") and tracked(member) == [False])


async def test_a_job_that_takes_too_long_fails_once_its_pods_are_gone(member: Member) -> None:
    job = workload("Job", activeDeadlineSeconds=1, parallelism=2, template=template(**NOWHERE))
    await member.client().create(JOBS, job, "default")
    await until(member, lambda: condition(stored(member, "batch/jobs")[0], "Failed"))
    status = status_of(member, "batch/jobs")
    assert (status["failed"], status.get("active", 0), status["terminating"]) == (2, 0, 0)
    assert not stored(member, "core/pods")
    assert [one["type"] for one in status["conditions"]] == ["FailureTarget", "Failed"]
