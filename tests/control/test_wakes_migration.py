"""Whoever has to hear that a workload is to migrate, or that a full cluster has room again, does; see `test_wakes.py`."""

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.control.caches.projection import as_object
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.federation import QUICK, Federation
from tests.harness.ground import SIMULATED, simulated_ground
from tests.harness.user import DEPLOYMENTS, deployment, weights
from tests.scenarios.migration import full
from tests.scenarios.seen import eventually_rolled_out, pods_of

MIGRATING = {"autoMigration": {"when": {"podUnschedulableFor": "1s"}}}
#: What is not heard of is not looked at by chance.
SELDOM = msgspec.structs.replace(SIMULATED, health_period=30.0)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
PODS = Resource("", "v1", "pods", "Pod")


@pytest.fixture
async def world(tmp_path):
    async with simulated_ground(tmp_path, timings=SELDOM) as ground, ground.world() as made:
        yield made


async def test_replicas_that_wait_for_long_leave_once_they_may(world):
    await world.policy(**weights(m1=1, m2=1))
    async with full(world, "m1"):
        await world.client.create(DEPLOYMENTS, _small(world, 2))

        async def waiting():
            pods = await pods_of(world, "m1")
            return pods and all(_unschedulable(pod) for pod in pods) and await world.replicas() == {"m1": 1, "m2": 1}

        await world.eventually(waiting)
        await _settled(world)
        await world.client.patch(
            resources.PROPAGATION_POLICIES, "policy", {"spec": MIGRATING}, world.namespace, kind=Patch.MERGE
        )

        async def left():
            return (await world.replicas())["m2"] == 2

        await world.eventually(left)


async def test_a_cluster_that_has_room_again_is_not_taken_for_full(world):
    await world.policy(**weights(m1=1, m2=1), **MIGRATING)
    await world.client.create(DEPLOYMENTS, _small(world, 2))
    await eventually_rolled_out(world, 2)
    async with full(world, "m1"):
        await world.scale("web", 4)
        await world.eventually_replicas({"m1": 1, "m2": 3})
        await eventually_rolled_out(world, 4)
        await world.eventually(lambda: _estimated(world))
        await _settled(world)

    async def forgotten():
        return not await _estimated(world)

    await world.eventually(forgotten)


@pytest.fixture
async def bare():
    """Members that run nothing: their pods, and what is told of them, is written by the test, each by itself."""
    async with Federation(2, timings=msgspec.structs.replace(QUICK, health_period=30.0)) as made:
        await made.policy(**weights(m1=1, m2=1), **MIGRATING)
        await made.deploy("web", 4)
        await made.eventually_replicas({"m1": 2, "m2": 2})
        yield made


async def test_replicas_leave_when_the_copy_tells_of_them_after_its_pods(bare):
    replica_set = await _replica_set(bare, "m1")
    await _stuck_pod(bare, "m1", replica_set)
    await bare.eventually(lambda: bare.inside.prober.pods_of("m1", replica_set["metadata"]["uid"]).waiting)
    await _settled(bare)
    await _tell_of_replicas(bare, "m1", 2)
    await bare.eventually_replicas({"m1": 1, "m2": 3})


async def test_replicas_leave_when_their_pods_fit_no_node_after_the_copy_told_of_them(bare):
    replica_set = await _replica_set(bare, "m1")
    await _tell_of_replicas(bare, "m1", 2)
    await bare.eventually(lambda: _told_of(bare, "m1") == 2, "the controllers have seen the status")
    await _settled(bare)
    await _stuck_pod(bare, "m1", replica_set)
    await bare.eventually_replicas({"m1": 1, "m2": 3})


async def _replica_set(fed, cluster):
    copy = (await fed.copies())[cluster]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": copy["metadata"]["uid"]}
    labels = copy["spec"]["selector"]["matchLabels"]
    metadata = {"name": "web-1", "namespace": fed.namespace, "labels": labels}
    manifest = {
        "metadata": metadata | {"ownerReferences": [owner | {"controller": True}]},
        "spec": {key: copy["spec"][key] for key in ("selector", "template")},
    }
    return await fed.member(cluster).create(REPLICA_SETS, manifest)


async def _stuck_pod(fed, cluster, replica_set):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": replica_set["metadata"]["uid"]}
    metadata = {"name": "web-1-a", "namespace": fed.namespace, "ownerReferences": [owner | {"controller": True}]}
    spec = replica_set["spec"]["template"]["spec"]
    client = fed.member(cluster)
    await client.create(PODS, {"metadata": metadata, "spec": spec})
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"phase": "Pending", "conditions": [waits | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    await client.patch(PODS, "web-1-a", {"status": status}, fed.namespace, subresource="status")


async def _tell_of_replicas(fed, cluster, replicas):
    status = {"replicas": replicas, "observedGeneration": 1}
    client = fed.member(cluster)
    await client.patch(DEPLOYMENTS, "web", {"status": status}, fed.namespace, subresource="status")


def _told_of(fed, cluster):
    copy = fed.inside.collector.get(cluster, "deployments.apps", f"{fed.namespace}/web")
    return as_object(copy)["status"].get("replicas")


def _small(world, replicas):
    manifest = deployment("web", replicas, "policy", world.namespace)
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    return manifest


def _unschedulable(pod):
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


async def _estimated(world):
    return "estimatedCapacity" in (await world.federated())["metadata"]["annotations"].get(keys.AUTO_MIGRATION_INFO, "")


async def _settled(world):
    """Nothing waits, and nobody looks again by himself."""
    inside = world.inside if isinstance(world, Federation) else world.ground.inside
    migrate = inside.queue("migrate")
    await world.eventually(
        lambda: inside.idle() and not (len(migrate) or migrate.processing or migrate.delayed), "all is quiet"
    )
