"""How many objects use a policy is kept in its status, with few writes."""

import asyncio
from typing import Any

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.api.shards import Shard
from argosy.control.sharding.publisher import encoded_uses
from argosy.kube.client import Client, Patch
from argosy.kube.errors import NotFound
from argosy.kube.resource import Resource
from tests.control.test_shards import PATIENT, ShardedFederation
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, NAMESPACES, QUICK, Federation
from tests.harness.user import DEPLOYMENTS, deployment

OVERRIDES = {"overrideRules": [{"overriders": {"labels": [{"value": {"a": "b"}}]}}]}


async def status(client: Client, resource: Resource, name: str, namespace: str | None = "default") -> Any:
    return (await client.get(resource, name, namespace)).get("status") or {}


async def test_policies_say_how_many_objects_use_them() -> None:
    async with Federation(1) as fed:
        await fed.policy()
        policy = {
            "apiVersion": keys.API_VERSION,
            "kind": "OverridePolicy",
            "metadata": {"name": "differ", "namespace": "default"},
            "spec": OVERRIDES,
        }
        await fed.client.create(resources.OVERRIDE_POLICIES, policy)
        for name in ("web", "api"):
            await fed.deploy(name, replicas=1, **{keys.OVERRIDE_POLICY_LABEL: "differ"})
        await fed.configure("settings", {"a": "b"})
        deployments = {"group": "apps", "resource": "deployments", "count": 2}

        async def used() -> bool:
            return await status(fed.client, resources.PROPAGATION_POLICIES, "policy") == {
                "refCount": 3,
                "typedRefCount": [{"resource": "configmaps", "count": 1}, deployments],
            }

        async def overriding() -> bool:
            found = await status(fed.client, resources.OVERRIDE_POLICIES, "differ")
            return bool(found == {"refCount": 2, "typedRefCount": [deployments]})

        await eventually(used, 30.0)
        await eventually(overriding, 30.0)

        await asyncio.sleep(10.0)

        # They are put right, also after a restart, and not written if they are.
        await fed.client.delete(DEPLOYMENTS, "web", "default")
        await fed.client.patch(
            CONFIGMAPS, "settings", {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: None}}}, "default"
        )

        async def fewer() -> bool:
            found = await status(fed.client, resources.PROPAGATION_POLICIES, "policy")
            return bool(found == {"refCount": 1, "typedRefCount": [{**deployments, "count": 1}]})

        await eventually(fewer, 90.0)
        version = (await fed.client.get(resources.PROPAGATION_POLICIES, "policy", "default"))["metadata"][
            "resourceVersion"
        ]
        await fed.stop_controllers()
        await fed.start_controllers()
        await asyncio.sleep(60.0)
        found = await fed.client.get(resources.PROPAGATION_POLICIES, "policy", "default")
        assert found["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(
    "resource",
    [
        resources.PROPAGATION_POLICIES,
        resources.CLUSTER_PROPAGATION_POLICIES,
        resources.OVERRIDE_POLICIES,
        resources.CLUSTER_OVERRIDE_POLICIES,
    ],
    ids=lambda resource: resource.plural,
)
async def test_a_count_that_somebody_wrote_is_put_right(resource: Resource) -> None:
    namespace = "default" if resource.namespaced else None
    metadata = {"name": "some", **({"namespace": namespace} if namespace else {})}
    async with Federation(0) as fed:
        body = {"apiVersion": keys.API_VERSION, "kind": resource.kind, "metadata": metadata, "spec": {}}
        if "propagation" in resource.plural:
            body["spec"] = {"schedulingMode": "Duplicate"}
        await fed.client.create(resource, body)
        wrong = {"status": {"refCount": 77}}
        await fed.client.patch(resource, "some", wrong, namespace, kind=Patch.MERGE, subresource="status")

        async def right() -> bool:
            return (await status(fed.client, resource, "some", namespace)).get("refCount") == 0

        await eventually(right, 30.0)


async def test_many_changes_cost_few_writes_of_the_policy() -> None:
    async with Federation(1, timings=msgspec.structs.replace(QUICK, policy_counts=10.0)) as fed:
        await fed.policy()
        versions = set()

        async def counted(number: int) -> bool:
            found = await fed.client.get(resources.PROPAGATION_POLICIES, "policy", "default")
            versions.add(found["metadata"]["resourceVersion"])
            return bool((found.get("status") or {}).get("refCount") == number)

        for number in range(100):
            await fed.configure(f"settings-{number}", {"a": "b"})
            await asyncio.sleep(0.2)
            await counted(-1)
        await eventually(lambda: counted(100), 30.0)
        assert len(versions) <= 5


