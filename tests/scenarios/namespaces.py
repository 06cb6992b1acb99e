"""Namespaces go everywhere without being asked, and away with all that is in them."""

from argosy.api import keys, resources
from argosy.cli.output.report import gather, report
from argosy.kube.client import Patch
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, NAMESPACES, exists
from tests.scenarios.seen import settled

__all__ = [
    "test_a_deleted_namespace_goes_from_every_member_with_all_that_is_in_it",
    "test_a_namespace_goes_everywhere_and_what_is_in_it_only_where_it_is_wanted",
    "test_a_namespace_that_opts_out_later_stays_where_it_is_and_goes_nowhere_else",
    "test_a_namespace_that_was_there_before_is_adopted_and_outlives_us",
]


async def test_a_namespace_goes_everywhere_and_what_is_in_it_only_where_it_is_wanted(world: World) -> None:
    for name in world.names:
        await world.eventually(lambda name=name: exists(world.member(name), NAMESPACES, world.namespace))
    label = {"metadata": {"labels": {"team": "blue"}}}
    await world.client.patch(NAMESPACES, world.namespace, label, kind=Patch.MERGE)

    async def labelled() -> bool:
        found = [await world.member(name).get(NAMESPACES, world.namespace) for name in world.names]
        return all(each["metadata"]["labels"].get("team") == "blue" for each in found)

    await world.eventually(labelled, "a changed label reaches the members")
    await world.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    await world.configure("wanted", {"key": "value"})
    metadata = {"name": "unwanted", "namespace": world.namespace}
    await world.client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await settled(world, "wanted-configmaps")
    assert (await world.copies("wanted", CONFIGMAPS)).keys() == {"m1"}
    assert await world.copies("unwanted", CONFIGMAPS) == {}
    assert not await world.exists(resources.FEDERATED_OBJECTS, "unwanted-configmaps", world.namespace)


async def test_a_deleted_namespace_goes_from_every_member_with_all_that_is_in_it(world: World) -> None:
    await world.policy(schedulingMode="Duplicate")
    await world.deploy(replicas=1)
    await world.configure("settings", {"key": "value"})
    await eventually_rolled_out_everywhere(world)
    await settled(world, "settings-configmaps")
    await world.client.delete(NAMESPACES, world.namespace)
    await world.ground.eventually_gone(NAMESPACES, world.namespace)
    for name in world.names:
        assert not await exists(world.member(name), NAMESPACES, world.namespace), (
            f"{name} is clean before the source goes"
        )
    left = f"{world.namespace}-namespaces"
    await world.ground.eventually_gone(resources.CLUSTER_FEDERATED_OBJECTS, left)


async def eventually_rolled_out_everywhere(world: World) -> None:
    """Duplicated, each member has the whole of it: the source's own count is not the sum."""
    await settled(world)
    await world.eventually_replicas(dict.fromkeys(world.names, 1))


async def test_a_namespace_that_was_there_before_is_adopted_and_outlives_us(world: World) -> None:
    ground, name = world.ground, f"{world.namespace}-before"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    theirs = await world.member("m1").create(NAMESPACES, manifest)
    try:
        await world.client.create(NAMESPACES, manifest)
        for member in world.names:
            await world.eventually(lambda member=member: _is_managed(world, member, name), f"managed in {member}")
        adopted = await world.member("m1").get(NAMESPACES, name)
        assert adopted["metadata"]["uid"] == theirs["metadata"]["uid"]
        assert adopted["metadata"]["annotations"][keys.ADOPTED] == "true"
        await world.client.delete(NAMESPACES, name)
        await ground.eventually_gone(NAMESPACES, name)
        for member in ("m2", "m3"):
            assert not await exists(world.member(member), NAMESPACES, name)

        async def left() -> bool:
            found = await world.member("m1").get(NAMESPACES, name)
            labels = found["metadata"]["labels"]
            return "deletionTimestamp" not in found["metadata"] and keys.MANAGED_LABEL not in labels

        await holds(left, 1.0)
    finally:
        await world.member("m1").delete(NAMESPACES, name)


async def _is_managed(world: World, member: str, name: str) -> bool:
    found = await world.member(member).get(NAMESPACES, name)
    return found["metadata"]["labels"].get(keys.MANAGED_LABEL) == "true"


async def test_a_namespace_that_opts_out_later_stays_where_it_is_and_goes_nowhere_else(world: World) -> None:
    for name in world.names:
        await world.eventually(lambda name=name: exists(world.member(name), NAMESPACES, world.namespace))
    out = {"metadata": {"annotations": {keys.NO_AUTO_PROPAGATION: "true"}}}
    await world.client.patch(NAMESPACES, world.namespace, out, kind=Patch.MERGE)

    async def told() -> bool:
        found = report(await gather(world.client, NAMESPACES, world.namespace, None)).without_effect
        return any(text.startswith(f"annotation {keys.NO_AUTO_PROPAGATION} came when") for text in found)

    await world.eventually(told, "the status says that it stays")
    label = {"metadata": {"labels": {"team": "blue"}}}
    await world.client.patch(NAMESPACES, world.namespace, label, kind=Patch.MERGE)

    async def labelled() -> bool:
        found = [await world.member(name).get(NAMESPACES, world.namespace) for name in world.names]
        return all(each["metadata"]["labels"].get("team") == "blue" for each in found)

    await world.eventually(labelled, "its copies are kept as it is")
    apart = f"{world.namespace}-apart"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": apart, **out["metadata"]}}
    await world.client.create(NAMESPACES, manifest)
    try:
        await holds(lambda: exists(world.client, NAMESPACES, apart), 1.0)
        assert [await exists(world.member(name), NAMESPACES, apart) for name in world.names] == [False] * 3
        assert not await world.exists(resources.CLUSTER_FEDERATED_OBJECTS, f"{apart}-namespaces")
    finally:
        await world.client.delete(NAMESPACES, apart)
