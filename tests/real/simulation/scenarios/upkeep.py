"""CronJobs and disruption budgets."""

from collections.abc import Callable
from typing import Any

from tests.real.simulation import build, view
from tests.real.simulation.build import complete, condition, deployment, job, ready, stateful_set
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import BUDGETS, CRONJOBS, DEPLOYMENTS, JOBS, STATEFULSETS


def _cron_job(schedule: str, image: str = build.GOOD, **spec: Any) -> Any:
    template = {"metadata": {"labels": {"run": "now"}}, "spec": {**job(image=image)["spec"], "backoffLimit": 0}}
    metadata = {"name": "web", "labels": {"app": "web"}}
    wanted = {"schedule": schedule, "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": wanted}


def _ended(count: int) -> Callable[[Side], bool]:
    """So many Jobs have ended, and the CronJob has noted it."""

    def holds(side: Side) -> bool:
        jobs = side.all("Job")
        over = [each for each in jobs if {"Complete", "Failed"} & set(view.conditions(each))]
        status = side.one("CronJob", "web").get("status") or {}
        return len(over) == len(jobs) == count and not status.get("active")

    return holds


async def cron_job_once(pair: Pair) -> None:
    """One Job: no more are wanted as soon as there is one."""
    await pair.create(CRONJOBS, _cron_job("* * * * *"))
    await pair.agree("a Job was made", lambda side: bool(side.all("Job")))
    await pair.patch(CRONJOBS, "web", {"spec": {"suspend": True}})
    await pair.agree("it has ended", _ended(1))
    await pair.delete(CRONJOBS, "web")
    await pair.agree("all gone", build.empty("CronJob", "Job", "Pod"))


def _budget(**spec: Any) -> Any:
    wanted = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": wanted}


def _counted(expected: int, healthy: int, desired: int, allowed: int) -> Callable[[Side], bool]:
    def holds(side: Side) -> bool:
        status = side.one("PodDisruptionBudget", "web").get("status") or {}
        fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        return [status.get(field) for field in fields] == [expected, healthy, desired, allowed]

    return holds


async def budget_of_a_number(pair: Pair) -> None:
    await pair.create(BUDGETS, _budget(minAvailable=2))
    await pair.agree("no pods", _counted(0, 0, 2, 0))
    await pair.create(DEPLOYMENTS, deployment(3))
    await pair.agree("all healthy", lambda side: complete()(side) and _counted(3, 3, 2, 1)(side))
    await pair.patch(BUDGETS, "web", {"spec": {"minAvailable": 3}})
    await pair.agree("more wanted", _counted(3, 3, 3, 0))


async def budget_of_a_share(pair: Pair) -> None:
    await pair.create(STATEFULSETS, stateful_set(3))
    await pair.create(BUDGETS, _budget(maxUnavailable="30%"))
    await pair.agree("rounded up", lambda side: ready("StatefulSet", 3)(side) and _counted(3, 3, 2, 1)(side))


async def budget_of_a_job(pair: Pair) -> None:
    """It has no replicas, so that nobody knows how many pods there should be."""
    await pair.create(BUDGETS, _budget(maxUnavailable=1))
    await pair.create(JOBS, job(pod={"readinessGates": [{"conditionType": "example.org/open"}]}))
    failed = "False SyncFailed"
    await pair.agree("not to be known", condition("PodDisruptionBudget", "web", "DisruptionAllowed", failed))


SCENARIOS = (cron_job_once, budget_of_a_number, budget_of_a_share, budget_of_a_job)
