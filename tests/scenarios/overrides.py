"""Override policies: every overrider, both scopes together, and clusters whose override cannot be applied."""

from typing import Any

from argosy.api import keys, resources
from argosy.cli.output.diff import differing
from argosy.cli.output.report import gather, report
from argosy.kube.client import Patch
from argosy.kube.errors import NotFound
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, weights
from tests.scenarios.seen import eventually_rolled_out, images, settled

__all__ = [
    "test_a_cluster_that_is_newly_placed_gets_nothing_until_its_override_can_be_applied",
    "test_an_override_that_cannot_be_applied_holds_its_cluster_alone",
    "test_an_overrider_of_containers_on_a_kind_without_pods_is_told",
    "test_every_overrider_changes_the_copies_it_is_meant_for",
]

EQUAL = weights(m1=1, m2=1, m3=1)
IN_M2 = {"clusters": ["m2"]}
WRONG = {"jsonpatch": [{"operator": "replace", "path": "/spec/no/such/field", "value": 1}]}


async def override(
    world: World, *rules: dict[str, Any], name: str = "differ", resource: Any = resources.OVERRIDE_POLICIES
) -> None:
    """Create the policy, or change it."""
    place = world.namespace if resource.namespaced else None
    spec = {"overrideRules": list(rules)}
    try:
        await world.client.patch(resource, name, {"spec": spec}, place, kind=Patch.MERGE)
    except NotFound:
        metadata = {"name": name, **({"namespace": place} if place else {})}
        body = {"apiVersion": keys.API_VERSION, "kind": resource.kind, "metadata": metadata, "spec": spec}
        await world.client.create(resource, body)


async def eventually_propagated(world: World, **states: str) -> None:
    async def probe() -> bool:
        return await world.propagation() == states

    await world.eventually(probe, f"the federated object says {states}")


async def name_policy(world: World, name: str) -> None:
    label = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: name}}}
    await world.client.patch(DEPLOYMENTS, "web", label, world.namespace, kind=Patch.MERGE)


async def waits_for(world: World) -> str:
    return "\n".join(report(await gather(world.client, DEPLOYMENTS, "web", world.namespace)).waiting)


async def test_every_overrider_changes_the_copies_it_is_meant_for(world: World) -> None:
    await world.policy(**EQUAL)
    whole = f"everywhere-{world.namespace}"
    mirror = {"operations": [{"imageComponent": "Registry", "operator": "addIfAbsent", "value": "mirror.local:5000"}]}
    everywhere = {"overriders": {"image": [mirror], "labels": [{"operator": "addIfAbsent", "value": {"tier": "web"}}]}}
    container = {"containerName": "main"}
    everywhere["overriders"]["envs"] = [{**container, "operator": "delete", "value": [{"name": "NOTHING"}]}]
    in_m2 = {
        "image": [{"containerNames": ["main"], "operations": [{"imageComponent": "Tag", "value": "1.30"}]}],
        "command": [{**container, "operator": "append", "value": ["/bin/serve"]}],
        "args": [
            {**container, "operator": "overwrite", "value": ["--region", "two", "--verbose"]},
            {**container, "operator": "delete", "value": ["--verbose"]},
        ],
        "envs": [{**container, "operator": "addIfAbsent", "value": [{"name": "REGION", "value": "two"}]}],
        "annotations": [{"operator": "addIfAbsent", "value": {"owner": "team-two"}}],
        "labels": [{"operator": "overwrite", "value": {"tier": "edge"}}],
        "jsonpatch": [{"operator": "add", "path": "/spec/minReadySeconds", "value": 1}],
    }
    try:
        await override(world, everywhere, name=whole, resource=resources.CLUSTER_OVERRIDE_POLICIES)
        await override(world, {"targetClusters": IN_M2, "overriders": in_m2})
        names = {keys.OVERRIDE_POLICY_LABEL: "differ", keys.CLUSTER_OVERRIDE_POLICY_LABEL: whole}
        await world.deploy(replicas=3, **names)
        await world.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
        plain = "mirror.local:5000/nginx:1.29"
        assert await images(world) == {"m1": plain, "m2": "mirror.local:5000/nginx:1.30", "m3": plain}
        await settled(world)
        copies = await world.copies()
        assert {name: copy["metadata"]["labels"].get("tier") for name, copy in copies.items()} == {
            "m1": "web",
            "m2": "edge",
            "m3": "web",
        }
        copy, pod = copies["m2"], copies["m2"]["spec"]["template"]["spec"]["containers"][0]
        assert pod["command"] == ["/bin/serve"]
        assert pod["args"] == ["--region", "two"]
        assert pod["env"] == [{"name": "REGION", "value": "two"}]
        assert copy["metadata"]["annotations"]["owner"] == "team-two"
        assert copy["spec"]["minReadySeconds"] == 1
        assert "command" not in copies["m1"]["spec"]["template"]["spec"]["containers"][0]
        await eventually_rolled_out(world, 3)
        await _who_made_it(world, whole)
    finally:
        await world.client.delete(resources.CLUSTER_OVERRIDE_POLICIES, whole)


