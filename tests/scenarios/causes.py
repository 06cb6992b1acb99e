"""Why pods do not run in a member, told where its user looks: by status, in conditions, and once as an event."""

from typing import Any

from argosy.api.conditions import PODS_FAILING
from argosy.cli.output.report import gather, report
from argosy.kube import quantity
from argosy.kube.resource import Resource
from tests.harness.ground import World
from tests.harness.user import DEPLOYMENTS, EVENTS, NODES, deployment, weights
from tests.scenarios.seen import eventually_rolled_out

__all__ = [
    "test_a_quota_that_keeps_pods_away_is_told",
    "test_a_quota_that_keeps_pods_of_a_statefulset_away_is_told",
    "test_an_image_that_cannot_be_pulled_is_told",
    "test_pods_that_fit_no_node_are_told",
    "test_pods_that_run_and_do_not_become_ready_are_told",
]

_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
_STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
_TWO = weights(m1=1, m2=1)


async def test_an_image_that_cannot_be_pulled_is_told(world: World) -> None:
    await world.policy(**_TWO)
    await world.deploy(replicas=4)
    await eventually_rolled_out(world, 4)
    await world.set_image("nginx:bad")
    told = "pods: ImagePullBackOff: image"
    await eventually_waits_for(world, "m1: 1 of 2 " + told, "m2: 1 of 2 " + told)
    failing = await eventually_condition(world, PODS_FAILING, "True", "nginx:bad")
    assert failing["reason"] == "ImagePullBackOff"
    assert "m1: 1 of 2 pods: ImagePullBackOff" in failing["message"]
    progressing = await eventually_condition(world, "Progressing", "True", "ImagePullBackOff")
    assert progressing["reason"] == "ReplicaSetUpdated"
    await eventually_told_once(world, "ImagePullBackOff", "m1", "m2")
    await world.set_image("nginx:1.30")
    await eventually_rolled_out(world, 4)
    await eventually_well(world)
    await eventually_told_once(world, "ImagePullBackOff", "m1", "m2")


async def test_pods_that_fit_no_node_are_told(world: World) -> None:
    await world.policy(**_TWO)
    manifest = deployment("web", 2, "policy", world.namespace)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": str(await largest_node(world, "m1") + 1)}}
    await world.client.create(DEPLOYMENTS, manifest)
    await eventually_waits_for(world, "m1: 1 of 1 pods: Unschedulable: 0/", "Insufficient cpu")
    available = await eventually_condition(world, "Available", "False", "Insufficient cpu")
    assert "m2: 1 of 1 pods: Unschedulable" in available["message"]
    await eventually_told_once(world, "Unschedulable", "m1", "m2")
    container["resources"] = {"requests": {"cpu": "10m"}}
    await world.client.patch(DEPLOYMENTS, "web", {"spec": manifest["spec"]}, world.namespace)
    await eventually_rolled_out(world, 2)
    await eventually_well(world)


async def test_pods_that_run_and_do_not_become_ready_are_told(world: World) -> None:
    await world.policy(**_TWO)
    manifest = deployment("web", 2, "policy", world.namespace)
    manifest["spec"]["template"]["spec"]["readinessGates"] = [{"conditionType": "example.com/open"}]
    await world.client.create(DEPLOYMENTS, manifest)
    await eventually_waits_for(world, "m1: 1 of 1 pods: ReadinessGatesNotReady", "m2: 1 of 1 pods: ")
    await eventually_told_once(world, "ReadinessGatesNotReady", "m1", "m2")
    gates = {"template": {"spec": {"readinessGates": None}}}
    await world.client.patch(DEPLOYMENTS, "web", {"spec": gates}, world.namespace)
    await eventually_rolled_out(world, 2)
    await eventually_well(world)


async def test_a_quota_that_keeps_pods_away_is_told(world: World) -> None:
    await world.policy(**_TWO)
    await world.deploy(replicas=2)
    await eventually_rolled_out(world, 2)
    await limit(world, "m1", pods=1)
    await world.scale("web", 8)
    await eventually_waits_for(world, "m1: ", "exceeded quota: few")
    failing = await eventually_condition(world, PODS_FAILING, "True", "m1: 3 of 4 pods: FailedCreate: exceeded quota")
    assert "m2" not in failing["message"]
    await eventually_told_once(world, "FailedCreate", "m1")
    await world.member("m1").delete(_QUOTAS, "few", world.namespace)
    await eventually_rolled_out(world, 8)
    await eventually_well(world)


