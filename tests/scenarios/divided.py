"""StatefulSets and Jobs that are divided: every pod's name once in the fleet, and a Job's work done once."""

import json
from typing import Any

from argosy.api import keys
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import EVENTS, weights
from tests.scenarios.seen import paused, pods_of, tainted

__all__ = [
    "test_a_divided_job_does_its_work_once",
    "test_a_divided_job_that_has_to_leave_a_cluster_is_not_complete_until_the_rest_is_done",
    "test_a_replica_set_is_divided",
    "test_a_stateful_set_is_divided_in_ranges_and_no_pod_changes_its_cluster",
    "test_an_indexed_job_is_duplicated_and_says_so",
    "test_what_a_copy_does_until_it_is_removed_counts_and_is_not_done_again",
]

STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
EQUAL = weights(m1=1, m2=1, m3=1)


async def test_a_stateful_set_is_divided_in_ranges_and_no_pod_changes_its_cluster(world: World) -> None:
    await world.policy(**EQUAL)
    await world.client.create(STATEFUL_SETS, _workload(world, STATEFUL_SETS, "db", _stateful_spec(6)))
    first = await _eventually_pods(world, 6)
    assert {member for member, _ in first.values()} == set(world.names)
    for replicas in (9, 4):
        before = await _eventually_pods(world, len(first))
        await world.client.patch(
            STATEFUL_SETS, "db", {"spec": {"replicas": replicas}}, world.namespace, kind=Patch.MERGE
        )
        first = await _eventually_pods(world, replicas)
        stayed = before.keys() & first.keys()
        assert len(stayed) == min(len(before), replicas)
        assert {name: first[name] for name in stayed} == {name: before[name] for name in stayed}


async def test_a_replica_set_is_divided(world: World) -> None:
    await world.policy(**EQUAL)
    spec = {"replicas": 6, "selector": {"matchLabels": {"app": "web"}}, "template": _pods("web")}
    await world.client.create(REPLICA_SETS, _workload(world, REPLICA_SETS, "web", spec))

    async def runs() -> bool:
        source = await world.source("web", REPLICA_SETS)
        copies = await world.copies("web", REPLICA_SETS)
        return (
            (source.get("status") or {}).get("readyReplicas") == 6
            and {name: copy["spec"]["replicas"] for name, copy in copies.items()} == dict.fromkeys(world.names, 2)
        )  # fmt: skip

    await world.eventually(runs, "six replicas in three clusters")


async def test_an_indexed_job_is_duplicated_and_says_so(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1))
    template = _pods("sum", restartPolicy="Never")
    spec = {"parallelism": 2, "completions": 4, "completionMode": "Indexed", "template": template}
    await world.client.create(JOBS, _workload(world, JOBS, "sum", spec))

    async def everywhere() -> bool:
        copies = await world.copies("sum", JOBS)
        return {name: copy["spec"]["completions"] for name, copy in copies.items()} == {"m1": 4, "m2": 4}

    await world.eventually(everywhere, "both have all of it")

    async def told() -> bool:
        events = (await world.client.list(EVENTS, world.namespace)).items
        return any(each["reason"] == "WithoutEffect" and "Indexed" in each["message"] for each in events)

    await world.eventually(told, "an event says that it is not divided")


async def test_a_divided_job_does_its_work_once(world: World) -> None:
    await world.policy(**EQUAL)
    spec = {"parallelism": 3, "completions": 12, "template": _pods("sum", restartPolicy="Never")}
    await world.client.create(JOBS, _workload(world, JOBS, "sum", spec))

    async def done() -> dict[str, Any] | None:
        source = await world.source("sum", JOBS)
        conditions = {each["type"]: each["status"] for each in (source.get("status") or {}).get("conditions") or ()}
        return source if conditions.get("Complete") == "True" else None

    source = await world.eventually(done, "the Job is complete")
    assert source["status"]["succeeded"] == 12
    copies = await world.copies("sum", JOBS)
    shares = {name: (copy["spec"]["parallelism"], copy["spec"]["completions"]) for name, copy in copies.items()}
    assert shares == dict.fromkeys(world.names, (1, 4))


