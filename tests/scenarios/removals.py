"""Every way in which a copy is taken away, let go or left (docs/dispatch.md has them in one table)."""

from typing import Any

from argosy.api import keys, resources
from argosy.api.conditions import RELEASED
from argosy.kube.client import Patch
from argosy.plan.copies.placement import to_be_removed
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SECRETS, exists, weights
from tests.scenarios.outages import cut
from tests.scenarios.seen import eventually_rolled_out, settled, tainted, uids

__all__ = [
    "test_a_cluster_that_leaves_for_good_deletes_or_lets_go_as_each_object_says_and_waits_until_they_are_gone",
    "test_a_copy_in_a_cluster_that_was_away_when_it_was_to_go_is_remembered_and_removed",
    "test_a_copy_that_a_member_refuses_to_have_managed_is_left_alone",
    "test_a_federated_object_deleted_by_hand_takes_nothing_along_before_that_is_confirmed",
    "test_a_member_that_is_away_leaves_when_it_is_back",
    "test_a_policy_that_is_deleted_and_a_source_that_is_federated_no_more_change_nothing",
    "test_copies_of_a_source_that_says_so_stay_when_it_is_deleted",
    "test_copies_that_are_no_longer_wanted_go_whatever_is_said_of_deletion",
]

EVERYWHERE: dict[str, Any] = {"schedulingMode": "Duplicate"}
_HERE = {"m1": 1, "m2": 1, "m3": 1}


async def placed_everywhere(world: World) -> dict[str, str]:
    await world.policy(**EVERYWHERE)
    await world.deploy(replicas=1)
    await world.eventually_replicas(_HERE)
    await settled(world)
    return await uids(world)


async def orphaning(world: World, value: str) -> None:
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.ORPHAN: value})

    async def mirrored() -> bool:
        return (await world.federated())["metadata"]["annotations"].get(keys.ORPHAN) == value

    await world.eventually(mirrored, "the federated object says it, too")


async def test_copies_of_a_source_that_says_so_stay_when_it_is_deleted(world: World) -> None:
    before = await placed_everywhere(world)
    await orphaning(world, "all")
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)
    await world.ground.eventually_gone(DEPLOYMENTS, "web", world.namespace)
    await world.ground.eventually_gone(resources.FEDERATED_OBJECTS, "web-deployments.apps", world.namespace)
    assert await uids(world) == before
    for copy in (await world.copies()).values():
        assert keys.MANAGED_LABEL not in copy["metadata"].get("labels", {})
        assert "deletionTimestamp" not in copy["metadata"]
    # Nobody else's: the same name is a conflict now, as with any object that was there before.
    await world.deploy(replicas=2)

    async def conflict() -> bool:
        return set((await world.propagation()).values()) == {"AlreadyExists"}

    await world.eventually(conflict)
    assert await world.replicas() == _HERE


async def test_copies_that_are_no_longer_wanted_go_whatever_is_said_of_deletion(world: World) -> None:
    before = await placed_everywhere(world)
    await orphaning(world, "all")
    async with tainted(world, "m3"):
        await world.eventually_replicas({"m1": 1, "m2": 1})
    await world.eventually_replicas(_HERE)
    now = await uids(world)
    assert now["m3"] != before["m3"], "it was deleted, not let go"
    assert [now[name] for name in ("m1", "m2")] == [before[name] for name in ("m1", "m2")]
    body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: None}}}
    await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
    await world.eventually_replicas({})
    assert await world.exists(resources.FEDERATED_OBJECTS, "web-deployments.apps", world.namespace), "it stays"
    assert await world.exists(DEPLOYMENTS, "web", world.namespace)


async def test_a_federated_object_deleted_by_hand_takes_nothing_along_before_that_is_confirmed(world: World) -> None:
    before = await placed_everywhere(world)
    name = "web-deployments.apps"
    first = (await world.federated())["metadata"]["uid"]
    await world.client.delete(resources.FEDERATED_OBJECTS, name, world.namespace)

    async def told() -> bool:
        conditions = (await world.federated())["status"]["conditions"]
        return any(each.get("reason") == "DeletionNotConfirmed" for each in conditions)

    await world.eventually(told, "it says that its source is not being deleted")

    async def untouched() -> bool:
        return await uids(world) == before

    await holds(untouched, 1.0)
    await world.annotate(resources.FEDERATED_OBJECTS, name, world.namespace, **{keys.CONFIRM_DELETION: "true"})

    async def made_anew() -> bool:
        if not await world.exists(resources.FEDERATED_OBJECTS, name, world.namespace):
            return False
        found = await uids(world)
        anew = (await world.federated())["metadata"]["uid"] != first
        return anew and found.keys() == before.keys() and not set(found.values()) & set(before.values())

    await world.eventually(made_anew, "once confirmed, object and copies go, and are made again from the source")
    await settled(world)


