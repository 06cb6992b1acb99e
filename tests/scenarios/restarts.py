"""The control plane ends in the middle of its work and comes back: the work is finished, and nothing is done twice."""

import asyncio

import pytest

from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, weights
from tests.scenarios.seen import eventually_rolled_out, images, quiet, settled, uids

__all__ = [
    "test_a_restart_in_the_middle_of_a_rollout_finishes_it_and_rewrites_nothing",
    "test_objects_under_way_at_a_restart_arrive_once",
]

OBJECTS = 20


@pytest.mark.real_time("what comes back does so from a folder")
async def test_a_restart_in_the_middle_of_a_rollout_finishes_it_and_rewrites_nothing(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1, m3=1))
    await world.deploy(replicas=9)
    await world.deploy("bystander", replicas=3)
    await world.configure("settings", {"key": "value"})
    await eventually_rolled_out(world, 9)
    await eventually_rolled_out(world, 3, "bystander")
    await settled(world, "settings-configmaps")
    before = await uids(world)

    async def untouched() -> list[object]:
        deployments, maps = await world.copies("bystander"), await world.copies("settings", CONFIGMAPS)
        return [
            [each["metadata"]["generation"] for each in deployments.values()],
            [each["metadata"]["resourceVersion"] for each in maps.values()],
        ]

    at_rest = await quiet(untouched, 0.5, world.patience)
    await world.set_image("nginx:1.30")

    async def begun() -> bool:
        return "nginx:1.30" in (await images(world)).values()

    await world.eventually(begun, "the new image has reached a member")
    await world.ground.restart_plane()
    source = await eventually_rolled_out(world, 9)
    assert source["metadata"]["generation"] == source["status"]["observedGeneration"] == 2
    assert await images(world) == dict.fromkeys(world.names, "nginx:1.30")
    assert await uids(world) == before
    assert await untouched() == at_rest
    await world.scale("web", 3)
    await eventually_rolled_out(world, 3)


@pytest.mark.real_time("what comes back does so from a folder")
async def test_objects_under_way_at_a_restart_arrive_once(world: World) -> None:
    await world.policy(schedulingMode="Duplicate")
    await asyncio.gather(*(world.configure(f"settings-{number}", {"key": "value"}) for number in range(OBJECTS)))
    await world.ground.restart_plane()
    for number in range(OBJECTS):
        await settled(world, f"settings-{number}-configmaps")
        assert len(await world.copies(f"settings-{number}", CONFIGMAPS)) == 3
