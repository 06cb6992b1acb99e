"""A Deployment's life: divided, counted, scaled, changed, overridden, driven out, deleted."""

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.harness.ground import World
from tests.harness.user import DEPLOYMENTS, weights
from tests.scenarios.seen import eventually_rolled_out, images, is_ready, pods_of, settled, tainted

__all__ = [
    "test_a_changed_image_rolls_out_everywhere",
    "test_a_deleted_deployment_goes_from_every_member_with_its_pods",
    "test_a_deployment_is_divided_runs_and_is_reported_back",
    "test_a_noexecute_taint_drives_work_to_other_members",
    "test_an_override_changes_one_member_and_is_taken_back",
    "test_scaling_up_and_down_starts_and_stops_only_the_difference",
]

EQUAL = weights(m1=1, m2=1, m3=1)


async def test_a_deployment_is_divided_runs_and_is_reported_back(world: World) -> None:
    await world.policy(**EQUAL)
    await world.deploy(replicas=9)
    await world.eventually_replicas({"m1": 3, "m2": 3, "m3": 3})
    source = await eventually_rolled_out(world, 9)
    for member in world.names:
        assert [is_ready(pod) for pod in await pods_of(world, member)] == [True] * 3
    assert source["metadata"]["generation"] == 1, "nothing we write counts as a change of the user's object"
    assert '"m1":3' in source["metadata"]["annotations"][keys.SCHEDULING]

    async def available() -> bool:
        conditions = (await world.source())["status"].get("conditions") or ()
        return {each["type"]: each["status"] for each in conditions}.get("Available") == "True"

    await world.eventually(available, "kubectl wait --for=condition=Available would end")
    copy = (await world.copies())["m1"]
    assert copy["metadata"]["labels"] == {keys.MANAGED_LABEL: "true"}, "policy labels stay at home"
    assert (await world.propagation()) == {"m1": "OK", "m2": "OK", "m3": "OK"}
    collected = await world.client.get(resources.COLLECTED_STATUSES, "web-deployments.apps", world.namespace)
    assert [each["cluster"] for each in collected["clusters"]] == ["m1", "m2", "m3"]


async def test_scaling_up_and_down_starts_and_stops_only_the_difference(world: World) -> None:
    await world.policy(**EQUAL)
    await world.deploy(replicas=6)
    await eventually_rolled_out(world, 6)
    first = {pod["metadata"]["name"] for member in world.names for pod in await pods_of(world, member)}
    await world.scale("web", 12)
    await eventually_rolled_out(world, 12)
    assert await world.replicas() == {"m1": 4, "m2": 4, "m3": 4}
    more = {pod["metadata"]["name"] for member in world.names for pod in await pods_of(world, member)}
    assert first < more, "nothing that ran was stopped"
    await world.scale("web", 3)
    await eventually_rolled_out(world, 3)
    assert await world.replicas() == {"m1": 1, "m2": 1, "m3": 1}
    await world.scale("web", 0)
    await eventually_rolled_out(world, 0)
    assert await world.replicas() == {"m1": 0, "m2": 0, "m3": 0}


async def test_a_changed_image_rolls_out_everywhere(world: World) -> None:
    await world.policy(**EQUAL)
    await world.deploy(replicas=6)
    await eventually_rolled_out(world, 6)
    await world.set_image("nginx:1.30")

    async def replaced() -> bool:
        pods = [pod for member in world.names for pod in await pods_of(world, member)]
        return len(pods) == 6 and {pod["spec"]["containers"][0]["image"] for pod in pods} == {"nginx:1.30"}

    await world.eventually(replaced, "all pods run the new image and no other one")
    source = await eventually_rolled_out(world, 6)
    assert source["status"]["observedGeneration"] == 2


async def test_an_override_changes_one_member_and_is_taken_back(world: World) -> None:
    mirror = {"operator": "replace", "path": "/spec/template/spec/containers/0/image", "value": "mirror/nginx:1"}
    rule = {"targetClusters": {"clusters": ["m2"]}, "overriders": {"jsonpatch": [mirror]}}
    await world.client.create(
        resources.OVERRIDE_POLICIES,
        {
            "apiVersion": keys.API_VERSION,
            "kind": "OverridePolicy",
            "metadata": {"name": "for-m2", "namespace": world.namespace},
            "spec": {"overrideRules": [rule]},
        },
    )
    await world.policy(**EQUAL)
    await world.deploy(replicas=3, **{keys.OVERRIDE_POLICY_LABEL: "for-m2"})
    await world.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    assert await images(world) == {"m1": "nginx:1.29", "m2": "mirror/nginx:1", "m3": "nginx:1.29"}
    await eventually_rolled_out(world, 3)
    label = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: None}}}
    await world.client.patch(DEPLOYMENTS, "web", label, world.namespace, kind=Patch.MERGE)

    async def plain() -> bool:
        return set((await images(world)).values()) == {"nginx:1.29"}

    await world.eventually(plain, "the override is taken back")
    await eventually_rolled_out(world, 3)


async def test_a_noexecute_taint_drives_work_to_other_members(world: World) -> None:
    await world.policy(**EQUAL)
    await world.deploy(replicas=6)
    await eventually_rolled_out(world, 6)
    async with tainted(world, "m3"):
        await world.eventually_replicas({"m1": 3, "m2": 3})
        await eventually_rolled_out(world, 6)

        async def forgotten() -> bool:
            federated = await world.federated()
            return keys.TO_BE_REMOVED not in federated["metadata"]["annotations"] and "m3" not in (
                await world.propagation()
            )

        await world.eventually(forgotten, "the removal is noted until the copy was seen gone, and no longer")


async def test_a_deleted_deployment_goes_from_every_member_with_its_pods(world: World) -> None:
    await world.policy(**EQUAL)
    await world.deploy(replicas=3)
    await eventually_rolled_out(world, 3)
    await settled(world)
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)
    await world.ground.eventually_gone(DEPLOYMENTS, "web", world.namespace)
    assert await world.copies() == {}
    await world.ground.eventually_gone(resources.FEDERATED_OBJECTS, "web-deployments.apps", world.namespace)
    await world.ground.eventually_gone(resources.COLLECTED_STATUSES, "web-deployments.apps", world.namespace)

    async def no_pods() -> bool:
        return not [pod for member in world.names for pod in await pods_of(world, member)]

    await world.eventually(no_pods, "the pods are gone")
