"""What others change in copies is shown, before and after it is repaired; a policy may want it left."""

from typing import Any

from argosy.api import keys, resources
from argosy.cli.output.drifted import drifted
from argosy.cli.output.report import Report, gather, report
from argosy.kube.client import Patch
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, weights
from tests.scenarios.seen import eventually_rolled_out, images, settled

__all__ = [
    "test_what_cannot_be_repaired_is_shown",
    "test_what_others_change_stays_and_is_shown_if_the_policy_says_so",
    "test_what_others_changed_is_on_record_when_it_has_been_repaired",
]


async def test_what_others_changed_is_on_record_when_it_has_been_repaired(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=4)
    await world.configure("settings", {"colour": "blue"})
    await eventually_rolled_out(world, 4)
    await settled(world)
    await settled(world, "settings-configmaps")
    member = world.member("m1")
    theirs = {
        "metadata": {"annotations": {"example.com/owner": "local"}},
        "spec": {"replicas": 7, "minReadySeconds": 3},
    }
    await member.patch(DEPLOYMENTS, "web", theirs, world.namespace)
    await member.patch(CONFIGMAPS, "settings", {"data": {"colour": "red", "more": "yes"}}, world.namespace)

    async def recorded() -> bool:
        return len(await _drift(world)) == 2 and len(await _drift(world, "settings-configmaps")) == 2

    await world.eventually(recorded, "all four fields are on record, and nothing else")
    assert await world.replicas() == {"m1": 2, "m2": 2}, "by then it is repaired"
    assert await _drift(world) == {
        ("m1", "spec.minReadySeconds"): (3, None, "repaired"),
        ("m1", "spec.replicas"): (7, 2, "repaired"),
    }
    assert await _drift(world, "settings-configmaps") == {
        ("m1", "data.colour"): ("red", "blue", "repaired"),
        ("m1", "data.more"): ("yes", None, "repaired"),
    }
    assert "Drifted" not in await _conditions(world)
    told = [each for each in await world.events("DriftRepaired") if each["metadata"]["namespace"] == world.namespace]
    assert {each["involvedObject"]["name"] for each in told} == {"web", "settings"}
    # It is still there when the object changes.
    await world.set_image("nginx:1.30")
    await world.eventually(lambda: _has_image(world, "nginx:1.30"))
    await settled(world)
    assert len(await _drift(world)) == 2
    # Nor is it lost what was changed while nothing was written there.
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: "true"})

    async def paused() -> bool:
        return keys.PAUSED in (await world.federated())["metadata"]["annotations"]

    await world.eventually(paused)
    await member.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, world.namespace)
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: None})
    await world.eventually_replicas({"m1": 2, "m2": 2})
    await settled(world)
    assert (await _drift(world))["m1", "spec.replicas"] == (5, 2, "repaired")
    await member.delete(CONFIGMAPS, "settings", world.namespace)

    async def told_deleted() -> bool:
        return ("m1", "") in await _drift(world, "settings-configmaps")

    await world.eventually(told_deleted, "a copy that was deleted is told of")


