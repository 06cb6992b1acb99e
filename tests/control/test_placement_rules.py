"""Rules of policies that look at labels of clusters, at other workloads and at what Katalyst reclaims, at work."""

import json

from argosy.api import keys, resources
from argosy.api.types import FederatedCluster
from argosy.control.members.role import rules_for
from argosy.control.options import Options
from argosy.control.scheduling.placed import PlacedWorkloads
from argosy.control.wake import Subscriptions
from argosy.fleet.katalyst import CUSTOM_NODE_RESOURCES, PLUGIN, RECLAIMED_MILLICPU
from argosy.fleet.workloads import Workloads
from argosy.kube.client import Patch
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource
from argosy.kube.selectors import from_map
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, Federation
from tests.harness.user import deployment

REGION = "topology.kubernetes.io/region"
CACHE = from_map({"app": "cache"})
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)


async def set_region(fed, name, region):
    body = {"metadata": {"labels": {REGION: region}}}
    await fed.client.patch(resources.FEDERATED_CLUSTERS, name, body, kind=Patch.MERGE)
    await eventually(lambda: fed.inside.snapshot.member(name).labels.get(REGION) == region)


async def test_replicas_are_spread_over_regions():
    async with Federation(3, cpus=(64, 64, 4)) as fed:
        for name, region in (("m1", "eu"), ("m2", "eu"), ("m3", "us")):
            await set_region(fed, name, region)
        await fed.policy(topologySpreadConstraints=[{"topologyKey": REGION, "maxSkew": 1}])
        await fed.deploy(replicas=12)
        await fed.eventually_replicas({"m1": 3, "m2": 3, "m3": 6})


async def test_a_workload_waits_for_the_one_it_wants_to_be_beside_and_follows_it():
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}}
    async with Federation(3) as fed:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        await fed.policy("beside", schedulingMode="Duplicate", workloadAffinity=required)
        await fed.policy("apart", schedulingMode="Duplicate", workloadAntiAffinity=required)
        await fed.policy("cache", schedulingMode="Duplicate", placement=[{"cluster": "m2"}])
        await fed.deploy("web", 1, "beside")

        async def held():
            message = (await fed.federated())["metadata"]["annotations"].get(keys.HELD, "")
            return "workload affinity rules" in message

        await eventually(held)
        await fed.deploy("cache", 1, "cache", app="cache")
        await fed.eventually_replicas({"m2": 1}, "cache")
        await fed.eventually_replicas({"m2": 1}, "web")
        await fed.deploy("loud", 1, "apart")
        await fed.eventually_replicas({"m1": 1, "m3": 1}, "loud")


async def test_a_workload_grows_only_apart_from_the_one_it_avoids_until_that_leaves():
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}}
    async with Federation(2) as fed:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        await fed.policy("apart", workloadAntiAffinity=required)
        await fed.policy("cache", schedulingMode="Duplicate", placement=[{"cluster": "m2"}])
        await fed.deploy("web", 4, "apart")
        await fed.eventually_replicas({"m1": 2, "m2": 2}, "web")
        await fed.deploy("cache", 1, "cache", app="cache")
        await fed.eventually_replicas({"m2": 1}, "cache")
        await fed.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 8}}, "default", subresource="scale")
        await fed.eventually_replicas({"m1": 6, "m2": 2}, "web")
        everywhere = {"spec": {"placement": [{"cluster": "m1"}, {"cluster": "m2"}]}}
        await fed.client.patch(resources.PROPAGATION_POLICIES, "cache", everywhere, "default", kind=Patch.MERGE)
        await fed.eventually_replicas({"m1": 1, "m2": 1}, "cache")
        await fed.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 9}}, "default", subresource="scale")

        async def held():
            message = (await fed.federated())["metadata"]["annotations"].get(keys.HELD, "")
            return "1 of 9 replicas found no cluster" in message

        await eventually(held)
        await fed.client.delete(DEPLOYMENTS, "cache", "default")
        await eventually(lambda: _total(fed, 9))


