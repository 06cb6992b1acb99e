"""Replicas go where they can run: out of full clusters, out of failed ones, out of those a user wants empty; and come back."""

import asyncio
import contextlib
import datetime
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

from argosy.api import keys, resources
from argosy.kube import clock
from argosy.kube.client import Patch
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Partial
from argosy.plan.copies.placement import to_be_removed
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import DEPLOYMENTS, NODES, deployment, weights
from tests.scenarios.outages import lose, regain
from tests.scenarios.seen import eventually_rolled_out, is_ready, pods_of, ready_pods, settled, uids

__all__ = [
    "test_a_user_empties_a_cluster_for_a_time",
    "test_a_workload_leaves_a_failed_cluster_and_comes_back_a_replica_at_a_time",
    "test_replicas_leave_a_full_cluster_and_are_not_brought_back_needlessly",
]

_CLUSTERS = resources.FEDERATED_CLUSTERS
_FOLLOWS_ITS_WEIGHTS = {
    "rescheduleWhen": {"policyContentChanged": True},
    "replicaRescheduling": {"avoidDisruption": False},
}
_EQUAL = {**weights(m1=1, m2=1, m3=1), "reschedulePolicy": _FOLLOWS_ITS_WEIGHTS}


async def test_replicas_leave_a_full_cluster_and_are_not_brought_back_needlessly(world: World) -> None:
    migration = {"when": {"podUnschedulableFor": "1s"}}
    await world.policy(**weights(m1=1, m2=1), autoMigration=migration)
    manifest = deployment("web", 2, "policy", world.namespace)
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    await world.client.create(DEPLOYMENTS, manifest)
    await world.eventually_replicas({"m1": 1, "m2": 1})
    await eventually_rolled_out(world, 2)
    async with full(world, "m1"), history(world) as divisions:
        await world.scale("web", 8)
        await world.eventually_replicas({"m1": 1, "m2": 7})
        await eventually_rolled_out(world, 8)

        async def told() -> bool:
            events = await world.events("AutoMigrationInfoUpdated")
            return any('"estimatedCapacity":{"m1":1}' in each["message"] for each in events)

        await world.eventually(told, "what m1 can run is told")
        await world.eventually(lambda: divisions[-1] == {"m1": 1, "m2": 7}, "the history has come so far")
        ran = {pod["metadata"]["name"] for pod in await pods_of(world, "m2")}
        moved = len(divisions)
        await world.scale("web", 9)
        await eventually_rolled_out(world, 9)
        await world.eventually(lambda: divisions[-1] == {"m1": 1, "m2": 8}, "the history has come so far")
        assert divisions[moved:] == [{"m1": 1, "m2": 8}], "a cluster known to be full is not tried again"

    async def forgotten() -> bool:
        return "estimatedCapacity" not in (await world.federated())["metadata"]["annotations"][keys.AUTO_MIGRATION_INFO]

    await world.eventually(forgotten, "m1 is known to have room again")

    async def stays() -> bool:
        return await world.replicas() == {"m1": 1, "m2": 8}

    await holds(stays, 1.0)
    assert ran <= {pod["metadata"]["name"] for pod in await pods_of(world, "m2")}, "nothing that ran was stopped"
    await world.scale("web", 11)
    await world.eventually_replicas({"m1": 3, "m2": 8})
    await eventually_rolled_out(world, 11)


async def test_a_user_empties_a_cluster_for_a_time(world: World) -> None:
    await world.policy(**_EQUAL)
    await world.deploy(replicas=6)
    await world.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})

    def wish(seconds: float) -> str:
        end = clock.now() + datetime.timedelta(seconds=seconds)
        until = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        return json.dumps(
            {
                "replicasMigrations": [{"cluster": "m1", "limitedCapacity": 0}],
                "workloadMigrations": [{"cluster": "m3", "validUntil": until}],
            }
        )

    await wishes(world, wish(3600))
    await world.eventually_replicas({"m2": 6})
    await wishes(world, wish(3))
    await world.eventually_replicas({"m2": 3, "m3": 3})

    async def told() -> bool:
        found = (await world.source())["metadata"]["annotations"]
        return found.get(keys.APPLIED_MIGRATION_CONFIGURATION) == '{"limitedCapacity":{"m1":0}}'

    await world.eventually(told, "the source says what is still in force")
    await wishes(world, '{"replicasMigrations":[{"cluster":"m1"}]}')

    async def refused() -> bool:
        found = await world.events("ParseMigrationConfiguration")
        return any(each["involvedObject"].get("namespace") == world.namespace for each in found)

    await world.eventually(refused, "a wish that makes no sense is told")
    assert await world.replicas() == {"m2": 3, "m3": 3}
    await wishes(world, None)
    await world.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})


