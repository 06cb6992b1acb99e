"""Policies that select what they are for: a whole application, policies that compete, and what nobody selects any more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from argosy.api import keys, resources
from argosy.cli.client.policies import read_policies
from argosy.cli.output import explanation
from argosy.cli.output.report import gather, report
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SECRETS, SERVICES
from tests.scenarios.seen import settled

__all__ = [
    "test_a_policy_of_the_fleet_selects_by_the_labels_of_namespaces_and_yields_to_that_of_the_namespace",
    "test_an_application_without_a_label_arrives_whole_under_one_policy",
    "test_what_nobody_selects_any_more_stays_until_somebody_says_what_is_to_become_of_it",
]

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
DEPLOYED = {"apiVersion": "apps/v1", "kind": "Deployment"}
EVERYTHING = {"apiVersion": "*", "kind": "*"}
DUPLICATE = {"schedulingMode": "Duplicate"}


async def application(world: World) -> dict[Resource, str]:
    """A Deployment and what is around it, none of it labelled; by kind, the names."""
    await world.deploy(replicas=1, policy="")
    around: dict[Resource, dict[str, Any]] = {
        CONFIGMAPS: {"data": {"key": "value"}},
        SECRETS: {"stringData": {"key": "value"}},
        SERVICES: {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
        SERVICE_ACCOUNTS: {},
    }
    for resource, content in around.items():
        metadata = {"name": "web", "namespace": world.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
        await world.client.create(resource, body)
    return dict.fromkeys((DEPLOYMENTS, *around), "web")


@asynccontextmanager
async def of_the_fleet(world: World, *selectors: dict[str, Any], **spec: Any) -> AsyncIterator[str]:
    """A ClusterPropagationPolicy, for as long as it is needed; its name."""
    name = f"fleet-{world.namespace}"
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": name},
        "spec": {**DUPLICATE, "resourceSelectors": list(selectors), **spec},
    }
    await world.client.create(resources.CLUSTER_PROPAGATION_POLICIES, body)
    try:
        yield name
    finally:
        await world.client.delete(resources.CLUSTER_PROPAGATION_POLICIES, name)


async def eventually_held(world: World, reason: str) -> None:
    async def held() -> bool:
        conditions = (await world.federated()).get("status", {}).get("conditions") or ()
        found = [each["reason"] for each in conditions if (each["type"], each["status"]) == ("Scheduled", "False")]
        return found == ([reason] if reason else [])

    await world.eventually(held, f"held: {reason or 'no more'}")


async def explained(world: World) -> explanation.Explained:
    return explanation.explained(await explanation.gather(world.client, DEPLOYMENTS, "web", world.namespace))


async def waits_for(world: World) -> str:
    return "\n".join(report(await gather(world.client, DEPLOYMENTS, "web", world.namespace)).waiting)


async def test_an_application_without_a_label_arrives_whole_under_one_policy(world: World) -> None:
    role = {"metadata": {"name": "web", "namespace": world.namespace}, "rules": []}
    await world.client.create(ROLES, {"apiVersion": ROLES.api_version, "kind": "Role", **role})
    objects = await application(world)
    assert "no policy is named and none selects it" in await waits_for(world)
    await world.policy("everything", **DUPLICATE, resourceSelectors=[EVERYTHING])
    for resource, name in objects.items():

        async def everywhere(resource: Resource = resource, name: str = name) -> bool:
            return (await world.copies(name, resource)).keys() == set(world.names)

        await world.eventually(everywhere, f"{resource.kind} {name} is in every member")
    await settled(world)
    # What every namespace has of its own stayed, and a policy of a namespace gives no rights.
    made = (await world.client.list(resources.FEDERATED_OBJECTS, world.namespace)).items
    assert len(made) == len(objects), sorted(each["metadata"]["name"] for each in made)
    assert await world.copies("web", ROLES) == {}
    told = await explained(world)
    assert (told.policy, told.claimed) == ("PropagationPolicy everything", "selected by wildcard")
    [(found, _)] = await read_policies(world.client, world.namespace)
    assert (found.objects, found.selected, found.trouble) == (len(objects), len(objects), ())


async def test_what_nobody_selects_any_more_stays_until_somebody_says_what_is_to_become_of_it(world: World) -> None:
    await world.policy("deployments", **DUPLICATE, resourceSelectors=[DEPLOYED])
    await world.deploy(replicas=1, policy="")
    await world.eventually_replicas(dict.fromkeys(world.names, 1))
    await settled(world)
    narrow = {"spec": {"resourceSelectors": [{**DEPLOYED, "name": "another"}]}}
    await world.client.patch(resources.PROPAGATION_POLICIES, "deployments", narrow, world.namespace, kind=Patch.MERGE)
    await eventually_held(world, "NoLongerSelected")
    assert await world.replicas() == dict.fromkeys(world.names, 1)
    assert "placement is held as it was: NoLongerSelected" in await waits_for(world)
    assert (await explained(world)).claimed == "it selects it no more"
    # Another policy takes over.
    await world.policy("next", **DUPLICATE, placement=[{"cluster": "m2"}], resourceSelectors=[DEPLOYED])
    await world.eventually_replicas({"m2": 1})
    await eventually_held(world, "")
    await world.client.delete(resources.PROPAGATION_POLICIES, "next", world.namespace)
    await eventually_held(world, "PolicyNotFound")
    # So does a label.
    await world.policy("named", **DUPLICATE, placement=[{"cluster": "m1"}])
    label = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: "named"}}}
    await world.client.patch(DEPLOYMENTS, "web", label, world.namespace, kind=Patch.MERGE)
    await world.eventually_replicas({"m1": 1})
    # And who is selected again may be let go.
    await world.policy("wide", **DUPLICATE, placement=[{"cluster": "m1"}], resourceSelectors=[EVERYTHING])
    unlabelled = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: None}}}
    await world.client.patch(DEPLOYMENTS, "web", unlabelled, world.namespace, kind=Patch.MERGE)

    async def selected() -> bool:
        return (await world.federated())["metadata"]["annotations"].get(keys.SELECTED_BY) == "PropagationPolicy/wide"

    await world.eventually(selected, "the policy that selects it takes it over from the label")
    assert await world.replicas() == {"m1": 1}
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.NO_SELECTION: "true"})
    await world.eventually_replicas({})


async def test_a_policy_of_the_fleet_selects_by_the_labels_of_namespaces_and_yields_to_that_of_the_namespace(
    world: World,
) -> None:
    await world.deploy(replicas=1, policy="")
    team = {"namespaceSelector": {"matchLabels": {"team": world.namespace}}}
    async with of_the_fleet(world, {**DEPLOYED, **team}, placement=[{"cluster": "m3"}]) as name:
        label = {"metadata": {"labels": {"team": world.namespace}}}
        await world.client.patch(NAMESPACES, world.namespace, label, kind=Patch.MERGE)
        await world.eventually_replicas({"m3": 1})
        await world.policy("own", **DUPLICATE, placement=[{"cluster": "m1"}], resourceSelectors=[EVERYTHING])
        await world.eventually_replicas({"m1": 1})
        told = await explained(world)
        assert told.claimed == f"selected: a policy of the namespace goes before ClusterPropagationPolicy {name}"
        assert told.other_policies == (f"ClusterPropagationPolicy {name}",)
        higher = {"spec": {"priority": 1}}
        await world.client.patch(resources.CLUSTER_PROPAGATION_POLICIES, name, higher, kind=Patch.MERGE)
        await world.eventually_replicas({"m3": 1})
        found = {each.name: each for each, _ in await read_policies(world.client, None)}
        assert found[name].trouble == (f"gets 1 object that PropagationPolicy {world.namespace}/own selects as well",)
    # It may come back in a moment: nothing moves because of that.
    await eventually_held(world, "PolicyNotFound")
    assert await world.replicas() == {"m3": 1}
