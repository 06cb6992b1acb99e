"""Mistakes of all kinds, the controllers killed in the middle: undone, every copy has the uid and the version it had."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from argosy.api import keys, resources
from argosy.kube import timestamps
from argosy.kube.client import Patch
from argosy.kube.errors import Forbidden
from argosy.kube.resource import Resource
from argosy.plan.brake.orders import Order, Orders
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES
from tests.harness.webhook import webhook_server
from tests.scenarios.braking import MANY, braked, deployed, eventually_held, everywhere, order, present
from tests.scenarios.profiles import PROFILES, WEBHOOKS, there
from tests.scenarios.seen import settled

__all__ = [
    "test_a_deleted_type_config_harms_nothing_and_comes_back",
    "test_a_policy_whose_profile_vanished_takes_nothing_away",
    "test_a_webhook_that_suddenly_refuses_clusters_takes_nothing_away",
    "test_another_policy_for_all_takes_nothing_away",
    "test_members_deleted_in_bulk_keep_their_copies_and_join_again",
    "test_our_kinds_and_the_system_namespace_are_not_deleted_by_accident",
    "test_taints_in_a_loop_take_nothing_away",
    "test_wiped_cluster_labels_take_nothing_away",
]

Copies = dict[tuple[str, str], tuple[str, int]]
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_TAINT = [{"key": "maintenance", "effect": "NoExecute"}]
_FLEET = "fleet"
#: Seconds in which a mistake that nothing stops would have emptied members.
_LONG = 10.0

Change = Callable[[], Awaitable[None]]


async def unharmed(world: World, before: Copies, cause: str, make: Change, undo: Change) -> None:
    """The mistake is held, also by controllers that were killed meanwhile; once it is undone, nothing has been written."""
    await make()
    await world.ground.stop_controllers()
    await world.ground.start_controllers()
    await eventually_held(world, cause, MANY)
    await undo()
    await eventually_held(world, cause, 0)
    assert await present(world, DEPLOYMENTS) == before


async def cluster(world: World, name: str, change: dict[str, Any]) -> None:
    await world.client.patch(resources.FEDERATED_CLUSTERS, name, change, kind=Patch.MERGE)


async def clusters(world: World, names: list[str], change: dict[str, Any]) -> None:
    """All at once."""
    await asyncio.gather(*(cluster(world, name, change) for name in names))


async def labelled(world: World, names: list[str], value: str | None) -> None:
    await clusters(world, names, {"metadata": {"labels": {_FLEET: value}}})


async def tainted(world: World, names: list[str], taints: list[dict[str, str]] | None) -> None:
    await clusters(world, names, {"spec": {"taints": taints}})


async def all_settled(world: World) -> None:
    for each in (await world.client.list(resources.FEDERATED_OBJECTS, world.namespace)).items:
        await settled(world, each["metadata"]["name"])


async def relabel(world: World, policy: str) -> None:
    body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: policy}}}
    for number in range(MANY):
        await world.client.patch(DEPLOYMENTS, f"web-{number}", body, world.namespace, kind=Patch.MERGE)


async def test_wiped_cluster_labels_take_nothing_away(world: World) -> None:
    await labelled(world, world.names, "one")
    followed = {"rescheduleWhen": {"clusterLabelsChanged": True}}
    await world.policy(schedulingMode="Duplicate", clusterSelector={_FLEET: "one"}, reschedulePolicy=followed)
    for number in range(MANY):
        await world.deploy(f"web-{number}", replicas=1)
    before = await everywhere(world, DEPLOYMENTS, MANY)
    async with braked(world):
        two = world.names[1:]  # with none left, nothing is decided at all
        make, undo = (lambda value=value: labelled(world, two, value) for value in (None, "one"))
        await unharmed(world, before, "ClusterChanged", make, undo)
    await labelled(world, world.names, None)


async def test_taints_in_a_loop_take_nothing_away(world: World) -> None:
    before = await deployed(world)
    async with braked(world):
        two = world.names[1:]
        make, undo = (lambda taints=taints: tainted(world, two, taints) for taints in (_TAINT, None))
        await unharmed(world, before, "ClusterChanged", make, undo)


async def test_another_policy_for_all_takes_nothing_away(world: World) -> None:
    before = await deployed(world)
    await world.policy("elsewhere", schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    async with braked(world):
        await unharmed(
            world, before, "OtherPolicy", lambda: relabel(world, "elsewhere"), lambda: relabel(world, "policy")
        )


async def test_a_policy_whose_profile_vanished_takes_nothing_away(world: World) -> None:
    """What cannot be decided is not a removal: it is said, and nothing is written."""
    before = await deployed(world)
    async with braked(world):
        body: dict[str, Any] = {"spec": {"schedulingProfile": "missing"}}
        await world.client.patch(resources.PROPAGATION_POLICIES, "policy", body, world.namespace, kind=Patch.MERGE)
        await asyncio.sleep(_LONG)
        assert await present(world, DEPLOYMENTS) == before
        body = {"spec": {"schedulingProfile": None}}
        await world.client.patch(resources.PROPAGATION_POLICIES, "policy", body, world.namespace, kind=Patch.MERGE)
        await all_settled(world)
        assert await present(world, DEPLOYMENTS) == before


@pytest.mark.real_time("webhooks are asked over HTTP")
async def test_a_webhook_that_suddenly_refuses_clusters_takes_nothing_away(world: World) -> None:
    name = world.namespace
    async with webhook_server() as server:
        spec = {"payloadVersions": ["v1alpha1"], "urlPrefix": server.url, "filterPath": "/filter", "httpTimeout": "30s"}
        plugins = {"filter": {"enabled": [{"name": name, "type": "Webhook"}]}}
        async with there(world, WEBHOOKS, spec), there(world, PROFILES, {"plugins": plugins}):
            await world.policy(schedulingMode="Duplicate", schedulingProfile=name)
            for number in range(MANY):
                await world.deploy(f"web-{number}", replicas=1)
            before = await everywhere(world, DEPLOYMENTS, MANY)
            async with braked(world):

                async def nonsense() -> None:
                    server.behaviour["rejected"] = world.names[1:]
                    await world.client.patch(WEBHOOKS, name, {"spec": {"filterPath": "/v2/filter"}}, kind=Patch.MERGE)

                async def sense() -> None:
                    server.behaviour["rejected"] = []
                    await world.client.patch(WEBHOOKS, name, {"spec": {"filterPath": "/filter"}}, kind=Patch.MERGE)

                await unharmed(world, before, "ProfileChanged", nonsense, sense)


async def test_a_deleted_type_config_harms_nothing_and_comes_back(world: World) -> None:
    await world.policy(schedulingMode="Duplicate")
    for number in range(MANY):
        await world.configure(f"web-{number}", {"key": "value"})
    before = await everywhere(world, CONFIGMAPS, MANY)
    async with braked(world):
        configs, name = resources.FEDERATED_TYPE_CONFIGS, "configmaps"
        config = await world.client.get(configs, name)
        await world.client.delete(configs, name)
        await asyncio.sleep(_LONG)
        assert await present(world, CONFIGMAPS) == before
        kept = {key: config["metadata"].get(key) or {} for key in ("labels", "annotations")}
        await world.client.create(configs, {**config, "metadata": {"name": name, **kept}})
        await all_settled(world)
        assert await present(world, CONFIGMAPS) == before


async def test_our_kinds_and_the_system_namespace_are_not_deleted_by_accident(world: World) -> None:
    for plural in ("federatedobjects", "federatedclusters", "propagationpolicies"):
        with pytest.raises(Forbidden, match="argosy uninstall"):
            await world.client.delete(_DEFINITIONS, f"{plural}.{keys.GROUP}")
    with pytest.raises(Forbidden, match="argosy uninstall"):
        await world.client.delete(NAMESPACES, keys.SYSTEM_NAMESPACE)


async def test_members_deleted_in_bulk_keep_their_copies_and_join_again(world: World) -> None:
    before = await deployed(world)
    async with braked(world):
        for name in world.names:
            await world.client.delete(resources.FEDERATED_CLUSTERS, name)

        async def held() -> bool:
            listed = (await world.client.list(resources.FEDERATED_CLUSTERS)).items
            waiting = [each for each in listed if keys.LEAVE_HELD in (each["metadata"].get("annotations") or {})]
            return len(listed) == len(waiting) == len(world.names) - 1

        await world.eventually(held, "all but one of them wait")
        await asyncio.sleep(_LONG)
        assert await held()
        assert await present(world, DEPLOYMENTS) == before
        await order(world, Orders(confirmed=(Order("ClustersDeleted", timestamps.now(), "a test"),)))
        for name in world.names:
            await world.ground.eventually_gone(resources.FEDERATED_CLUSTERS, name)
        assert await present(world, DEPLOYMENTS) == before
    for name in world.names:
        await world.ground.forget_secret(name)
        await world.rejoin(name)
    uids = {key: uid for key, (uid, _) in (await everywhere(world, DEPLOYMENTS, MANY)).items()}
    assert uids == {key: uid for key, (uid, _) in before.items()}
