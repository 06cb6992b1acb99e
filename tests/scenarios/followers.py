"""What a workload needs goes where it goes: only the workload names a policy."""

import orjson

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.harness.ground import World
from tests.harness.leading import (
    ACCOUNTS,
    AUTOSCALERS,
    BUDGETS,
    CLAIMS,
    INGRESSES,
    config_map,
    eventually_in,
    needing,
    secret,
    service_account,
    where,
)
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, SECRETS, SERVICES, weights
from tests.scenarios.seen import eventually_rolled_out

__all__ = [
    "test_a_config_map_that_two_deployments_share_leaves_with_the_last_of_them",
    "test_a_deployment_runs_once_what_it_waits_for_comes",
    "test_a_deployment_with_all_it_needs_simply_runs",
    "test_a_disruption_budget_is_divided_with_its_workload",
    "test_autoscalers_and_budgets_go_with_their_workload",
    "test_followers_go_along_when_their_leader_moves",
    "test_services_and_certificates_go_with_an_ingress",
    "test_what_follows_nobody_stays_at_home_and_what_is_listed_goes_along",
]


async def test_a_deployment_with_all_it_needs_simply_runs(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1))
    namespace = world.namespace
    manifest = needing(config_maps=("settings",), secrets=("password",), account="app", replicas=4, namespace=namespace)
    await world.client.create(DEPLOYMENTS, manifest)
    await world.client.create(CONFIGMAPS, config_map("settings", namespace))
    await world.client.create(SECRETS, secret("password", namespace))
    await world.client.create(SECRETS, secret("registry", namespace))
    await world.client.create(ACCOUNTS, service_account("app", namespace, "registry"))
    await eventually_rolled_out(world, 4)
    for resource, name in ((CONFIGMAPS, "settings"), (SECRETS, "password"), (SECRETS, "registry"), (ACCOUNTS, "app")):
        await eventually_in(world, resource, name, "m1", "m2")
    copy = (await world.copies("settings", CONFIGMAPS))["m1"]
    assert copy["data"] == {"color": "blue"}
    await world.client.patch(CONFIGMAPS, "settings", {"data": {"color": "red"}}, namespace, kind=Patch.MERGE)

    async def changed() -> bool:
        copies = await world.copies("settings", CONFIGMAPS)
        return [each["data"]["color"] for each in copies.values()] == ["red", "red"]

    await world.eventually(changed, "a follower's changes reach its copies")


async def test_a_deployment_runs_once_what_it_waits_for_comes(world: World) -> None:
    await world.policy(**weights(m1=1))
    await world.client.create(DEPLOYMENTS, needing(config_maps=("settings",), replicas=2, namespace=world.namespace))

    async def told() -> bool:
        annotations = (await world.federated())["metadata"]["annotations"]
        return annotations.get(keys.WAITS_FOR) == f'["ConfigMap {world.namespace}/settings"]'

    await world.eventually(told, "what does not exist is told")
    await world.client.create(CONFIGMAPS, config_map("settings", world.namespace))
    await eventually_rolled_out(world, 2)

    async def told_no_more() -> bool:
        return keys.WAITS_FOR not in (await world.federated())["metadata"]["annotations"]

    await world.eventually(told_no_more)


async def test_a_config_map_that_two_deployments_share_leaves_with_the_last_of_them(world: World) -> None:
    await world.policy("one", **weights(m1=1, m2=1))
    await world.policy("two", **weights(m2=1))
    await world.client.create(CONFIGMAPS, config_map("settings", world.namespace))
    for name, policy in (("a", "one"), ("b", "two")):
        shared = needing(name, config_maps=("settings",), replicas=2, policy=policy, namespace=world.namespace)
        await world.client.create(DEPLOYMENTS, shared)
    await eventually_in(world, CONFIGMAPS, "settings", "m1", "m2")
    await world.client.delete(DEPLOYMENTS, "a", world.namespace)
    await eventually_in(world, CONFIGMAPS, "settings", "m2")
    await world.client.delete(DEPLOYMENTS, "b", world.namespace)
    await eventually_in(world, CONFIGMAPS, "settings")
    assert await world.exists(CONFIGMAPS, "settings", world.namespace)


async def test_followers_go_along_when_their_leader_moves(world: World) -> None:
    await world.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    await world.client.create(CONFIGMAPS, config_map("settings", world.namespace))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": world.namespace}
    await world.client.create(
        CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}
    )
    manifest = needing(config_maps=("settings",), claims=("data",), replicas=0, namespace=world.namespace)
    await world.client.create(DEPLOYMENTS, manifest)
    for resource, name in ((CONFIGMAPS, "settings"), (CLAIMS, "data")):
        await eventually_in(world, resource, name, "m1")
    there = {"spec": {"placement": [{"cluster": "m3"}]}}
    await world.client.patch(resources.PROPAGATION_POLICIES, "policy", there, world.namespace, kind=Patch.MERGE)
    await world.eventually_replicas({"m3": 0})
    for resource, name in ((CONFIGMAPS, "settings"), (CLAIMS, "data")):
        await eventually_in(world, resource, name, "m3")


