"""A kind of one's own: its definition and its objects federated, divided and reported back, with a type config alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.definitions import CRDS, scaled_definition, scaled_type
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import weights
from tests.scenarios.seen import settled

__all__ = [
    "test_a_custom_kind_is_divided_and_reported_back",
    "test_a_custom_kind_that_a_policy_claims_needs_no_type_config",
    "test_a_kind_whose_type_config_goes_is_let_go_and_taken_up_again_with_it",
    "test_a_member_owns_the_fields_of_a_custom_kind_that_its_type_config_says",
    "test_an_object_that_comes_with_its_definition_is_divided_over_all_members",
    "test_what_members_say_of_a_definition_does_not_change_what_the_control_plane_serves",
]


async def test_a_custom_kind_is_divided_and_reported_back(world: World) -> None:
    group = f"{world.namespace}.example.com"
    widgets = Resource(group, "v1", "widgets", "Widget")
    async with _defined_everywhere(world, widgets):
        await world.policy(**weights(m1=2, m2=1))
        labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
        metadata = {"name": "one", "namespace": world.namespace, "labels": labels}
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 6}}
        await world.client.create(widgets, widget)

        async def divided() -> bool:
            found = await world.copies("one", widgets)
            return {name: copy["spec"]["replicas"] for name, copy in found.items()} == {"m1": 4, "m2": 2}

        await world.eventually(divided, "the widget is divided")
        await settled(world, f"one-widgets.{group}")
        for name, ready in (("m1", 4), ("m2", 1)):
            status = {"status": {"readyReplicas": ready, "phase": "Spinning"}}
            await world.member(name).patch(
                widgets, "one", status, world.namespace, kind=Patch.MERGE, subresource="status"
            )

        async def reported() -> bool:
            status = (await world.source("one", widgets)).get("status") or {}
            return status.get("readyReplicas") == 5 and status.get("phase") == "Spinning"

        await world.eventually(reported, "counts are added up and what members agree on is shown")
        await world.client.patch(widgets, "one", {"spec": {"replicas": 9}}, world.namespace, kind=Patch.MERGE)

        async def scaled() -> bool:
            found = await world.copies("one", widgets)
            return {name: copy["spec"]["replicas"] for name, copy in found.items()} == {"m1": 6, "m2": 3}

        await world.eventually(scaled, "the widget is scaled")
        await world.client.delete(widgets, "one", world.namespace)
        await world.ground.eventually_gone(widgets, "one", world.namespace)
        assert await world.copies("one", widgets) == {}


async def test_a_custom_kind_that_a_policy_claims_needs_no_type_config(world: World) -> None:
    """One policy for a definition and its objects, and nothing else written by hand."""
    group = f"{world.namespace}.example.com"
    widgets, everything = Resource(group, "v1", "widgets", "Widget"), f"{world.namespace}-everything"
    definition = scaled_definition(widgets, {keys.CLUSTER_PROPAGATION_POLICY_LABEL: everything})
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.readyReplicas"}
    definition["spec"]["versions"][0]["subresources"]["scale"] = scale
    kind = resources.CLUSTER_PROPAGATION_POLICIES
    selecting = [{"apiVersion": f"{group}/v1", "kind": "Widget"}]
    spec = {"schedulingMode": "Divide", **weights(m1=1, m2=1, m3=1), "resourceSelectors": selecting}
    body = {"apiVersion": keys.API_VERSION, "kind": kind.kind, "metadata": {"name": everything}, "spec": spec}
    await world.client.create(kind, body)
    await world.client.create(CRDS, definition)
    name = definition["metadata"]["name"]
    try:

        async def made() -> bool:
            return await world.exists(resources.FEDERATED_TYPE_CONFIGS, name)

        await world.eventually(made, "a type config is made")
        await world.ground.install()
        for cluster in world.names:
            await world.eventually(lambda cluster=cluster: _serves(world, cluster, widgets), f"{cluster} serves {name}")
        metadata = {"name": "one", "namespace": world.namespace}
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 6}}
        await world.client.create(widgets, widget)

        async def divided() -> bool:
            found = await world.copies("one", widgets)
            return {name: copy["spec"]["replicas"] for name, copy in found.items()} == dict.fromkeys(world.names, 2)

        await world.eventually(divided, "the widget is divided")
        await world.client.delete(widgets, "one", world.namespace)
        await world.ground.eventually_gone(widgets, "one", world.namespace)
        await world.client.delete(kind, everything)

        async def gone() -> bool:
            return not await world.exists(resources.FEDERATED_TYPE_CONFIGS, name)

        await world.eventually(gone, "nobody claims such objects any more")
    finally:
        await world.client.delete(CRDS, name)
        await world.ground.eventually_gone(CRDS, name)


async def test_a_kind_whose_type_config_goes_is_let_go_and_taken_up_again_with_it(world: World) -> None:
    group = f"{world.namespace}.example.com"
    widgets = Resource(group, "v1", "widgets", "Widget")
    kind = resources.FEDERATED_TYPE_CONFIGS
    async with _defined_everywhere(world, widgets):
        await world.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}, {"cluster": "m2"}])
        labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
        for name in ("one", "two"):
            metadata = {"name": name, "namespace": world.namespace, "labels": labels}
            widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 1}}
            await world.client.create(widgets, widget)
        for name in ("one", "two"):
            await settled(world, f"{name}-widgets.{group}")
        config = await world.client.get(kind, f"widgets.{group}")
        alone = {
            "metadata": {"annotations": {keys.MAKE_TYPE_CONFIG: "false"}}
        }  # else one is made, since a policy is named
        await world.client.patch(CRDS, f"widgets.{group}", alone, kind=Patch.MERGE)
        await world.client.delete(kind, f"widgets.{group}")

        async def let_go() -> bool:
            found = [await world.source(name, widgets) for name in ("one", "two")]
            return not any(keys.FEDERATE_FINALIZER in (each["metadata"].get("finalizers") or ()) for each in found)

        await world.eventually(let_go, "its objects can be deleted")
        await world.client.delete(widgets, "one", world.namespace)
        await world.ground.eventually_gone(widgets, "one", world.namespace)
        await world.ground.eventually_gone(resources.FEDERATED_OBJECTS, f"one-widgets.{group}", world.namespace)
        for name in ("one", "two"):
            assert (await world.copies(name, widgets)).keys() == {"m1", "m2"}
        await world.client.create(kind, {**config, "metadata": {"name": f"widgets.{group}"}})
        await world.client.patch(widgets, "two", {"spec": {"replicas": 3}}, world.namespace, kind=Patch.MERGE)

        async def followed() -> bool:
            found = await world.copies("two", widgets)
            return {name: copy["spec"]["replicas"] for name, copy in found.items()} == {"m1": 3, "m2": 3}

        await world.eventually(followed, "it is federated again")
        await world.client.delete(widgets, "two", world.namespace)
        await world.ground.eventually_gone(widgets, "two", world.namespace)
        assert await world.copies("two", widgets) == {}


async def test_a_member_owns_the_fields_of_a_custom_kind_that_its_type_config_says(world: World) -> None:
    group = f"{world.namespace}.example.com"
    widgets = Resource(group, "v1", "widgets", "Widget")
    async with _defined_everywhere(world, widgets, retainedFields=[".spec.size"], pathDefinition={}):
        await world.policy(schedulingMode="Duplicate")
        metadata = {"name": "one", "namespace": world.namespace, "labels": {keys.PROPAGATION_POLICY_LABEL: "policy"}}
        spec = {"replicas": 6, "size": 1}
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
        await world.client.create(widgets, widget)

        async def arrived() -> bool:
            return len(await world.copies("one", widgets)) == 3

        await world.eventually(arrived, "it is in all members")
        await settled(world, f"one-widgets.{group}")
        theirs = {"spec": {"size": 5, "replicas": 7}}
        await world.member("m1").patch(widgets, "one", theirs, world.namespace, kind=Patch.MERGE)

        async def specs() -> list[dict[str, int]]:
            return [copy["spec"] for _, copy in sorted((await world.copies("one", widgets)).items())]

        async def theirs_stays() -> bool:
            return await specs() == [{"replicas": 6, "size": 5}, spec, spec]

        await world.eventually(theirs_stays, "the other field is set back")
        await world.client.patch(widgets, "one", {"spec": {"replicas": 8, "size": 2}}, world.namespace)
        changed = {"replicas": 8, "size": 2}

        async def changed_but_for_theirs() -> bool:
            return await specs() == [{"replicas": 8, "size": 5}, changed | {"size": 1}, changed | {"size": 1}]

        await world.eventually(changed_but_for_theirs, "a member keeps the size it has, wherever that is from")
        federated = await settled(world, f"one-widgets.{group}")
        drift = {
            each["cluster"]: [field["path"] for field in each.get("drift") or ()]
            for each in federated["status"]["clusters"]
        }
        assert drift == {"m1": ["spec.replicas"], "m2": [], "m3": []}
        await world.client.delete(widgets, "one", world.namespace)
        await world.ground.eventually_gone(widgets, "one", world.namespace)


async def test_an_object_that_comes_with_its_definition_is_divided_over_all_members(world: World) -> None:
    group = f"{world.namespace}.example.com"
    widgets = Resource(group, "v1", "widgets", "Widget")
    async with _defined_everywhere(world, widgets, known=False):
        await world.policy(**weights(m1=1, m2=1, m3=1))
        labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
        metadata = {"name": "one", "namespace": world.namespace, "labels": labels}
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 6}}
        await world.client.create(widgets, widget)

        async def placed() -> list[str] | None:
            found = (await world.federated(f"one-widgets.{group}"))["spec"].get("placements")
            return [each["cluster"] for each in found[0]["placement"]] if found else None

        assert await world.eventually(placed, "the widget is placed") == world.names

        async def divided() -> bool:
            found = await world.copies("one", widgets)
            return {name: copy["spec"]["replicas"] for name, copy in found.items()} == dict.fromkeys(world.names, 2)

        await world.eventually(divided, "the widget is divided")
        await world.client.delete(widgets, "one", world.namespace)
        await world.ground.eventually_gone(widgets, "one", world.namespace)


async def test_what_members_say_of_a_definition_does_not_change_what_the_control_plane_serves(world: World) -> None:
    widgets = Resource(f"{world.namespace}.example.com", "v1", "widgets", "Widget")
    name = f"widgets.{widgets.group}"
    async with _defined_everywhere(world, widgets):
        before = (await world.client.get(CRDS, name))["status"]
        theirs = await world.member("m1").get(CRDS, name)
        condition = {"type": "Example", "status": "False", "reason": "Local", "message": "of m1 alone"}
        said = [*theirs["status"]["conditions"], condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]
        await world.member("m1").patch(
            CRDS, name, {"status": {"conditions": said}}, kind=Patch.MERGE, subresource="status"
        )

        async def collected() -> bool:
            found = await world.client.get(resources.CLUSTER_COLLECTED_STATUSES, f"{name}-{CRDS}")
            return "of m1 alone" in str(found["clusters"])

        await world.eventually(collected, "it is collected")

        async def unchanged() -> bool:
            return bool((await world.client.get(CRDS, name))["status"] == before)

        await holds(unchanged, 1.5)


@asynccontextmanager
async def _defined_everywhere(world: World, kind: Resource, *, known: bool = True, **spec: Any) -> AsyncIterator[None]:
    """The definition goes to the members as any object does: by a policy. With `known`, all are seen to serve it. `spec` is of
    its type config."""
    name, client = f"{kind.plural}.{kind.group}", world.client
    policy = f"{world.namespace}-everywhere"
    await client.create(
        resources.CLUSTER_PROPAGATION_POLICIES,
        {
            "apiVersion": keys.API_VERSION,
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": policy},
            "spec": {"schedulingMode": "Duplicate"},
        },
    )
    await client.create(CRDS, scaled_definition(kind, {keys.CLUSTER_PROPAGATION_POLICY_LABEL: policy}))
    type_config = scaled_type(kind)
    await client.create(resources.FEDERATED_TYPE_CONFIGS, {**type_config, "spec": {**type_config["spec"], **spec}})
    await world.ground.install()
    try:
        await world.eventually(lambda: client.list(kind, into=bytes), f"{name} is served")
        # A member that is known to serve it only much later gets nothing of what was divided before.
        for cluster in world.names if known else ():
            await world.eventually(lambda cluster=cluster: _serves(world, cluster, kind), f"{cluster} serves {name}")
        yield
    finally:
        await client.delete(CRDS, name)
        await world.ground.eventually_gone(CRDS, name)
        await client.delete(resources.FEDERATED_TYPE_CONFIGS, name)
        await client.delete(resources.CLUSTER_PROPAGATION_POLICIES, policy)
    for member in world.names:
        assert not [each for each in (await world.member(member).list(CRDS)).items if each["metadata"]["name"] == name]


async def _serves(world: World, cluster: str, kind: Resource) -> bool:
    status = (await world.client.get(resources.FEDERATED_CLUSTERS, cluster))["status"]
    return any(each.get("group") == kind.group for each in status["apiResourceTypes"])
