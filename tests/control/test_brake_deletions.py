"""Most sources are deleted within a minute: their copies stay until that is confirmed, or they are rescued."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import orjson
import pytest

from argosy.api import keys, resources
from argosy.control.options import Options
from argosy.kube import timestamps
from argosy.kube.client import Patch
from argosy.plan.brake.orders import Order, Orders
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Federation

NAMES = [f"map-{number}" for number in range(24)]


@pytest.fixture
async def fed() -> AsyncIterator[Federation]:
    async with Federation(2, options=Options()) as federation:
        await federation.policy(schedulingMode="Duplicate")
        for name in NAMES:
            await federation.configure(name, {"key": "value"})
        await eventually(lambda: arrived(federation))
        yield federation


async def copies(fed: Federation) -> dict[tuple[str, str], str]:
    """Their uids."""
    return {
        (member, copy["metadata"]["name"]): copy["metadata"]["uid"]
        for member in fed.names
        for copy in (await fed.member(member).list(CONFIGMAPS)).items
        if copy["metadata"]["name"].startswith("map-")
    }


async def arrived(fed: Federation) -> bool:
    return len(await copies(fed)) == len(NAMES) * len(fed.names)


async def held(fed: Federation) -> set[str]:
    """Names of the federated objects that say that their copies stay."""
    return {
        each["metadata"]["name"]
        for each in (await fed.client.list(resources.FEDERATED_OBJECTS)).items
        for condition in (each.get("status") or {}).get("conditions") or ()
        if condition["type"] == "RemovalHeld" and condition["reason"] == "SourcesDeleted"
    }


async def order(fed: Federation, orders: Orders) -> None:
    text = orjson.dumps(msgspec.to_builtins(orders)).decode()
    body = {"metadata": {"annotations": {keys.BRAKE_ORDERS: text}}}
    await fed.client.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, body, kind=Patch.MERGE)


async def prune(fed: Federation) -> None:
    for name in NAMES:
        await fed.client.delete(CONFIGMAPS, name, "default")

    async def all_held():
        return len(await held(fed)) == len(NAMES)

    await eventually(all_held)


async def sources(fed: Federation) -> list[str]:
    found = (await fed.client.list(CONFIGMAPS)).items
    return [each["metadata"]["name"] for each in found if each["metadata"]["name"] in NAMES]


async def test_a_prune_of_everything_is_held_over_a_restart_until_it_is_confirmed(fed):
    before = await copies(fed)
    await prune(fed)
    await fed.stop_controllers()
    await asyncio.sleep(300)
    await fed.start_controllers()
    await asyncio.sleep(60)
    assert await copies(fed) == before
    assert len(await sources(fed)) == len(NAMES)
    await order(fed, Orders(confirmed=(Order("SourcesDeleted", timestamps.now(), "ops"),)))

    async def gone():
        return not await sources(fed) and not await copies(fed)

    await eventually(gone)


async def test_what_is_rescued_keeps_running_and_is_adopted_when_it_is_applied_again(fed):
    before = await copies(fed)
    await prune(fed)
    await order(fed, Orders(rescued=(Order("SourcesDeleted", timestamps.now(), "ops"),)))

    async def gone():
        return not await sources(fed)

    await eventually(gone)
    assert await copies(fed) == before
    await order(fed, Orders())
    for name in NAMES:
        await fed.configure(name, {"key": "value"})

    async def managed():
        found = [copy for member in fed.names for copy in (await fed.member(member).list(CONFIGMAPS)).items]
        mine = [each["metadata"] for each in found if each["metadata"]["name"] in NAMES]
        return all((each.get("labels") or {}).get(keys.MANAGED_LABEL) == "true" for each in mine) and not any(
            keys.RESCUED in each["annotations"] for each in mine
        )

    await eventually(managed)
    assert await copies(fed) == before


async def test_a_deleted_namespace_with_most_sources_is_held_and_confirmed():
    async with Federation(2, options=Options()) as fed:
        await fed.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await fed.policy(schedulingMode="Duplicate", namespace="shop")
        labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
        for name in NAMES:
            metadata = {"name": name, "namespace": "shop", "labels": labels}
            await fed.client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await eventually(lambda: arrived(fed))
        await fed.client.delete(NAMESPACES, "shop")

        async def all_held():
            return len(await held(fed)) >= len(NAMES)

        await eventually(all_held)
        await asyncio.sleep(30)
        assert await arrived(fed)
        await order(fed, Orders(confirmed=(Order("SourcesDeleted", timestamps.now(), "ops"),)))

        async def gone():
            return not await copies(fed)

        await eventually(gone)


async def test_a_single_deletion_goes_on_after_a_moment_and_takes_its_followers_along(fed):
    await fed.client.create(
        CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}, "default"
    )
    await fed.deploy(replicas=1)
    volume = {
        "op": "add",
        "path": "/spec/template/spec/volumes",
        "value": [{"name": "s", "configMap": {"name": "settings"}}],
    }
    await fed.client.patch(DEPLOYMENTS, "web", [volume], "default", kind=Patch.JSON)

    async def followed():
        return [await fed.member(name).get(CONFIGMAPS, "settings", "default") for name in fed.names]

    await eventually(followed)
    await fed.client.delete(DEPLOYMENTS, "web", "default")

    async def gone():
        found = [copy for name in fed.names for copy in (await fed.member(name).list(CONFIGMAPS)).items]
        return not any(each["metadata"]["name"] == "settings" for each in found)

    await eventually(gone)
    assert not await held(fed)


async def test_a_prune_while_the_controllers_are_down_is_held_as_well(fed):
    before = await copies(fed)
    await fed.stop_controllers()
    for name in NAMES:
        await fed.client.delete(CONFIGMAPS, name, "default")
    await asyncio.sleep(5)
    await fed.start_controllers()

    async def all_held():
        return len(await held(fed)) == len(NAMES)

    await eventually(all_held)
    await asyncio.sleep(60)
    assert await copies(fed) == before


async def test_a_second_prune_is_held_as_the_first_one_was(fed):
    """A GitOps loop that is still wrong deletes again what was applied again."""
    await prune(fed)
    await order(fed, Orders(rescued=(Order("SourcesDeleted", timestamps.now(), "ops"),)))

    async def gone():
        return not await sources(fed)

    await eventually(gone)
    await order(fed, Orders())
    for name in NAMES:
        await fed.configure(name, {"key": "value"})
    await eventually(lambda: arrived(fed))
    before = await copies(fed)
    await asyncio.sleep(300)
    await prune(fed)
    await asyncio.sleep(60)
    assert await copies(fed) == before