async def _who_made_it(world: World, whole: str) -> None:
    facts = await gather(world.client, DEPLOYMENTS, "web", world.namespace)
    by = {each.cluster: {field.path: field.by for field in each.fields} for each in differing(facts)}
    image = "spec.template.spec.containers[main].image"
    assert by["m1"] == {
        "metadata.labels.tier": f"ClusterOverridePolicy {whole}, overrideRules[0]",
        "spec.replicas": "the scheduler",
        image: f"ClusterOverridePolicy {whole}, overrideRules[0]",
    }
    assert by["m2"][image] == by["m2"]["spec.minReadySeconds"] == "OverridePolicy differ, overrideRules[0]"
    (one,) = differing(facts, "m2")
    assert next(field.value for field in one.fields if field.path == image) == "mirror.local:5000/nginx:1.30"


async def test_an_override_that_cannot_be_applied_holds_its_cluster_alone(world: World) -> None:
    await world.policy(**EQUAL)
    tag = {"image": [{"operations": [{"imageComponent": "Registry", "value": "mirror.local"}]}]}
    await override(world, {"targetClusters": IN_M2, "overriders": tag})
    await world.deploy(replicas=6, **{keys.OVERRIDE_POLICY_LABEL: "differ"})
    await world.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
    await eventually_rolled_out(world, 6)
    await settled(world)
    before = (await world.copies())["m2"]
    await override(world, {"targetClusters": IN_M2, "overriders": tag}, {"targetClusters": IN_M2, "overriders": WRONG})
    await eventually_propagated(world, m1="OK", m2="ApplyOverridesFailed", m3="OK")
    await world.set_image("nginx:1.30")
    await world.scale("web", 9)
    await world.eventually_replicas({"m1": 3, "m2": 2, "m3": 3})

    async def changed() -> bool:
        return await images(world) == {"m1": "nginx:1.30", "m2": "mirror.local/nginx:1.29", "m3": "nginx:1.30"}

    await world.eventually(changed, "the others get the image, and the held one none without its override")
    await eventually_propagated(world, m1="OK", m2="ApplyOverridesFailed", m3="OK")
    after = (await world.copies())["m2"]
    assert (after["spec"], after["metadata"]["annotations"]) == (before["spec"], before["metadata"]["annotations"])
    told = await waits_for(world)
    assert "m2: ApplyOverridesFailed: OverridePolicy differ, overrideRules[1], cluster m2: jsonpatch: " in told
    assert "m2: its copy keeps 2 replicas, and 3 are wanted" in told
    await override(world, {"targetClusters": IN_M2, "overriders": tag})
    await world.eventually_replicas({"m1": 3, "m2": 3, "m3": 3})
    assert (await images(world))["m2"] == "mirror.local/nginx:1.30"
    await eventually_rolled_out(world, 9)
    federated = await settled(world)
    assert keys.HELD_COPIES not in federated["metadata"]["annotations"]


async def test_a_cluster_that_is_newly_placed_gets_nothing_until_its_override_can_be_applied(world: World) -> None:
    await world.policy("one", **weights(m1=1))
    await world.policy("two", **weights(m1=1, m2=1))
    await override(world, {"targetClusters": IN_M2, "overriders": WRONG})
    await world.deploy(replicas=4, policy="one", **{keys.OVERRIDE_POLICY_LABEL: "differ"})
    await world.eventually_replicas({"m1": 4})
    await settled(world)
    await name_policy(world, "two")
    await world.scale("web", 8)
    await eventually_propagated(world, m1="OK", m2="ApplyOverridesFailed")
    assert set(await world.copies()) == {"m1"}
    assert "m2: nothing is created there: its 4 replicas run nowhere" in await waits_for(world)
    await world.ground.stop_controllers()
    await world.ground.start_controllers()
    await world.set_image("nginx:1.30")

    async def rolled() -> bool:
        return await images(world) == {"m1": "nginx:1.30"}

    await world.eventually(rolled, "what is on record survives a restart")
    # A cluster that is left needs no override.
    await override(world, {"targetClusters": IN_M2, "overriders": {}})
    await world.eventually(lambda: _is_in(world, "m1", "m2"), "now it can be applied")
    await override(world, {"targetClusters": IN_M2, "overriders": WRONG})
    await eventually_propagated(world, m1="OK", m2="ApplyOverridesFailed")
    await name_policy(world, "one")
    await world.eventually(lambda: _is_in(world, "m1"), "the copy that was held is removed")
    await settled(world)


async def _is_in(world: World, *members: str) -> bool:
    return set(await world.copies()) == {*members}


async def test_an_overrider_of_containers_on_a_kind_without_pods_is_told(world: World) -> None:
    await world.policy("each", schedulingMode="Duplicate")
    image = {"image": [{"operations": [{"imageComponent": "Tag", "value": "2"}]}]}
    await override(world, {"targetClusters": IN_M2, "overriders": image})
    await world.configure("settings", {"a": "b"}, "each")
    label = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: "differ"}}}
    await world.client.patch(CONFIGMAPS, "settings", label, world.namespace, kind=Patch.MERGE)

    async def told() -> bool:
        federated = await world.federated("settings-configmaps")
        states = federated.get("status", {}).get("clusters") or ()
        return any("a ConfigMap has no pod template" in each.get("message", "") for each in states)

    await world.eventually(told, "it says which kind has no pods")