async def test_a_workload_leaves_a_failed_cluster_and_comes_back_a_replica_at_a_time(world: World) -> None:
    ground = world.ground
    await world.policy(**_EQUAL)
    await world.annotate(resources.PROPAGATION_POLICIES, "policy", world.namespace, **{keys.FAILBACK_REPLICAS: "1"})
    await world.policy("faithful", tolerations=[{"key": keys.UNREADY_TAINT, "operator": "Exists"}], **_EQUAL)
    await world.deploy(replicas=9)
    await world.deploy("faithful", replicas=3, policy="faithful")
    await eventually_rolled_out(world, 9)
    await eventually_rolled_out(world, 3, "faithful")
    await settled(world)
    faithful = await uids(world, "faithful")
    async with failing_over(world, "m3"), history(world) as divisions:
        await lose(ground.candidates["m3"])
        await world.eventually(lambda: divisions[-1].keys() == {"m1", "m2"}, "its replicas are placed elsewhere")
        assert sum(divisions[-1].values()) == 9
        noted = to_be_removed((await world.federated())["metadata"]["annotations"])
        assert noted == ["m3"], "what cannot be reached is not forgotten"

        async def serving() -> bool:
            return sum(map(is_ready, [pod for member in ("m1", "m2") for pod in await pods_of(world, member)])) == 9

        await world.eventually(serving, "the others run them")
        left = len(divisions)
        await regain(ground.candidates["m3"])
        fewest = await fewest_ready_until(world, lambda: divisions[-1] == {"m1": 3, "m2": 3, "m3": 3})
        assert fewest >= 9, "a replica stops when another one is available instead"
        back = [each.get("m3", 0) for each in divisions[left - 1 :]]
        assert back == sorted(back)
        assert all(later - sooner <= 1 for sooner, later in itertools.pairwise(back)), back
        assert {sum(each.values()) for each in divisions[left - 1 :]} <= {9, 10}
    await eventually_rolled_out(world, 9)
    assert await uids(world, "faithful") == faithful, "who tolerates it stays"
    assert keys.FAILBACK not in (await world.federated())["metadata"]["annotations"]


@contextlib.asynccontextmanager
async def full(world: World, member: str) -> AsyncIterator[None]:
    """No new pod finds a node there."""
    await _cordon(world, member, True)
    try:
        yield
    finally:
        await _cordon(world, member, False)


async def _cordon(world: World, member: str, unschedulable: bool) -> None:
    client = world.member(member)
    for node in (await client.list(NODES)).items:
        body = {"spec": {"unschedulable": unschedulable}}
        await client.patch(NODES, node["metadata"]["name"], body, kind=Patch.MERGE)


@contextlib.asynccontextmanager
async def failing_over(world: World, cluster: str) -> AsyncIterator[None]:
    """The cluster is given up soon after it is unready, and trusted soon after it is ready."""
    await world.annotate(_CLUSTERS, cluster, None, **{keys.FAILOVER_AFTER: "1s", keys.FAILBACK_AFTER: "1s"})
    try:
        yield
    finally:
        await regain(world.ground.candidates[cluster])
        await world.annotate(_CLUSTERS, cluster, None, **{keys.FAILOVER_AFTER: None})

        async def trusted() -> bool:
            return not (await world.client.get(_CLUSTERS, cluster))["spec"].get("taints")

        await world.eventually(trusted, f"{cluster} is trusted again")
        await world.annotate(_CLUSTERS, cluster, None, **{keys.FAILBACK_AFTER: None})


@contextlib.asynccontextmanager
async def history(world: World, name: str = "web-deployments.apps") -> AsyncIterator[list[dict[str, int]]]:
    """All divisions of replicas the federated object has had, the present one first."""
    divisions: list[dict[str, int]] = []

    def observe(change: Change[Partial]) -> None:
        if change.new is None or change.new.metadata.name != name:
            return
        division: dict[str, int] = json.loads(change.new.metadata.annotations[keys.SCHEDULING])["placement"]
        if not divisions or divisions[-1] != division:
            divisions.append(division)

    informer: Informer[Partial] = Informer(
        world.client, resources.FEDERATED_OBJECTS, Partial, namespace=world.namespace
    )
    informer.add_handler(observe)
    watching = asyncio.ensure_future(informer.run())
    try:
        await informer.synced.wait()
        yield divisions
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def fewest_ready_until(world: World, done: Any) -> int:
    """The smallest number of ready pods that was seen until then."""
    fewest = await ready_pods(world)

    async def probe() -> bool:
        nonlocal fewest
        fewest = min(fewest, await ready_pods(world))
        return bool(done())

    await world.eventually(probe, "it has come back")
    return fewest


async def wishes(world: World, text: str | None) -> None:
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.MIGRATION_CONFIGURATION: text})
