"""Owners are deleted by each propagation policy; namespaces are not, as those are the server's business."""

from tests.real.simulation import view
from tests.real.simulation.build import (
    complete,
    daemon_set,
    deployment,
    empty,
    job,
    ready,
    replica_set,
    stateful_set,
    template,
)
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import DAEMONSETS, DEPLOYMENTS, JOBS, PODS, REPLICASETS, STATEFULSETS

_ALL = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod")


async def _deployment(pair: Pair, policy: str | None) -> None:
    await pair.create(DEPLOYMENTS, deployment(3))
    await pair.agree("there", complete())
    await pair.delete(DEPLOYMENTS, "web", policy)
    await pair.agree("gone", empty(*_ALL))
    pair.same("order", view.ends)


async def deployment_background(pair: Pair) -> None:
    await _deployment(pair, "Background")


async def deployment_foreground(pair: Pair) -> None:
    await _deployment(pair, "Foreground")


async def deployment_by_default(pair: Pair) -> None:
    await _deployment(pair, None)


async def deployment_orphan(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(2))
    await pair.agree("there", complete())
    await pair.delete(DEPLOYMENTS, "web", "Orphan")
    await pair.agree("gone alone", lambda side: empty("Deployment")(side) and _free(side, "ReplicaSet"))
    await pair.create(DEPLOYMENTS, deployment(2))
    await pair.agree("adopted", complete())


async def replica_set_orphan(pair: Pair) -> None:
    await pair.create(REPLICASETS, replica_set(2))
    await pair.agree("there", ready("ReplicaSet", 2))
    await pair.delete(REPLICASETS, "web", "Orphan")
    await pair.agree("gone alone", lambda side: empty("ReplicaSet")(side) and _free(side, "Pod"))
    await pair.create(REPLICASETS, replica_set(3))
    await pair.agree("adopted, and one more", ready("ReplicaSet", 3))


async def replica_set_foreground(pair: Pair) -> None:
    await pair.create(REPLICASETS, replica_set(2))
    await pair.agree("there", ready("ReplicaSet", 2))
    await pair.delete(REPLICASETS, "web", "Foreground")
    await pair.agree("gone", empty(*_ALL))
    pair.same("order", view.ends)


def _free(side: Side, kind: str) -> bool:
    return bool(side.all(kind)) and all(not one["metadata"].get("ownerReferences") for one in side.all(kind))


async def job_foreground(pair: Pair) -> None:
    await _job(pair, "Foreground")


async def job_background(pair: Pair) -> None:
    await _job(pair, "Background")


async def _job(pair: Pair, policy: str) -> None:
    await pair.create(JOBS, job(completions=2, parallelism=2))
    await pair.agree("there", lambda side: "Complete" in view.conditions(side.one("Job", "web")))
    await pair.delete(JOBS, "web", policy)
    await pair.agree("gone", empty(*_ALL))
    pair.same("order", view.ends)


async def job_orphan(pair: Pair) -> None:
    await pair.create(JOBS, job(completions=1))
    await pair.agree("there", lambda side: "Complete" in view.conditions(side.one("Job", "web")))
    await pair.delete(JOBS, "web", "Orphan")
    await pair.agree("gone alone", lambda side: empty("Job")(side) and _free(side, "Pod"))


async def stateful_set_foreground(pair: Pair) -> None:
    await pair.create(STATEFULSETS, stateful_set(2))
    await pair.agree("there", ready("StatefulSet", 2))
    await pair.delete(STATEFULSETS, "web", "Foreground")
    await pair.agree("gone", empty(*_ALL, "ControllerRevision"))
    pair.same("order", view.ends)


async def daemon_set_background(pair: Pair) -> None:
    await pair.create(DAEMONSETS, daemon_set())
    await pair.agree("there", ready("DaemonSet", 3, "numberReady"))
    await pair.delete(DAEMONSETS, "web", "Background")
    await pair.agree("gone", empty(*_ALL, "ControllerRevision"))
    pair.same("order", view.ends)


async def pod_is_replaced(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(1))
    await pair.agree("there", complete())
    first = [side.all("Pod")[0]["metadata"] for side in pair.sides]
    for side, metadata in zip(pair.sides, first, strict=True):
        await side.world.client.delete(PODS, metadata["name"], pair.namespace)
    uids = {metadata["uid"] for metadata in first}
    await pair.agree(
        "another", lambda side: complete()(side) and not any(p["metadata"]["uid"] in uids for p in side.all("Pod"))
    )


async def pod_that_waits_is_deleted(pair: Pair) -> None:
    pod = template(nodeSelector={"disk": "none-has-this"})
    await pair.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": pod["spec"]})
    await pair.agree("waits", lambda side: "PodScheduled" in view.conditions(side.one("Pod", "alone")))
    await pair.delete(PODS, "alone")
    await pair.agree("gone", empty("Pod"))


SCENARIOS = (
    deployment_background,
    deployment_foreground,
    deployment_by_default,
    deployment_orphan,
    replica_set_orphan,
    replica_set_foreground,
    job_foreground,
    job_background,
    job_orphan,
    stateful_set_foreground,
    daemon_set_background,
    pod_is_replaced,
    pod_that_waits_is_deleted,
)
