"""What runs stays where it is, unless a filter drives it out or its policy says so; what is new obeys every rule."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from argosy.api import keys, resources
from argosy.cli.output.report import gather, report
from argosy.kube.client import Patch
from tests.harness.ground import World
from tests.harness.user import DEPLOYMENTS, deployment, weights
from tests.scenarios.seen import eventually_rolled_out, settled, tainted, uids

__all__ = [
    "test_a_duplicated_workload_keeps_its_cluster_whatever_happens_to_others",
    "test_a_minimum_gives_way_to_a_taint",
    "test_a_taint_counts_whatever_a_policy_says_of_rescheduling",
    "test_new_replicas_keep_apart_from_a_workload_that_came_later",
    "test_what_finds_no_room_is_told_and_starts_when_there_is_some",
]

_MOVES = {"replicaRescheduling": {"avoidDisruption": False}}


async def test_a_duplicated_workload_keeps_its_cluster_whatever_happens_to_others(world: World) -> None:
    await world.policy(schedulingMode="Duplicate", maxClusters=1)
    await world.deploy(replicas=4)
    await eventually_rolled_out(world, 4)
    await settled(world)
    before = await uids(world)
    [cluster] = before
    await world.scale("web", 5)
    await eventually_rolled_out(world, 5)
    other = next(name for name in world.names if name != cluster)
    for effect in ("NoSchedule", "NoExecute"):
        async with tainted(world, other, effect):
            await _seen_by_the_controllers(world)
    await world.scale("web", 3)
    await eventually_rolled_out(world, 3)
    assert await uids(world) == before


async def test_a_taint_counts_whatever_a_policy_says_of_rescheduling(world: World) -> None:
    """What a policy leaves out of `reschedulePolicy` has its default."""
    await world.policy(**weights(m1=1, m2=1), reschedulePolicy=_MOVES)
    await world.deploy(replicas=4)
    await world.eventually_replicas({"m1": 2, "m2": 2})
    async with tainted(world, "m1"):
        await world.eventually_replicas({"m2": 4})


async def test_a_minimum_gives_way_to_a_taint(world: World) -> None:
    await world.policy(**weights(m1=1, m2=9), reschedulePolicy=_MOVES)
    await world.deploy(replicas=10)
    await world.eventually_replicas({"m1": 1, "m2": 9})
    async with tainted(world, "m1", "NoSchedule"):
        await _seen_by_the_controllers(world)
        placement = [
            {"cluster": "m1", "preferences": {"minReplicas": 4}},
            {"cluster": "m2", "preferences": {"weight": 1}},
        ]
        await _change_policy(world, placement=placement)
        await _decided_with(world, generation=2)
        assert await world.replicas() == {"m1": 1, "m2": 9}


async def test_new_replicas_keep_apart_from_a_workload_that_came_later(world: World) -> None:
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "cache"}}}]}
    await world.policy(**weights(m1=1, m2=1, m3=1), workloadAntiAffinity=apart)
    await world.policy("third", **weights(m3=1))
    await world.deploy(replicas=6)
    await world.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
    await world.client.create(DEPLOYMENTS, deployment("cache", 1, "third", world.namespace, app="cache"))
    await world.eventually_replicas({"m3": 1}, "cache")
    await settled(world, "cache-deployments.apps")
    await world.scale("web", 12)
    await world.eventually_replicas({"m1": 5, "m2": 5, "m3": 2})


async def test_what_finds_no_room_is_told_and_starts_when_there_is_some(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1, m3=1), limitReplicasToAvailable=True)
    manifest = deployment("web", 3, "policy", world.namespace)
    requests = {"requests": {"memory": "1Ti"}}
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = requests
    await world.client.create(DEPLOYMENTS, manifest)

    async def told() -> list[str]:
        facts = await gather(world.client, DEPLOYMENTS, "web", world.namespace)
        return [line for line in report(facts).waiting if "3" in line and "room" in line]

    await world.eventually(told, "status says how many wait for room")
    assert await world.copies() == {}
    requests["requests"]["memory"] = "1Mi"
    await world.client.patch(DEPLOYMENTS, "web", {"spec": manifest["spec"]}, world.namespace)
    await eventually_rolled_out(world, 3)


async def _change_policy(world: World, **spec: Any) -> None:
    await world.client.patch(
        resources.PROPAGATION_POLICIES, "policy", {"spec": spec}, world.namespace, kind=Patch.MERGE
    )


async def _decided_with(world: World, generation: int) -> None:
    """The stored decision is of this generation of the policy, and every cluster has what it says."""

    async def decided() -> bool:
        record = (await world.federated())["metadata"]["annotations"].get(keys.DECISION, "")
        return f'"policyGeneration":{generation}' in record

    await world.eventually(decided, "the policy's change was decided on")
    await settled(world)


async def _seen_by_the_controllers(world: World) -> None:
    """An object made now is decided on with the fleet as it is; so is everything that was there before."""
    async with _probe(world) as name:
        await settled(world, f"{name}-deployments.apps")


@asynccontextmanager
async def _probe(world: World) -> AsyncIterator[str]:
    name = "probe"
    await world.deploy(name, replicas=0)
    try:
        yield name
    finally:
        await world.client.delete(DEPLOYMENTS, name, world.namespace)
        await world.ground.eventually_gone(DEPLOYMENTS, name, world.namespace)
