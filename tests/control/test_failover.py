"""Failover: clusters that fail are given up, unless too many do; and who matters most goes first."""

import msgspec

from argosy.api import keys, resources
from argosy.control.caches.objectkeys import SourceKey
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually, holds
from tests.harness.federation import DEPLOYMENTS, WATCHFUL, Federation, federation
from tests.harness.user import deployment, weights

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)


async def failed(fed: Federation) -> list[str]:
    clusters = (await fed.client.list(resources.FEDERATED_CLUSTERS)).items
    return [
        each["metadata"]["name"]
        for each in clusters
        if any(taint["key"] == keys.UNREADY_TAINT for taint in each["spec"].get("taints") or ())
    ]


async def test_a_cluster_that_fails_is_given_up_with_an_event() -> None:
    async with federation(2, timings=msgspec.structs.replace(WATCHFUL, failover_after=0.2)) as fed:
        await fed.servers["m2"].stop()

        async def given_up() -> bool:
            return await failed(fed) == ["m2"]

        await eventually(given_up, why="m2 is tainted")
        await eventually(lambda: fed.events("ClusterFailed"), why="that is told")


async def test_what_a_failed_cluster_runs_is_removed_when_others_run_it() -> None:
    quick = msgspec.structs.replace(WATCHFUL, failover_after=0.2, failback_after=600.0)
    async with federation(2, timings=quick) as fed:
        await fed.policy(**weights(m1=1, m2=1))
        await fed.deploy(replicas=4)
        await fed.eventually_replicas({"m1": 2, "m2": 2})
        await fed.servers["m2"].close_door()

        async def started_elsewhere() -> bool:
            return (await fed.replicas())["m1"] == 4

        await eventually(started_elsewhere, why="all are started in m1")
        await fed.servers["m2"].open_door()
        await eventually(lambda: fed.ready_clusters() == ["m1", "m2"], why="m2 is back")

        async def waiting() -> bool:
            return (await fed.propagation())["m2"] == "WaitingForRemoval"

        await eventually(waiting)
        # What was running in m1 before is available there; that is not what it was told to run.
        status = {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2}
        await fed.member("m1").patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")
        await holds(lambda: _has(fed, {"m1": 4, "m2": 2}), 4 * quick.deletion_recheck)
        status = {"observedGeneration": 2, "replicas": 4, "readyReplicas": 4, "availableReplicas": 4}
        await fed.member("m1").patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")
        await fed.eventually_replicas({"m1": 4})


async def _has(fed: Federation, expected: dict[str, int]) -> bool:
    return await fed.replicas() == expected


async def test_nobody_is_given_up_while_most_clusters_fail() -> None:
    async with federation(3, timings=WATCHFUL) as fed:
        for name in ("m1", "m2"):
            await fed.servers[name].stop()
        await eventually(lambda: fed.ready_clusters() == ["m3"], why="most are unready")
        for name in ("m1", "m2"):
            await fed.annotate(resources.FEDERATED_CLUSTERS, name, None, **{keys.FAILOVER_AFTER: "0s"})

        async def trusted() -> bool:
            return not await failed(fed)

        await holds(trusted, 0.6)


async def test_the_workload_with_the_highest_priority_class_is_looked_at_first() -> None:
    async with federation(1) as fed:
        for name, value, default in (("gold", 1000, False), ("tin", -5, False), ("plain", 10, True)):
            manifest = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "globalDefault": default,
            }
            await fed.client.create(PRIORITY_CLASSES, manifest)
        for name in ("tin", "plain", "gold"):
            manifest = deployment(name, 1, "nobody")
            if name != "plain":
                manifest["spec"]["template"]["spec"]["priorityClassName"] = name
            await fed.client.create(DEPLOYMENTS, manifest)
        names = ("gold", "plain", "tin")

        def ranks() -> list[int]:
            return [fed.inside.rank(SourceKey("deployments.apps", f"default/{name}")) for name in names]

        await eventually(lambda: len(set(ranks())) == 3, why="the classes are known")
        assert ranks() == sorted(ranks())
        order = fed.inside.swept("federate", "facts of a cluster", ["m1"])
        assert [key.key for key in order if key.type == "deployments.apps"] == [f"default/{name}" for name in names]