async def test_what_others_change_stays_and_is_shown_if_the_policy_says_so(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1), driftCorrection="Report")
    await world.deploy(replicas=4)
    await eventually_rolled_out(world, 4)
    await settled(world)
    member = world.member("m1")
    patch = {
        "metadata": {"labels": {"team": "theirs"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "main", "image": "local:1"}]}}},
    }
    await member.patch(DEPLOYMENTS, "web", patch, world.namespace, kind=Patch.STRATEGIC)
    image = "spec.template.spec.containers[main].image"
    expected = {
        ("m1", image): ("local:1", "nginx:1.29", "left"),
        ("m1", "spec.replicas"): (3, 2, "left"),
    }

    async def shown() -> bool:
        return await _drift(world) == expected

    await world.eventually(shown, "both fields are shown, and the label, which is nobody's, is not")
    condition = (await _conditions(world))["Drifted"]
    assert (condition["status"], condition["reason"]) == ("True", "Reported")
    assert "m1: spec.replicas is 3 instead of 2" in condition["message"]

    async def untouched() -> bool:
        return (await world.replicas())["m1"] == 3 and (await images(world))["m1"] == "local:1"

    await holds(untouched, 2.0)

    async def waits_for_nothing() -> bool:
        made = await _report(world)
        return not made.waiting and len(made.drifted) == 2

    await world.eventually(waits_for_nothing, "it is complete, and does not hide what is different")
    assert await world.propagation() == {"m1": "OK", "m2": "OK"}
    told = [each for each in await world.events("DriftLeft") if each["metadata"]["namespace"] == world.namespace]
    assert [each.get("count") or 1 for each in told] == [1], "told once"

    # A change of something else reaches all copies; what was changed there stays.
    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"minReadySeconds": 1}}, world.namespace)

    async def arrived() -> bool:
        return [each["spec"].get("minReadySeconds") for each in (await world.copies()).values()] == [1, 1]

    await world.eventually(arrived, "the change is in both")
    await settled(world)
    assert await untouched()
    assert await _drift(world) == expected
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: "true"})
    await member.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}}, world.namespace)
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: None})
    expected["m1", "spec.paused"] = (True, None, "left")
    await world.eventually(shown, "what was changed during a pause is left, too")
    # A change of the same field wins.
    await world.set_image("nginx:1.30")
    await world.eventually(lambda: _has_image(world, "nginx:1.30"))
    del expected["m1", image]
    earlier = {("m1", image): ("local:1", "nginx:1.29", "repaired")}

    async def only_replicas() -> bool:
        return await _drift(world) == expected | earlier

    await world.eventually(only_replicas)
    assert (await world.replicas())["m1"] == 3
    # Over a restart nothing is written.
    versions = {name: copy["metadata"]["generation"] for name, copy in (await world.copies()).items()}
    await world.ground.stop_controllers()
    await world.ground.start_controllers()
    await world.ground.eventually_ready(*world.names)

    async def as_it_was() -> bool:
        return versions == {name: copy["metadata"]["generation"] for name, copy in (await world.copies()).items()}

    await holds(as_it_was, 2.0)
    # The policy wants it repaired after all.
    body = {"spec": {"driftCorrection": "Repair"}}
    await world.client.patch(resources.PROPAGATION_POLICIES, "policy", body, world.namespace, kind=Patch.MERGE)
    await world.eventually_replicas({"m1": 2, "m2": 2})

    async def repaired() -> bool:
        return "Drifted" not in await _conditions(world)

    await world.eventually(repaired, "the condition is gone")
    assert {state for _, _, state in (await _drift(world)).values()} == {"repaired"}
    assert keys.DRIFT_CORRECTION not in (await world.federated())["metadata"]["annotations"]


async def test_what_cannot_be_repaired_is_shown(world: World) -> None:
    await world.policy(schedulingMode="Duplicate")
    await world.configure("settings", {"colour": "blue"})
    await settled(world, "settings-configmaps")
    member = world.member("m1")
    theirs = {"immutable": True, "data": {"colour": "red"}}
    await member.patch(CONFIGMAPS, "settings", theirs, world.namespace, kind=Patch.MERGE)

    async def shown() -> bool:
        left = await _drift(world, "settings-configmaps") == {("m1", "data.colour"): ("red", "blue", "left")}
        return left and (await world.propagation("settings-configmaps"))["m1"] == "UpdateFailed"

    await world.eventually(shown)
    conditions = (await world.federated("settings-configmaps"))["status"]["conditions"]
    [condition] = [each for each in conditions if each["type"] == "Drifted"]
    assert (condition["status"], condition["reason"]) == ("True", "NotRepaired")
    await member.delete(CONFIGMAPS, "settings", world.namespace)
    await world.eventually(lambda: _is_whole(world))
    federated = await settled(world, "settings-configmaps")
    assert [each["type"] for each in federated["status"]["conditions"]] == ["Propagated"]


async def _is_whole(world: World) -> bool:
    copies = await world.copies("settings", CONFIGMAPS)
    return [copy["data"]["colour"] for copy in copies.values()] == ["blue"] * 3


async def _report(world: World) -> Report:
    return report(await gather(world.client, DEPLOYMENTS, "web", world.namespace))


async def _drift(world: World, name: str = "web-deployments.apps") -> dict[tuple[str, str], tuple[Any, Any, str]]:
    """By cluster and field: their value, ours, and whether it is left."""
    source, _, type_name = name.partition("-")
    resource = DEPLOYMENTS if type_name == "deployments.apps" else CONFIGMAPS
    found = drifted(await gather(world.client, resource, source, world.namespace))
    return {(each.cluster, each.path): (_or_none(each.theirs), _or_none(each.ours), each.state) for each in found}


def _or_none(value: Any) -> Any:
    return value if isinstance(value, str | int) else None


async def _conditions(world: World) -> dict[str, dict[str, Any]]:
    return {each["type"]: each for each in (await world.federated())["status"]["conditions"]}


async def _has_image(world: World, image: str) -> bool:
    return set((await images(world)).values()) == {image}
