"""CronJobs, disruption budgets and ReplicationControllers on a simulated member."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.kube.client import Patch
from argosy.kube.errors import TooManyRequests
from argosy.kube.resource import Resource
from argosy.kube.timestamps import timestamp
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec, NodePool
from tests.server.sim_world import DEPLOYMENTS, FAST, PODS, condition, deployment, is_ready, pods, stored, until

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
JOBS = Resource("batch", "v1", "jobs", "Job")
CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    one = Member(MemberSpec("m", (NodePool(2),)), FAST)
    await one.open()
    yield one
    await one.close()


def budget(**spec: Any) -> Any:
    spec.setdefault("selector", {"matchLabels": {"app": "web"}})
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}


def counts(member: Member) -> list[int]:
    """Expected, healthy, desired, allowed."""
    [found] = stored(member, "policy/poddisruptionbudgets")
    fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
    return [found["status"][field] for field in fields] if seen else []


def cron_job(schedule: str = "* * * * *", image: str = "app:1", restart: str = "Never", **spec: Any) -> Any:
    container = {"name": "main", "image": image}
    job = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": restart, "containers": [container]}}}
    template = {"metadata": {"labels": {"app": "report"}}, "spec": job}
    wanted = {"schedule": schedule, "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": wanted}


def jobs(member: Member) -> list[Any]:
    return stored(member, "batch/jobs")


def the_cron_job(member: Member) -> Any:
    [found] = stored(member, "batch/cronjobs")
    return found


def finished(member: Member) -> list[str]:
    return [
        each["metadata"]["name"] for each in jobs(member) if condition(each, "Complete") or condition(each, "Failed")
    ]


def reasons(member: Member, kind: str) -> set[str]:
    return {each["reason"] for each in stored(member, "core/events") if each["involvedObject"]["kind"] == kind}


async def due(member: Member, name: str = "report", minutes: int = 1) -> str:
    """Make it look as if the last Job was of an earlier minute. Returns the name of the Job that is due now."""
    last = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)
    body = {"status": {"lastScheduleTime": timestamp(last)}}
    await member.client().patch(CRONJOBS, name, body, "default", kind=Patch.MERGE, subresource="status")
    # A status wakes nobody.
    await member.client().patch(CRONJOBS, name, {"spec": {"suspend": False}}, "default", kind=Patch.MERGE)
    return f"{name}-{int(datetime.now(UTC).timestamp()) // 60}"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, [4, 4, 3, 1]),
        ({"minAvailable": "50%"}, [4, 4, 2, 2]),
        ({"maxUnavailable": 1}, [4, 4, 3, 1]),
        ({"maxUnavailable": "30%"}, [4, 4, 2, 2]),
        ({"minAvailable": 4}, [4, 4, 4, 0]),
    ],
)
async def test_a_budget_counts_its_pods(member: Member, spec: Any, expected: list[int]) -> None:
    await member.client().create(BUDGETS, budget(**spec), "default")
    await until(member, lambda: counts(member) and counts(member)[0] == 0)
    assert (
        condition(stored(member, "policy/poddisruptionbudgets")[0], "DisruptionAllowed")["reason"] == "InsufficientPods"
    )
    await member.client().create(DEPLOYMENTS, deployment(replicas=4), "default")
    await until(member, lambda: counts(member) == expected)
    told = condition(stored(member, "policy/poddisruptionbudgets")[0], "DisruptionAllowed")
    assert (told["status"], told["reason"]) == (
        ("True", "SufficientPods") if expected[3] else ("False", "InsufficientPods")
    )


async def test_evictions_stop_where_the_budget_ends(member: Member) -> None:
    client = member.client()
    await client.create(BUDGETS, budget(minAvailable=2), "default")
    await client.create(DEPLOYMENTS, deployment(replicas=3, image="nginx:slow"), "default")
    await until(member, lambda: counts(member) == [3, 3, 2, 1])
    first, second, _ = (pod["metadata"]["name"] for pod in pods(member))
    await client.create(PODS, eviction(first), "default", subresource="eviction", name=first)
    with pytest.raises(TooManyRequests):
        await client.create(PODS, eviction(second), "default", subresource="eviction", name=second)
    await until(member, lambda: counts(member) == [3, 3, 2, 1])
    await client.create(PODS, eviction(second), "default", subresource="eviction", name=second)


def eviction(name: str) -> Any:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


async def test_a_budget_of_pods_without_replicas_allows_nothing(member: Member) -> None:
    client = member.client()
    job = {"template": deployment()["spec"]["template"], "parallelism": 1}
    job["template"]["spec"]["restartPolicy"] = "Never"
    await client.create(BUDGETS, budget(maxUnavailable=1), "default")
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": job}
    await client.create(JOBS, body, "default")

    def told() -> Any:
        return condition(stored(member, "policy/poddisruptionbudgets")[0], "DisruptionAllowed")

    await until(member, lambda: told().get("reason") == "SyncFailed")
    assert told()["message"].startswith("found no controllers for pod")


async def test_a_cron_job_makes_a_job_when_one_is_due(member: Member) -> None:
    await member.client().create(CRONJOBS, cron_job(suspend=True), "default")
    name = await due(member)
    await until(member, lambda: [each["metadata"]["name"] for each in jobs(member)][:1] == [name])
    job, owner = jobs(member)[0], the_cron_job(member)
    assert [(each["kind"], each["uid"], each["controller"]) for each in job["metadata"]["ownerReferences"]] == [
        ("CronJob", owner["metadata"]["uid"], True)
    ]
    assert job["metadata"]["labels"]["app"] == "report"
    due_at = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    await until(member, lambda: the_cron_job(member)["status"].get("lastScheduleTime") == due_at)
    await until(member, lambda: finished(member)[:1] == [name] and "active" not in the_cron_job(member)["status"])
    assert the_cron_job(member)["status"]["lastSuccessfulTime"] == jobs(member)[0]["status"]["completionTime"]
    await until(member, lambda: {"SuccessfulCreate", "SawCompletedJob"} <= reasons(member, "CronJob"))


async def test_many_missed_times_make_one_job(member: Member) -> None:
    await member.client().create(CRONJOBS, cron_job(suspend=True), "default")
    name = await due(member, minutes=500)
    await until(member, lambda: jobs(member))
    assert [each["metadata"]["name"] for each in jobs(member)][:1] == [name]
    await until(member, lambda: "TooManyMissedTimes" in reasons(member, "CronJob"))


async def test_what_still_runs_is_awaited_or_replaced(member: Member) -> None:
    client = member.client()
    await client.create(CRONJOBS, cron_job(suspend=True, image="app:bad", concurrencyPolicy="Forbid"), "default")
    await due(member, minutes=2)
    await until(member, lambda: the_cron_job(member)["status"].get("active"))
    [first] = jobs(member)
    await due(member)
    await until(member, lambda: "JobAlreadyActive" in reasons(member, "CronJob"))
    assert [each["metadata"]["uid"] for each in jobs(member)] == [first["metadata"]["uid"]]
    # The name of a Job is that of its minute: one of this minute exists already, unless it has passed meanwhile.
    await client.delete(JOBS, first["metadata"]["name"], "default", propagation="Background")
    await until(
        member, lambda: [each["metadata"]["uid"] for each in jobs(member)] not in ([], [first["metadata"]["uid"]])
    )
    await until(member, lambda: "MissingJob" in reasons(member, "CronJob"))


async def test_a_history_has_an_end(member: Member) -> None:
    client = member.client()
    await client.create(
        CRONJOBS, cron_job(suspend=True, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0), "default"
    )
    owner = the_cron_job(member)["metadata"]
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": owner["uid"], "controller": True}
    for name, image in (("old", "app:1"), ("new", "app:1"), ("broken", "app:crash")):
        spec = cron_job(image=image)["spec"]["jobTemplate"]["spec"]
        metadata = {"name": name, "ownerReferences": [reference]}
        await client.create(
            JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}, "default"
        )
    await until(member, lambda: len(jobs(member)) == 1 and "SuccessfulDelete" in reasons(member, "CronJob"))
    assert condition(jobs(member)[0], "Complete")["status"] == "True"


async def test_a_replication_controller_keeps_its_pods(member: Member) -> None:
    template = deployment()["spec"]["template"]
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template}
    body = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}, "spec": spec}
    await member.client().create(CONTROLLERS, body, "default")
    await until(member, lambda: [is_ready(pod) for pod in pods(member)] == [True, True])
    await until(
        member, lambda: stored(member, "core/replicationcontrollers")[0]["status"].get("availableReplicas") == 2
    )
    gone = pods(member)[0]["metadata"]["name"]
    await member.client().delete(PODS, gone, "default")
    await until(
        member, lambda: len([pod for pod in pods(member) if is_ready(pod) and pod["metadata"]["name"] != gone]) == 2
    )