async def test_what_follows_nobody_stays_at_home_and_what_is_listed_goes_along(world: World) -> None:
    await world.policy(**weights(m1=1))
    alone = config_map("alone", world.namespace, **{keys.DISABLE_FOLLOWING: "true"})
    await world.client.create(CONFIGMAPS, alone)
    await world.client.create(CONFIGMAPS, config_map("listed", world.namespace))
    listed = orjson.dumps([{"group": "", "kind": "ConfigMap", "name": "listed"}]).decode()
    manifest = needing(config_maps=("alone",), replicas=1, namespace=world.namespace, **{keys.FOLLOWERS: listed})
    await world.client.create(DEPLOYMENTS, manifest)
    await eventually_in(world, CONFIGMAPS, "listed", "m1")
    await world.eventually_replicas({"m1": 1})
    assert await where(world, CONFIGMAPS, "alone") == []
    await world.annotate(CONFIGMAPS, "alone", world.namespace, **{keys.DISABLE_FOLLOWING: None})
    await eventually_in(world, CONFIGMAPS, "alone", "m1")
    await eventually_rolled_out(world, 1)


async def test_services_and_certificates_go_with_an_ingress(world: World) -> None:
    await world.policy(schedulingMode="Duplicate", placement=[{"cluster": "m2"}])
    await world.client.create(SECRETS, secret("certificate", world.namespace))
    metadata = {"name": "front", "namespace": world.namespace}
    service = {"ports": [{"port": 80}]}
    await world.client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
    backend = {"service": {"name": "front", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {"tls": [{"secretName": "certificate"}], "rules": [{"host": "shop.example.com", "http": {"paths": paths}}]}
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "shop", "namespace": world.namespace, "labels": labels}
    await world.client.create(
        INGRESSES, {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}
    )
    for resource, name in ((INGRESSES, "shop"), (SERVICES, "front"), (SECRETS, "certificate")):
        await eventually_in(world, resource, name, "m2")


async def test_autoscalers_and_budgets_go_with_their_workload(world: World) -> None:
    await world.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    metadata = {"name": "web", "namespace": world.namespace}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaled = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5}
    await world.client.create(
        AUTOSCALERS,
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": scaled},
    )
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await world.client.create(
        BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": budget}
    )
    retaining = {keys.RETAIN_REPLICAS: "true"}
    await world.client.create(DEPLOYMENTS, needing(replicas=2, namespace=world.namespace, **retaining))
    await eventually_in(world, BUDGETS, "web", "m1")
    await eventually_in(world, AUTOSCALERS, "web", "m1")
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)
    await eventually_in(world, BUDGETS, "web")
    await eventually_in(world, AUTOSCALERS, "web")


async def test_a_disruption_budget_is_divided_with_its_workload(world: World) -> None:
    await world.policy(**weights(m1=4, m2=3, m3=3))
    name = {"name": "web", "namespace": world.namespace}
    rule = {
        "targetClusters": {"clusters": ["m3"]},
        "overriders": {"jsonpatch": [{"operator": "replace", "path": "/spec/minAvailable", "value": 1}]},
    }
    kind = resources.OVERRIDE_POLICIES
    body = {"apiVersion": keys.API_VERSION, "kind": kind.kind, "metadata": name, "spec": {"overrideRules": [rule]}}
    await world.client.create(kind, body)
    await world.client.create(DEPLOYMENTS, needing(replicas=10, namespace=world.namespace))
    spec = {"minAvailable": 8, "selector": {"matchLabels": {"app": "web"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": name, "spec": spec}
    await world.client.create(BUDGETS, budget)

    async def eventually_at_least(**shares: int) -> None:
        async def shared() -> bool:
            copies = await world.copies("web", BUDGETS)
            return {member: copy["spec"]["minAvailable"] for member, copy in copies.items()} == shares

        await world.eventually(shared, f"the budget is divided as {shares}")

    await world.eventually_replicas({"m1": 4, "m2": 3, "m3": 3})
    await eventually_at_least(m1=3, m2=2, m3=3)
    told = (await world.federated("web-poddisruptionbudgets.policy"))["metadata"]["annotations"][keys.BUDGET]
    assert told.startswith("divided with its workloads: 2 pods may be away at once")
    assert "none in m3" in told
    # An override policy wins.
    named = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: "web"}}}
    await world.client.patch(BUDGETS, "web", named, world.namespace)
    await eventually_at_least(m1=3, m2=2, m3=1)
    # It is divided anew with its workload, and a percentage is the same everywhere.
    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, world.namespace)

    async def five() -> dict[str, int] | None:
        found = await world.replicas()
        return found if sum(found.values()) == 5 else None

    found = await world.eventually(five)
    await eventually_at_least(m1=found["m1"] + 3, m2=found["m2"] + 3, m3=1)  # none may go, since three are lacking
    unnamed = {"metadata": {"labels": None}, "spec": {"minAvailable": "50%"}}
    await world.client.patch(BUDGETS, "web", unnamed, world.namespace, kind=Patch.MERGE)

    async def the_same() -> bool:
        copies = await world.copies("web", BUDGETS)
        return [copy["spec"]["minAvailable"] for copy in copies.values()] == ["50%"] * 3

    await world.eventually(the_same)
    assert keys.BUDGET not in (await world.federated("web-poddisruptionbudgets.policy"))["metadata"]["annotations"]