async def _total(fed, replicas):
    annotations = (await fed.federated())["metadata"]["annotations"]
    return (
        keys.HELD not in annotations and sum(json.loads(annotations[keys.SCHEDULING])["placement"].values()) == replicas
    )


async def test_the_index_follows_placements_and_labels_and_tells_of_moves():
    async with Federation(2) as fed:
        index, moves = Workloads(), []
        placed = PlacedWorkloads(fed.inside.caches, index)
        placed.moved.add_handler(lambda _: moves.append(dict(index.placed(CACHE, ["default"]))))
        Subscriptions([placed], [], 0.0)
        await fed.policy(schedulingMode="Duplicate")
        await fed.configure("settings", {"a": "b"})
        await fed.deploy("cache", 1, app="cache")
        await eventually(lambda: moves and moves[-1] == {"m1": 1, "m2": 1})
        assert len(index) == 1, "a ConfigMap is no workload"
        await fed.client.patch(DEPLOYMENTS, "cache", {"metadata": {"labels": {"app": "other"}}}, "default")
        await eventually(lambda: moves[-1] == {})
        await fed.client.delete(DEPLOYMENTS, "cache", "default")
        await eventually(lambda: len(index) == 0)


async def test_what_katalyst_reclaims_is_capacity_where_a_cluster_says_so():
    async with Federation(2, options=Options(katalyst=True)) as fed:
        for name in ("m1", "m2"):
            await reclaim(fed.member(name), f"{name}-node", "8k")
        annotation = {keys.CLUSTER_RESOURCE_PLUGINS: f'["{PLUGIN}"]'}
        body = {"metadata": {"annotations": annotation}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", body, kind=Patch.MERGE)
        await eventually(lambda: fed.inside.snapshot.member("m1").available.get(RECLAIMED_MILLICPU) == 8000)
        await fed.policy()
        manifest = deployment("web", 4, "policy", "default")
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {RECLAIMED_MILLICPU: "1k"}, "limits": {RECLAIMED_MILLICPU: "1k"}}
        await fed.client.create(DEPLOYMENTS, manifest)
        await fed.eventually_replicas({"m1": 4})
        body = {"metadata": {"annotations": {keys.CLUSTER_RESOURCE_PLUGINS: None}}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", body, kind=Patch.MERGE)
        await eventually(lambda: RECLAIMED_MILLICPU not in fed.inside.snapshot.member("m1").available)


def test_an_account_may_read_what_katalyst_reclaims_where_that_is_asked_for():
    cluster = FederatedCluster(metadata=Metadata(name="m1"))
    asking = FederatedCluster(
        metadata=Metadata(name="m1", annotations={keys.CLUSTER_RESOURCE_PLUGINS: f'["{PLUGIN}"]'})
    )
    added = [rule for rule in rules_for(asking, ()) if rule not in rules_for(cluster, ())]
    assert added == [{"apiGroups": [PLUGIN], "resources": ["customnoderesources"], "verbs": ["get", "list", "watch"]}]


async def reclaim(member, node, amount):
    """A member with Katalyst's kind, and what it reclaims on a node."""
    names = {"plural": CUSTOM_NODE_RESOURCES.plural, "kind": CUSTOM_NODE_RESOURCES.kind, "singular": "cnr"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    await member.create(
        CRDS,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{names['plural']}.{PLUGIN}"},
            "spec": {"group": PLUGIN, "scope": "Cluster", "names": names, "versions": [version]},
        },
    )
    manifest = {
        "apiVersion": f"{PLUGIN}/v1alpha1",
        "kind": CUSTOM_NODE_RESOURCES.kind,
        "metadata": {"name": node},
        "status": {"resources": {"allocatable": {RECLAIMED_MILLICPU: amount}}},
    }
    await member.create(CUSTOM_NODE_RESOURCES, manifest)
