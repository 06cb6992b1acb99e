"""Whoever has to hear that a workload is to migrate, or that a full cluster has room again, does; see `test_wakes.py`."""

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.harness.ground import SIMULATED, simulated_ground
from tests.harness.user import DEPLOYMENTS, deployment, weights
from tests.scenarios.migration import full
from tests.scenarios.seen import eventually_rolled_out, pods_of

MIGRATING = {"autoMigration": {"when": {"podUnschedulableFor": "1s"}}}
#: What is not heard of is not looked at by chance.
SELDOM = msgspec.structs.replace(SIMULATED, health_period=30.0)


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
    inside = world.ground.inside
    migrate = inside.queue("migrate")
    await world.eventually(
        lambda: inside.idle() and not (len(migrate) or migrate.processing or migrate.delayed), "all is quiet"
    )
