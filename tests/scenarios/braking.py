"""A mistake that hits many objects takes nothing away: undone, every copy has the uid and the version it had."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import orjson

from argosy.api import keys, resources
from argosy.control.options import Options
from argosy.kube import timestamps
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from argosy.plan.brake.orders import Order, Orders
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES

__all__ = [
    "test_a_narrowed_policy_takes_nothing_away_before_it_is_confirmed",
    "test_most_sources_that_are_pruned_are_rescued_with_their_copies",
    "test_policy_labels_that_vanish_take_nothing_away",
]

MANY = 8
_PRUNED = 24


@asynccontextmanager
async def braked(world: World) -> AsyncIterator[None]:
    """The controllers with the brake as it is by default, which other scenarios go without. Of those nothing is left to count."""
    ground = world.ground
    await ground.eventually_alone()
    before = ground.options
    await ground.stop_controllers()
    ground.options = Options()
    await ground.start_controllers()
    try:
        yield
    finally:
        await order(world, Orders())
        await ground.stop_controllers()
        ground.options = before
        await ground.start_controllers()


async def order(world: World, orders: Orders) -> None:
    text = orjson.dumps(msgspec.to_builtins(orders)).decode()
    body = {"metadata": {"annotations": {keys.BRAKE_ORDERS: text}}}
    await world.client.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, body, kind=Patch.MERGE)


async def present(world: World, resource: Resource) -> dict[tuple[str, str], tuple[str, int]]:
    """Uid and generation of each copy. A Deployment's resourceVersion grows with its status alone."""
    found = {}
    for member in world.names:
        for copy in (await world.member(member).list(resource, world.namespace)).items:
            metadata = copy["metadata"]
            if metadata["name"].startswith("web-"):
                found[member, metadata["name"]] = (metadata["uid"], metadata.get("generation", 0))
    return found


async def eventually_held(world: World, cause: str, count: int) -> None:
    async def held() -> bool:
        listed = (await world.client.list(resources.FEDERATED_OBJECTS, world.namespace)).items
        told = [
            condition["reason"]
            for each in listed
            for condition in (each.get("status") or {}).get("conditions") or ()
            if condition["type"] == "RemovalHeld"
        ]
        return told.count(cause) == count

    await world.eventually(held, f"{count} objects say that their removal is held because of {cause}")


async def deployed(world: World) -> dict[tuple[str, str], tuple[str, int]]:
    await world.policy(schedulingMode="Duplicate")
    for number in range(MANY):
        await world.deploy(f"web-{number}", replicas=1)
    return await everywhere(world, DEPLOYMENTS, MANY)


async def everywhere(world: World, resource: Resource, count: int) -> dict[tuple[str, str], tuple[str, int]]:
    async def arrived() -> bool:
        return len(await present(world, resource)) == count * len(world.names)

    await world.eventually(arrived, "every copy is there")
    return await present(world, resource)


async def relabel(world: World, value: str | None) -> None:
    for number in range(MANY):
        body: dict[str, Any] = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: value}}}
        await world.client.patch(DEPLOYMENTS, f"web-{number}", body, world.namespace, kind=Patch.MERGE)


async def narrow(world: World, *clusters: str) -> None:
    body = {"spec": {"placement": [{"cluster": name} for name in clusters] or None}}
    await world.client.patch(resources.PROPAGATION_POLICIES, "policy", body, world.namespace, kind=Patch.MERGE)


async def test_policy_labels_that_vanish_take_nothing_away(world: World) -> None:
    before = await deployed(world)
    async with braked(world):
        await relabel(world, None)
        await eventually_held(world, "PolicyNoLongerNamed", MANY)
        await relabel(world, "policy")
        await eventually_held(world, "PolicyNoLongerNamed", 0)
        assert await present(world, DEPLOYMENTS) == before


async def test_a_narrowed_policy_takes_nothing_away_before_it_is_confirmed(world: World) -> None:
    before = await deployed(world)
    async with braked(world):
        await narrow(world, "m1")
        await eventually_held(world, "PolicyChanged", MANY)
        await world.ground.stop_controllers()
        await world.ground.start_controllers()
        await asyncio.sleep(2)
        assert await present(world, DEPLOYMENTS) == before
        await order(world, Orders(confirmed=(Order("PolicyChanged", timestamps.now(), "a test"),)))

        async def left() -> bool:
            return {member for member, _ in await present(world, DEPLOYMENTS)} == {"m1"}

        await world.eventually(left, "what was confirmed is done")
        kept = {key: value for key, value in before.items() if key[0] == "m1"}
        assert await present(world, DEPLOYMENTS) == kept


async def test_most_sources_that_are_pruned_are_rescued_with_their_copies(world: World) -> None:
    await world.policy(schedulingMode="Duplicate")
    names = [f"web-{number}" for number in range(_PRUNED)]
    for name in names:
        await world.configure(name, {"key": "value"})
    before = await everywhere(world, CONFIGMAPS, _PRUNED)
    async with braked(world):
        for name in names:
            await world.client.delete(CONFIGMAPS, name, world.namespace)
        await eventually_held(world, "SourcesDeleted", _PRUNED)
        assert await present(world, CONFIGMAPS) == before
        await order(world, Orders(rescued=(Order("SourcesDeleted", timestamps.now(), "a test"),)))

        async def gone() -> bool:
            found = (await world.client.list(CONFIGMAPS, world.namespace)).items
            return not any(each["metadata"]["name"] in names for each in found)

        await world.eventually(gone, "the sources are gone")
        assert await present(world, CONFIGMAPS) == before
        await order(world, Orders())
        for name in names:
            await world.configure(name, {"key": "value"})

        async def managed() -> bool:
            found = [
                each for m in world.names for each in (await world.member(m).list(CONFIGMAPS, world.namespace)).items
            ]
            mine = [each["metadata"] for each in found if each["metadata"]["name"] in names]
            return all((each.get("labels") or {}).get(keys.MANAGED_LABEL) == "true" for each in mine)

        await world.eventually(managed, "the copies are managed again")
        assert await present(world, CONFIGMAPS) == before