async def test_a_divided_job_that_has_to_leave_a_cluster_is_not_complete_until_the_rest_is_done(world: World) -> None:
    share = 25  # enough that no cluster is done before it is told to stop
    await world.policy(**EQUAL)
    spec = {"parallelism": 3, "completions": 3 * share, "template": _pods("sum", restartPolicy="Never")}
    await world.client.create(JOBS, _workload(world, JOBS, "sum", spec))

    async def begun() -> bool:
        copies = await world.copies("sum", JOBS)
        return _succeeded(copies.get("m3", {})) > 0

    await world.eventually(begun, "m3 has done some of it")
    # Suspended, so that all of this happens in the middle of the work, however fast it is done.
    await _patch_job(world, {"suspend": True})

    async def suspended() -> bool:
        copies = await world.copies("sum", JOBS)
        stopped = [_condition(copy, "Suspended") and not copy["status"].get("active") for copy in copies.values()]
        return len(stopped) == 3 and all(stopped)

    await world.eventually(suspended, "nothing runs")
    done = _succeeded((await world.copies("sum", JOBS))["m3"])
    assert done < share

    async def reported() -> bool:
        copies = await world.copies("sum", JOBS)
        return _succeeded(await world.source("sum", JOBS)) == sum(_succeeded(copy) for copy in copies.values())

    await world.eventually(reported, "what was done is reported")
    async with tainted(world, "m3"):

        async def left() -> bool:
            annotations = (await world.federated("sum-jobs.batch"))["metadata"]["annotations"]
            noted = keys.TO_BE_REMOVED in annotations
            return not noted and set(await world.copies("sum", JOBS)) == {"m1", "m2"}

        await world.eventually(left, "m3 is left")
        await world.ground.restart_plane()
        await _patch_job(world, {"suspend": False})

        async def others_are_done() -> bool:
            copies = await world.copies("sum", JOBS)
            source = await world.source("sum", JOBS)
            ended = [_condition(copies[name], "Complete") for name in ("m1", "m2")]
            return all(ended) and _succeeded(source) == 2 * share + done

        await world.eventually(others_are_done, "m1 and m2 have done their share")

        async def open_work() -> bool:
            return not _condition(await world.source("sum", JOBS), "Complete")

        await holds(open_work, 1.5)
        held = json.loads((await world.federated("sum-jobs.batch"))["metadata"]["annotations"][keys.HELD])
        assert held["message"].startswith(f"{share - done} of {3 * share} completions are in no cluster")

    async def finished() -> dict[str, Any] | None:
        source = await world.source("sum", JOBS)
        return source if _condition(source, "Complete") else None

    source = await world.eventually(finished, "the Job is complete")
    assert source["status"]["succeeded"] == 3 * share
    copies = await world.copies("sum", JOBS)
    shares = {name: copy["spec"]["completions"] for name, copy in copies.items()}
    assert shares == {"m1": share, "m2": share, "m3": share - done}
    assert keys.HELD not in (await world.federated("sum-jobs.batch"))["metadata"]["annotations"]


async def test_what_a_copy_does_until_it_is_removed_counts_and_is_not_done_again(world: World) -> None:
    await world.policy(**EQUAL)
    spec = {"parallelism": 3, "completions": 12, "template": _pods("sum", restartPolicy="Never")}
    await world.client.create(JOBS, _workload(world, JOBS, "sum", spec))

    async def begun() -> bool:
        return _succeeded((await world.copies("sum", JOBS)).get("m3", {})) > 0

    await world.eventually(begun, "m3 has done some of it")
    async with paused(world, "m3"), tainted(world, "m3"):

        async def left() -> bool:
            return keys.TO_BE_REMOVED in (await world.federated("sum-jobs.batch"))["metadata"]["annotations"]

        await world.eventually(left, "m3 is to be left")

        async def goes_on() -> bool:
            return _succeeded((await world.copies("sum", JOBS))["m3"]) == 4

        await world.eventually(goes_on, "as long as it is paused, the copy goes on")
        await world.member("m3").delete(JOBS, "sum", world.namespace, propagation="Background")

        async def gone() -> bool:
            return set(await world.copies("sum", JOBS)) == {"m1", "m2"}

        await world.eventually(gone, "somebody deleted the copy")

    async def finished() -> dict[str, Any] | None:
        source = await world.source("sum", JOBS)
        return source if _condition(source, "Complete") else None

    source = await world.eventually(finished, "the Job is complete")
    assert source["status"]["succeeded"] == 12
    assert set(await world.copies("sum", JOBS)) == {"m1", "m2"}

    async def kept() -> bool:
        annotations = (await world.federated("sum-jobs.batch"))["metadata"]["annotations"]
        return json.loads(annotations[keys.COMPLETED]) == {"total": 4} and keys.TO_BE_REMOVED not in annotations

    await world.eventually(kept, "what was done there is one number")


def _succeeded(job: dict[str, Any]) -> int:
    return int((job.get("status") or {}).get("succeeded") or 0)


def _condition(job: dict[str, Any], type: str) -> bool:
    return any(
        each["type"] == type and each["status"] == "True" for each in (job.get("status") or {}).get("conditions") or ()
    )


async def _patch_job(world: World, spec: dict[str, Any]) -> None:
    await world.client.patch(JOBS, "sum", {"spec": spec}, world.namespace, kind=Patch.MERGE)


async def _eventually_pods(world: World, count: int) -> dict[str, tuple[str, str]]:
    """Cluster and uid of every pod by name, once they are db-0 to the last one and each is in one cluster."""

    async def probe() -> dict[str, tuple[str, str]] | None:
        found = [(pod["metadata"], member) for member in world.names for pod in await pods_of(world, member, "db")]
        names = sorted(metadata["name"] for metadata, _ in found)
        if names != sorted(f"db-{number}" for number in range(count)):
            return None
        return {metadata["name"]: (member, metadata["uid"]) for metadata, member in found}

    return await world.eventually(probe, f"db-0 to db-{count - 1} run, each in one cluster")


def _stateful_spec(replicas: int) -> dict[str, Any]:
    return {
        "replicas": replicas,
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "db"}},
        "template": _pods("db"),
    }


def _pods(app: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "nginx:1.29"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def _workload(world: World, resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": name, "namespace": world.namespace, "labels": labels}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