async def test_a_policy_that_is_deleted_and_a_source_that_is_federated_no_more_change_nothing(world: World) -> None:
    before = await placed_everywhere(world)
    await world.client.delete(resources.PROPAGATION_POLICIES, "policy", world.namespace)

    async def told() -> bool:
        conditions = (await world.federated())["status"]["conditions"]
        return any((each["type"], each.get("reason")) == ("Scheduled", "PolicyNotFound") for each in conditions)

    await world.eventually(told, "it says that its policy is missing")
    assert await uids(world) == before
    await world.policy(**EVERYWHERE)
    await settled(world)
    # Frozen: neither removed nor changed any more, until it is deleted.
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.NO_FEDERATED_RESOURCE: "true"})
    await world.scale("web", 2)

    async def frozen() -> bool:
        return await uids(world) == before and await world.replicas() == _HERE

    await holds(frozen, 2.0)
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)
    await world.ground.eventually_gone(DEPLOYMENTS, "web", world.namespace)
    assert await world.copies() == {}


async def test_a_copy_that_a_member_refuses_to_have_managed_is_left_alone(world: World) -> None:
    before = await placed_everywhere(world)
    member = world.member("m1")
    body = {"metadata": {"labels": {keys.MANAGED_LABEL: "false"}}}
    await member.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)

    async def told() -> bool:
        return await world.propagation() == {"m1": "ManagedLabelFalse", "m2": "OK", "m3": "OK"}

    await world.eventually(told)
    await world.scale("web", 2)
    await world.eventually_replicas({"m1": 1, "m2": 2, "m3": 2})
    body["metadata"]["labels"][keys.MANAGED_LABEL] = "true"
    await member.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
    await world.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
    assert await uids(world) == before
    await settled(world)
    body["metadata"]["labels"][keys.MANAGED_LABEL] = "false"
    await member.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
    await world.eventually(told)
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)
    await world.ground.eventually_gone(DEPLOYMENTS, "web", world.namespace)
    assert await uids(world) == {"m1": before["m1"]}, "nor is it deleted"


async def test_a_copy_in_a_cluster_that_was_away_when_it_was_to_go_is_remembered_and_removed(world: World) -> None:
    ground = world.ground
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=2)
    await world.configure("settings", {"key": "value"})
    await eventually_rolled_out(world, 2)
    await settled(world)
    await settled(world, "settings-configmaps")
    cut(ground.candidates["m2"].relay)
    await ground.eventually_unready("m2")
    body = {"spec": weights(m1=1)}
    await world.client.patch(resources.PROPAGATION_POLICIES, "policy", body, world.namespace, kind=Patch.MERGE)

    async def remembered() -> bool:
        found = [await world.federated(), await world.federated("settings-configmaps")]
        noted = [to_be_removed(each["metadata"]["annotations"]) for each in found]
        known = [[entry["cluster"] for entry in each["status"]["clusters"]] for each in found]
        return noted == [["m2"]] * 2 and known == [["m1", "m2"]] * 2

    await world.eventually(remembered, "both say that a copy is left there")
    # Over a restart, and if one of them is deleted meanwhile.
    await ground.stop_controllers()
    await ground.start_controllers()
    await world.client.delete(CONFIGMAPS, "settings", world.namespace)

    async def waits() -> bool:
        return await world.exists(CONFIGMAPS, "settings", world.namespace)

    await holds(waits, 1.0)
    assert (await world.copies()).keys() == {"m1", "m2"}
    ground.candidates["m2"].relay.heal()
    await ground.eventually_ready("m2")
    await world.eventually_replicas({"m1": 2})
    await ground.eventually_gone(CONFIGMAPS, "settings", world.namespace)
    assert await world.copies("settings", CONFIGMAPS) == {}

    async def forgotten() -> bool:
        return await world.propagation() == {"m1": "OK"}

    await world.eventually(forgotten)