async def test_shards_count_together_what_names_a_policy_without_a_namespace() -> None:
    named = [next(name for n in range(100) if Shard(index, 2).owns(name := f"team-{n}")) for index in range(2)]
    fed = ShardedFederation(1, shards=2)
    fed.timings = msgspec.structs.replace(PATIENT, reservations_shown=0.5)
    async with fed:
        policy = {
            "apiVersion": keys.API_VERSION,
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": "all"},
            "spec": {"schedulingMode": "Duplicate"},
        }
        await fed.client.create(resources.CLUSTER_PROPAGATION_POLICIES, policy)
        for namespace in named:
            await fed.client.create(
                NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            )
            body = deployment("web", 1, "", namespace)
            body["metadata"]["labels"] = {keys.CLUSTER_PROPAGATION_POLICY_LABEL: "all"}
            await fed.client.create(DEPLOYMENTS, body, namespace)

        async def counted(number: int) -> bool:
            found = await status(fed.client, resources.CLUSTER_PROPAGATION_POLICIES, "all", None)
            return bool(found.get("refCount") == number)

        await eventually(lambda: counted(2), 60.0)
        # A shard that is silent still has them.
        await asyncio.sleep(100.0)
        await holds(lambda: counted(2), 10.0)
        writers = {note[0] for note in fed.notes if note[3].endswith("clusterpropagationpolicies/all/status")}
        assert writers == {"0/2"}
        await fed.client.delete(DEPLOYMENTS, "web", named[1])
        await eventually(lambda: counted(1), 60.0)


async def test_policies_that_do_not_exist_are_neither_measured_nor_told_to_other_shards() -> None:
    fed = ShardedFederation(1, shards=2)
    fed.timings = msgspec.structs.replace(PATIENT, reservations_shown=0.5)
    async with fed:
        metadata = {"name": "all"}
        spec = {"schedulingMode": "Duplicate"}
        policy = {
            "apiVersion": keys.API_VERSION,
            "kind": "ClusterPropagationPolicy",
            "metadata": metadata,
            "spec": spec,
        }
        await fed.client.create(resources.CLUSTER_PROPAGATION_POLICIES, policy)
        for name in ("all", "invented"):
            body = deployment(name, 1, "", "default")
            body["metadata"]["labels"] = {keys.CLUSTER_PROPAGATION_POLICY_LABEL: name}
            await fed.client.create(DEPLOYMENTS, body, "default")
        owner = next(each for each in fed.managers if each.context.options.shard.owns("default"))

        def measured(name: str) -> float | None:
            metric = "kubeadmiral_controller_manager_propagation_policy_reference_count"
            return owner.metrics.registry.get_sample_value(metric, {"name": name, "namespace": ""})

        async def told() -> list[str]:
            shown = f"argosy-reserved-{owner.context.options.shard.index}"
            found = await fed.client.get(CONFIGMAPS, shown, keys.SYSTEM_NAMESPACE)
            return list(msgspec.json.decode(found["data"]["uses"]))

        async def shown() -> bool:
            try:
                return bool(await told())
            except NotFound:
                return False

        await eventually(lambda: fed.federated("invented-deployments.apps"))
        await eventually(shown, 60.0)
        await asyncio.sleep(60.0)
        assert (measured("all"), measured("invented")) == (1, None)
        assert await told() == ["clusterpropagationpolicies/all"]
        # Once it exists, what names it counts.
        await fed.client.create(resources.CLUSTER_PROPAGATION_POLICIES, {**policy, "metadata": {"name": "invented"}})
        await eventually(lambda: measured("invented") == 1, 60.0)
        await asyncio.sleep(60.0)
        assert len(await told()) == 2


def test_of_more_uses_than_there_is_room_for_the_largest_are_told() -> None:
    uses = {f"clusterpropagationpolicies/p{number}": {"apps/v1 Deployment": number} for number in range(1, 10_001)}
    told = msgspec.json.decode(encoded_uses(uses))
    assert 0.9 * 2**18 < len(encoded_uses(uses)) <= 2**18
    assert told == {name: uses[name] for name in list(uses)[-len(told) :]}


async def test_a_kind_that_is_federated_no_more_is_not_counted_by_kind() -> None:
    """And counts again when its type config is back, without a restart."""
    async with Federation(1) as fed:
        await fed.policy()
        await fed.configure("settings", {"a": "b"})

        async def counted(kinds: list[dict[str, Any]]) -> bool:
            found = await status(fed.client, resources.PROPAGATION_POLICIES, "policy")
            return bool(found.get("typedRefCount", []) == kinds)

        there = [{"resource": "configmaps", "count": 1}]
        await eventually(lambda: counted(there), 30.0)
        configs = resources.FEDERATED_TYPE_CONFIGS
        config = await fed.client.get(configs, "configmaps")
        await fed.client.delete(configs, "configmaps")
        await eventually(lambda: counted([]), 60.0)
        kept = {key: config["metadata"].get(key) or {} for key in ("labels", "annotations")}
        await fed.client.create(configs, {**config, "metadata": {"name": "configmaps", **kept}})
        await eventually(lambda: counted(there), 60.0)
