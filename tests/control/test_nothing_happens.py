"""Every state in which nothing, or less than was asked for, comes of an object is told: by `argosy status`, and where the
controllers know the object, by an event on it or a condition. None of them only waits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from argosy.api import keys, resources
from argosy.cli.output.report import Report, gather, report
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from argosy.plan.pipeline.autoscale import NO_WORKLOAD
from tests.harness.ground import Ground, World, simulated_ground
from tests.harness.user import CONFIGMAPS, NAMESPACES, weights

pytestmark = pytest.mark.asyncio(loop_scope="module")

EQUAL = weights(m1=1, m2=1, m3=1)
JOBS = Resource("batch", "v1", "jobs", "Job")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LIMITS = Resource("", "v1", "limitranges", "LimitRange")
LIMIT = {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}
OWN = [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]]
STEP = "example.com/step"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    async with simulated_ground(tmp_path_factory.mktemp("plane")) as made:
        yield made
        await made.leave()


@pytest_asyncio.fixture(loop_scope="module")
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        await made.policy(**EQUAL)
        yield made


async def told(world: World, resource: Resource, name: str = "web") -> Report:
    return report(await gather(world.client, resource, name, world.namespace if resource.namespaced else None))


async def waits_for(world: World, resource: Resource, text: str) -> None:
    async def waits() -> bool:
        return any(text in line for line in (await told(world, resource)).waiting)

    await world.eventually(waits, f"it waits for {text!r}")


async def create(world: World, resource: Resource, content: dict[str, Any], **annotations: str) -> None:
    metadata = {
        "name": "web",
        "namespace": world.namespace,
        "labels": {keys.PROPAGATION_POLICY_LABEL: "policy"},
        "annotations": annotations,
    }
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
    await world.client.create(resource, body)


async def event(world: World, reason: str, resource: Resource) -> str:
    """The message of the first event with this reason on the object."""

    async def found() -> str:
        for each in await world.events(reason):
            about = each["involvedObject"]
            if (about["kind"], about["name"], about.get("namespace")) == (resource.kind, "web", world.namespace):
                return str(each["message"])
        return ""

    return await world.eventually(found, f"an event {reason}")


async def condition(world: World, name: str, type: str, reason: str) -> None:
    async def holds() -> bool:
        found = await world.client.get(resources.FEDERATED_OBJECTS, name, world.namespace)
        conditions = (found.get("status") or {}).get("conditions") or ()
        return (type, "False", reason) in [(each["type"], each["status"], each.get("reason")) for each in conditions]

    await world.eventually(holds, f"the condition {type} says {reason}")


async def change_type(world: World, name: str, controllers: list[list[str]] | None) -> None:
    change = {"spec": {"controllers": controllers}}
    await world.client.patch(resources.FEDERATED_TYPE_CONFIGS, name, change, kind=Patch.MERGE)


async def as_wanted(world: World, resource: Resource) -> Report:
    async def done() -> Report | None:
        made = await told(world, resource)
        return None if made.waiting else made

    return await world.eventually(done, "it waits for nothing")


async def test_a_type_config_that_lists_nobody_who_places(world: World) -> None:
    why = "the type config limitranges lists no controller that places objects"
    await change_type(world, "limitranges", [[keys.OVERRIDE_CONTROLLER]])
    try:
        await create(world, LIMITS, {"spec": LIMIT})
        await waits_for(world, LIMITS, f"held, placed nowhere: NoPlacingStep: {why}")
        assert await event(world, "ScheduleFederatedObject", LIMITS) == why
        await condition(world, "web-limitranges", "Scheduled", "NoPlacingStep")
    finally:
        await change_type(world, "limitranges", OWN)
    made = await as_wanted(world, LIMITS)
    assert {each.name for each in made.clusters} == {"m1", "m2", "m3"}


async def test_a_step_of_others_that_never_acts(world: World) -> None:
    await change_type(world, "limitranges", [[STEP], *OWN])
    try:
        await create(world, LIMITS, {"spec": LIMIT})
        await waits_for(world, LIMITS, f"controllers that have yet to act: {STEP}")
        message = await event(world, "WaitingForControllers", LIMITS)
        assert message == f"nothing is sent to members until these controllers have acted: {STEP}"
        assert len(await world.events("WaitingForControllers")) == 1
    finally:
        await change_type(world, "limitranges", OWN)
    await world.client.delete(LIMITS, "web", world.namespace)


async def test_an_autoscaler_of_nothing(world: World) -> None:
    target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3}
    await create(world, AUTOSCALERS, {"spec": target})
    await waits_for(world, AUTOSCALERS, f"held, placed nowhere: StepNotServed: {NO_WORKLOAD}")
    assert await event(world, "ScheduleFederatedObject", AUTOSCALERS) == NO_WORKLOAD
    await condition(world, "web-horizontalpodautoscalers.autoscaling", "Scheduled", "StepNotServed")


async def test_a_policy_that_is_not_there(world: World) -> None:
    await world.client.delete(resources.PROPAGATION_POLICIES, "policy", world.namespace)
    await create(world, CONFIGMAPS, {})
    why = f"PropagationPolicy {world.namespace}/policy not found"
    await waits_for(world, CONFIGMAPS, f"held, placed nowhere: PolicyNotFound: {why}")
    assert await event(world, "ScheduleFederatedObject", CONFIGMAPS) == why
    await condition(world, "web-configmaps", "Scheduled", "PolicyNotFound")


async def test_replicas_that_cannot_be_divided_are_told_of_although_nothing_is_waited_for(world: World) -> None:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]}}
    pod["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": pod}
    await create(world, JOBS, {"spec": spec})
    made = await as_wanted(world, JOBS)
    why = (
        "replicas are not divided, every cluster gets all of them: a Job with completionMode Indexed cannot be divided:"
        " every cluster would run the same indexes"
    )
    assert made.without_effect == [why]
    assert await event(world, "WithoutEffect", JOBS) == why
    assert len(await world.events("WithoutEffect")) == 1


async def test_an_object_that_is_not_to_be_federated(world: World) -> None:
    await create(world, CONFIGMAPS, {}, **{keys.NO_FEDERATED_RESOURCE: "true"})
    await waits_for(world, CONFIGMAPS, f"not federated: the annotation {keys.NO_FEDERATED_RESOURCE} says so")


async def test_an_object_that_is_tried_only(world: World) -> None:
    await create(world, CONFIGMAPS, {}, **{keys.DRY_RUN: "true"})
    await waits_for(world, CONFIGMAPS, "a dry run: nothing is created")
    assert await event(world, "DryRunWorked", CONFIGMAPS) == "dry run: nothing was created"


async def test_what_is_in_the_federations_own_namespace(world: World) -> None:
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "web", "namespace": keys.SYSTEM_NAMESPACE, "labels": labels}
    await world.client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    try:
        made = report(await gather(world.client, CONFIGMAPS, "web", keys.SYSTEM_NAMESPACE))
        assert made.waiting == [f"not federated: nothing in the namespace {keys.SYSTEM_NAMESPACE} is"]
    finally:
        await world.client.delete(CONFIGMAPS, "web", keys.SYSTEM_NAMESPACE)


async def test_namespaces_that_are_not_propagated(world: World) -> None:
    optout = {"annotations": {keys.NO_AUTO_PROPAGATION: "true"}}
    for metadata, why in (
        ({"name": "kube-mine"}, "the namespaces every cluster has of its own are not propagated"),
        ({"name": "mine", **optout}, f"the annotation {keys.NO_AUTO_PROPAGATION} says so"),
    ):
        await world.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        made = report(await gather(world.client, NAMESPACES, str(metadata["name"]), None))
        assert made.waiting == [f"not federated: {why}"]
        await world.client.delete(NAMESPACES, str(metadata["name"]))