async def test_a_cluster_that_leaves_for_good_deletes_or_lets_go_as_each_object_says_and_waits_until_they_are_gone(
    world: World,
) -> None:
    ground = world.ground
    await world.policy(**EVERYWHERE)
    await world.deploy(replicas=1)
    await world.configure("kept", {"key": "value"})
    await world.configure("held", {"key": "value"})
    await world.annotate(CONFIGMAPS, "kept", world.namespace, **{keys.ORPHAN: "all"})
    await world.annotate(NAMESPACES, world.namespace, None, **{keys.ORPHAN: "all"})
    for name in ("web-deployments.apps", "kept-configmaps", "held-configmaps"):
        await settled(world, name)

    async def mirrored() -> bool:
        found = await world.client.get(resources.CLUSTER_FEDERATED_OBJECTS, f"{world.namespace}-namespaces")
        both = [found, await world.federated("kept-configmaps")]
        return all(each["metadata"]["annotations"].get(keys.ORPHAN) == "all" for each in both)

    await world.eventually(mirrored)
    kept = (await uids(world, "kept", CONFIGMAPS))["m3"]
    member = world.member("m3")
    finalizers = {"metadata": {"finalizers": ["example.com/theirs"]}}
    await member.patch(CONFIGMAPS, "held", finalizers, world.namespace, kind=Patch.MERGE)
    try:
        await ground.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{keys.CASCADING_DELETE: "true"})
        await world.client.delete(resources.FEDERATED_CLUSTERS, "m3")

        async def only_held_is_left() -> bool:
            found = await world.propagation("held-configmaps")
            gone = "m3" not in await world.replicas()
            return gone and found["m3"] == "WaitingForCascadingDeletion"

        await world.eventually(only_held_is_left, "it waits for what cannot go yet")

        async def stays() -> bool:
            return await world.exists(resources.FEDERATED_CLUSTERS, "m3")

        await holds(stays, 1.5)
    finally:
        finalizers = {"metadata": {"finalizers": None}}
        await member.patch(CONFIGMAPS, "held", finalizers, world.namespace, kind=Patch.MERGE)
    await ground.eventually_gone(resources.FEDERATED_CLUSTERS, "m3")
    await world.client.delete(SECRETS, "m3", keys.SYSTEM_NAMESPACE)
    await ground.eventually_released("m3")
    left = await member.get(CONFIGMAPS, "kept", world.namespace)
    assert left["metadata"]["uid"] == kept
    assert keys.MANAGED_LABEL not in left["metadata"].get("labels", {})
    assert not await exists(member, CONFIGMAPS, "held", world.namespace)
    assert (await world.copies("held", CONFIGMAPS)).keys() == {"m1", "m2"}
    await member.delete(CONFIGMAPS, "kept", world.namespace)
    await world.annotate(NAMESPACES, world.namespace, None, **{keys.ORPHAN: None})
    await world.rejoin("m3")


async def test_a_member_that_is_away_leaves_when_it_is_back(world: World) -> None:
    ground = world.ground
    before = await placed_everywhere(world)
    relay = ground.candidates["m3"].relay
    cut(relay)
    await ground.eventually_unready("m3")
    await world.client.delete(resources.FEDERATED_CLUSTERS, "m3")

    async def told() -> bool:
        return (await ground.conditions("m3")).get(RELEASED, {}).get("status") == "False"

    await world.eventually(told, "it says that the member could not be released")
    # What is left to do is in the object: a restart goes on with it.
    await ground.stop_controllers()
    await ground.start_controllers()

    async def waits() -> bool:
        return await world.exists(resources.FEDERATED_CLUSTERS, "m3")

    await holds(waits, 1.0)
    relay.heal()
    await ground.eventually_gone(resources.FEDERATED_CLUSTERS, "m3")
    await ground.eventually_released("m3")
    assert await uids(world) == before, "its copies stay"
    await world.client.delete(SECRETS, "m3", keys.SYSTEM_NAMESPACE)
    await world.rejoin("m3")
    await settled(world)
    assert await uids(world) == before, "and are taken over as they are"