async def test_a_quota_that_keeps_pods_of_a_statefulset_away_is_told(world: World) -> None:
    """It has no condition for that: its member is asked for events."""
    await world.policy(**_TWO)
    manifest = deployment("web", 2, "policy", world.namespace)
    manifest |= {"kind": "StatefulSet", "spec": {**manifest["spec"], "serviceName": "web"}}
    await world.client.create(_STATEFULSETS, manifest)
    await eventually_well(world, _STATEFULSETS)
    await limit(world, "m1", pods=1)
    await world.client.patch(_STATEFULSETS, "web", {"spec": {"replicas": 8}}, world.namespace)
    await eventually_waits_for(world, "m1: ", "FailedCreate: exceeded quota: few", resource=_STATEFULSETS)
    failing = await eventually_condition(world, PODS_FAILING, "True", "exceeded quota", _STATEFULSETS)
    assert failing["reason"] == "FailedCreate"
    await eventually_told_once(world, "FailedCreate", "m1")
    await world.member("m1").delete(_QUOTAS, "few", world.namespace)
    await eventually_well(world, _STATEFULSETS)


async def eventually_waits_for(world: World, *texts: str, resource: Resource = DEPLOYMENTS) -> None:
    """What `argosy status` lists: each text in some line."""

    async def told() -> list[str]:
        return report(await gather(world.client, resource, "web", world.namespace)).waiting

    async def probe() -> bool:
        waiting = await told()
        return all(any(text in line for line in waiting) for text in texts)

    try:
        await world.eventually(probe)
    except AssertionError:
        raise AssertionError(f"{texts} are not in {await told()}") from None


async def eventually_condition(
    world: World, type: str, status: str, text: str, resource: Resource = DEPLOYMENTS
) -> dict[str, Any]:
    """The source's condition, once it says this."""

    async def probe() -> dict[str, Any] | None:
        conditions = ((await world.source("web", resource)).get("status") or {}).get("conditions") or ()
        found = next((each for each in conditions if each["type"] == type), None)
        return found if found is not None and found["status"] == status and text in found["message"] else None

    try:
        return await world.eventually(probe)
    except AssertionError:
        source = await world.source("web", resource)
        raise AssertionError(f"no {type} {status} with {text!r} in {source.get('status')}") from None


async def eventually_told_once(world: World, reason: str, *clusters: str) -> None:
    """One warning on the source for each of the clusters, and none for others."""

    async def told() -> list[str]:
        events = (await world.client.list(EVENTS, world.namespace)).items
        found = [each for each in events if each["reason"] == reason and each["involvedObject"]["name"] == "web"]
        assert all(each["type"] == "Warning" and each["count"] == 1 for each in found), found
        return sorted(each["message"].partition(":")[0] for each in found)

    async def probe() -> bool:
        return await told() == sorted(clusters)

    try:
        await world.eventually(probe)
    except AssertionError:
        raise AssertionError(f"told for {await told()}, not for {clusters}") from None


async def eventually_well(world: World, resource: Resource = DEPLOYMENTS) -> None:
    """Nothing is waited for, and nothing is told of former causes."""

    async def probe() -> bool:
        facts = await gather(world.client, resource, "web", world.namespace)
        status = facts.source.get("status") or {}
        failing = any(each["type"] == PODS_FAILING for each in status.get("conditions") or ())
        stored = facts.collected is not None and any(each.cause is not None for each in facts.collected.clusters)
        return not failing and not stored and not report(facts).waiting

    await world.eventually(probe, "all is well")


async def limit(world: World, member: str, pods: int) -> None:
    """A quota in the scenario's namespace of a member, in force."""
    client, metadata = world.member(member), {"name": "few", "namespace": world.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": str(pods)}}}
    await client.create(_QUOTAS, quota)

    async def probe() -> bool:
        return bool((await client.get(_QUOTAS, "few", world.namespace)).get("status", {}).get("hard"))

    await world.eventually(probe, "the quota is in force")


async def largest_node(world: World, member: str) -> int:
    nodes = (await world.member(member).list(NODES)).items
    return max(quantity.parse(node["status"]["allocatable"]["cpu"]).value() for node in nodes)
