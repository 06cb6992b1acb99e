"""Argosy's own API server warns, over HTTP, of what is accepted and has no effect, and of what cannot be done as things are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.api import keys, resources
from argosy.api.admission import caveats
from argosy.cli.local import access
from argosy.cli.local.caveats import Caveats
from argosy.cli.local.guard import Guard
from argosy.control.install.installer import install
from argosy.kube.client import Client, Patch
from argosy.kube.config import Connection
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer
from tests.harness.caveats import EXAMPLES, NAMESPACE, PLAIN, config_map, obj, policy
from tests.harness.commands import Said, here
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES

pytestmark = pytest.mark.real_time("warnings are headers of HTTP")

STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
NAMED = {keys.PROPAGATION_POLICY_LABEL: "divide"}


class Told:
    """A user, and what the server warned of."""

    def __init__(self, server: EmbeddedServer):
        self.server = server
        self.texts: list[str] = []
        pair = server.authority.issue("admin", groups=["system:masters"])
        connection = Connection(
            server.url,
            ca_data=server.authority.certificate,
            client_certificate=pair.certificate,
            client_key=pair.key,
        )
        self.client = Client(HttpTransport(connection), on_warning=self.texts.append)

    async def of(self, resource: Resource, body: dict[str, Any]) -> list[str]:
        """Of a dry run, so that nothing stays."""
        self.texts.clear()
        await self.client.create(resource, body, dry_run=True)
        return list(self.texts)


@pytest.fixture
async def told() -> AsyncIterator[Told]:
    server = EmbeddedServer(admission=(Guard, Caveats))
    await server.start()
    try:
        await install(server.client(), chosen=access.INSTALLATION)
        found = Told(server)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await found.client.create(NAMESPACES, namespace)
        yield found
        await found.client.close()
    finally:
        await server.stop()


def workload(resource: Resource, annotations: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec: dict[str, Any] = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    if resource is STATEFULSETS:
        spec["serviceName"] = "web"
    return obj(resource, {"spec": spec}, annotations=annotations, labels={**NAMED, **labels})


async def divide(told: Told, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    body = policy("", annotations, **spec).body
    await told.client.create(
        resources.PROPAGATION_POLICIES, {**body, "metadata": {**body["metadata"], "name": "divide"}}
    )


async def test_every_caveat_is_told_and_nothing_else_is_said(told):
    await told.client.create(resources.PROPAGATION_POLICIES, _named(policy("").body, "everywhere"))
    for example in EXAMPLES:
        if example.resource.group == "multicluster.x-k8s.io":
            continue  # not served unless its CRD is installed
        if example.resource is NAMESPACES:
            texts = await told.of(NAMESPACES, _named(example.body, "another"))
        else:
            texts = await told.of(example.resource, example.body)
        assert any(example.text in text for text in texts), (example.text, texts)
    for example in PLAIN:
        body = _named(example.body, "another") if example.resource is NAMESPACES else example.body
        assert await told.of(example.resource, body) == [], example


def _named(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "name": name}}


async def test_an_update_and_a_patch_are_told_as_well_and_a_status_is_not(told):
    client = told.client
    await divide(told)
    await client.patch(resources.PROPAGATION_POLICIES, "divide", {"spec": {"tolerations": [{"key": "a"}]}}, NAMESPACE)
    assert told.texts == []
    change = {"spec": {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}}
    await client.patch(resources.PROPAGATION_POLICIES, "divide", change, NAMESPACE)
    [text] = told.texts
    assert "tolerationSeconds" in text
    found = await client.get(resources.PROPAGATION_POLICIES, "divide", NAMESPACE)
    told.texts.clear()
    await client.update(resources.PROPAGATION_POLICIES, found)
    assert told.texts == [text]
    told.texts.clear()
    status = {"status": {"refCount": 1}}
    await client.patch(resources.PROPAGATION_POLICIES, "divide", status, NAMESPACE, subresource="status")
    assert told.texts == []


async def test_the_controllers_are_not_warned_of_what_users_wrote(told):
    example = config_map("", {keys.FOLLOWS_OBJECT: "x"}).body
    await told.client.create(CONFIGMAPS, example)
    assert len(told.texts) == 1
    heard: list[str] = []
    ours = told.server.client(User(access.CONTROLLERS, ("system:authenticated",)))
    ours = Client(ours.transport, on_warning=heard.append)
    await ours.patch(CONFIGMAPS, "example", {"metadata": {"annotations": {"a": "b"}}}, NAMESPACE)
    assert heard == []


async def test_a_server_without_federation_says_nothing():
    server = EmbeddedServer(admission=(Guard, Caveats))
    await server.start()
    try:
        told = Told(server)
        body = config_map("", {keys.FOLLOWS_OBJECT: "x"}).body
        assert await told.of(CONFIGMAPS, {**body, "metadata": {**body["metadata"], "namespace": "default"}}) == []
        await told.client.close()
    finally:
        await server.stop()


async def test_a_policy_that_does_not_exist(told):
    texts = await told.of(DEPLOYMENTS, workload(DEPLOYMENTS))
    assert texts == [f"PropagationPolicy {NAMESPACE}/divide does not exist: nothing is propagated until it does"]
    await divide(told)
    assert await told.of(DEPLOYMENTS, workload(DEPLOYMENTS)) == []
    labels = {keys.OVERRIDE_POLICY_LABEL: "here", keys.CLUSTER_OVERRIDE_POLICY_LABEL: "anywhere"}
    assert await told.of(DEPLOYMENTS, workload(DEPLOYMENTS, **labels)) == [
        "ClusterOverridePolicy anywhere does not exist: nothing is propagated until it does",
        f"OverridePolicy {NAMESPACE}/here does not exist: nothing is propagated until it does",
    ]


async def test_a_kind_that_is_not_federated(told):
    [text] = await told.of(LEASES, obj(LEASES, {"spec": {}}, labels=NAMED))
    assert text == (
        f"label {keys.PROPAGATION_POLICY_LABEL} has no effect: this kind is not federated, no FederatedTypeConfig names it"
    )
    body = {**obj(LEASES, {"spec": {}}, labels={"app": "web"})}
    assert await told.of(LEASES, body) == []


async def test_a_policy_that_selects_in_vain_and_what_it_selects(told):
    selectors = [
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"labelSelector": {"matchLabels": {"no label": "x"}}},
    ]
    spec = {"schedulingMode": keys.DIVIDE, "resourceSelectors": selectors}
    body = obj(resources.PROPAGATION_POLICIES, {"spec": {**spec}})
    unfederated = "spec.resourceSelectors[0] selects nothing: Lease is not federated, no FederatedTypeConfig names it"
    [first, second] = await told.of(resources.PROPAGATION_POLICIES, body)
    assert first == unfederated
    assert second.startswith("spec.resourceSelectors[2] selects nothing: ")
    await told.client.create(resources.PROPAGATION_POLICIES, body)
    [text] = await told.of(LEASES, obj(LEASES, {"spec": {}}))
    assert text == (
        f"PropagationPolicy {NAMESPACE}/example selects it, and nothing comes of it: this kind is not federated,"
        " no FederatedTypeConfig names it"
    )
    selected = workload(DEPLOYMENTS)
    selected["metadata"]["labels"].pop(keys.PROPAGATION_POLICY_LABEL)
    assert await told.of(DEPLOYMENTS, selected) == []


async def test_kinds_whose_type_config_places_nothing(told):
    await divide(told)
    body = obj(SLICES, {"addressType": "IPv4", "endpoints": []}, labels=NAMED)
    assert await told.of(SLICES, body) == [
        "nothing is propagated: the type config endpointslices.discovery.k8s.io lists no controller that places objects"
    ]
    # A step of somebody else may place it.
    change = {"spec": {"controllers": [["example.com/scheduler"]]}}
    await told.client.patch(resources.FEDERATED_TYPE_CONFIGS, "endpointslices.discovery.k8s.io", change)
    assert await told.of(SLICES, body) == []


async def test_a_policy_that_divides_what_cannot_be_divided(told):
    await divide(told, autoMigration={})
    indexed = {"parallelism": 2, "completions": 4, "completionMode": "Indexed"}
    indexed["template"] = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]}}
    found = await told.of(JOBS, obj(JOBS, {"spec": indexed}, labels=NAMED))
    assert found[0].startswith(
        "replicas are not divided, every cluster gets all of them: a Job with completionMode Indexed"
    )
    await told.client.patch(
        resources.FEDERATED_TYPE_CONFIGS, "statefulsets.apps", {"spec": {"pathDefinition": None}}, kind=Patch.MERGE
    )
    assert await told.of(STATEFULSETS, workload(STATEFULSETS)) == [
        "replicas are not divided, every cluster gets all of them: the type config statefulsets.apps has no"
        " pathDefinition.replicasSpec",
        "autoMigration of PropagationPolicy divide has no effect on this kind",
    ]
    # What has no replicas is not meant to be divided, although the whole application names one policy.
    assert await told.of(CONFIGMAPS, obj(CONFIGMAPS, {}, labels=NAMED)) == []
    assert await told.of(DEPLOYMENTS, workload(DEPLOYMENTS)) == []
    duplicated = workload(STATEFULSETS, {keys.SCHEDULING_MODE: keys.DUPLICATE})
    assert [text for text in await told.of(STATEFULSETS, duplicated) if "divided" in text] == []
    retaining = obj(CONFIGMAPS, {}, annotations={keys.RETAIN_REPLICAS: "true"}, labels=NAMED)
    [text] = await told.of(CONFIGMAPS, retaining)
    assert text.startswith(f"annotation {keys.RETAIN_REPLICAS} has no effect")


async def test_a_namespace_goes_everywhere_whichever_policy_it_names(told):
    body = {"apiVersion": "v1", "kind": "Namespace"}
    metadata = {"name": "another", "labels": {keys.CLUSTER_PROPAGATION_POLICY_LABEL: "some"}}
    [text] = await told.of(NAMESPACES, {**body, "metadata": metadata})
    assert text == (
        f"propagation policy some is not looked at: the type config namespaces does not list {keys.GLOBAL_SCHEDULER}"
    )


async def test_a_profile_that_does_not_exist(told):
    body = policy("", schedulingProfile="mine").body
    assert await told.of(resources.PROPAGATION_POLICIES, body) == [
        "SchedulingProfile mine does not exist: nothing is placed by this policy until it does"
    ]
    await divide(told, schedulingProfile="mine")
    [text] = await told.of(DEPLOYMENTS, workload(DEPLOYMENTS))
    assert "names SchedulingProfile mine, which does not exist" in text


async def test_a_policy_that_cannot_be_understood_and_annotations_that_cannot(told):
    spread = [{"topologyKey": "region", "minDomains": 3, "maxDomains": 2}]
    [text] = await told.of(resources.PROPAGATION_POLICIES, policy("", topologySpreadConstraints=spread).body)
    assert text == (
        "objects that name this policy are not placed: spec.topologySpreadConstraints[0].minDomains: 3 is greater than"
        " maxDomains, 2"
    )
    affinity = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}]
    [text] = await told.of(resources.PROPAGATION_POLICIES, policy("", clusterAffinity=affinity).body)
    assert text.startswith("objects that name this policy are not placed: spec.clusterAffinity: ")
    await divide(told)
    [text] = await told.of(DEPLOYMENTS, workload(DEPLOYMENTS, {keys.PLACEMENTS: "[", keys.MAX_CLUSTERS: "2"}))
    assert text.startswith(f"annotation {keys.PLACEMENTS} is ignored: ")
    # Told once, although two look at it.
    assert len(await told.of(DEPLOYMENTS, workload(DEPLOYMENTS, {keys.MAX_CLUSTERS: "two"}))) == 1


async def test_annotations_that_the_policys_owner_refuses(told):
    await divide(told, {keys.REFUSE_OBJECT_OVERRIDES: "true"})
    [text] = await told.of(DEPLOYMENTS, workload(DEPLOYMENTS, {keys.MAX_CLUSTERS: "2"}))
    assert text == f"annotation {keys.MAX_CLUSTERS} is ignored: the policy's owner refuses overrides by objects"


async def test_an_installation_says_nothing_of_its_own_type_configs(told, caplog):
    await told.client.delete(resources.FEDERATED_TYPE_CONFIGS, "deployments.apps")
    change = {"metadata": {"annotations": {keys.INSTALLED_TYPE_CONFIGS: None}}}
    await told.client.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, change)
    told.texts.clear()
    assert await install(told.client, chosen=access.INSTALLATION)
    assert told.texts == []
    assert "warns" not in caplog.text
    assert caveats.told(
        resources.FEDERATED_TYPE_CONFIGS, await told.client.get(resources.FEDERATED_TYPE_CONFIGS, "deployments.apps")
    )


async def test_commands_print_warnings_as_kubectl_does(told, tmp_path: Path):
    config, manifest = tmp_path / "hub", tmp_path / "policy.yaml"
    config.write_text(yaml.safe_dump(told.server.kubeconfig("hub")))
    example = policy("", tolerations=[{"key": "a", "tolerationSeconds": 60}])
    manifest.write_text(yaml.safe_dump_all([example.body, _named(example.body, "another")]))

    async def said(*arguments: str) -> Said:
        found = await asyncio.to_thread(here, "--kubeconfig", str(config), *arguments)
        assert found.code == 0, found.err
        return found

    [text] = caveats.told(example.resource, example.body)
    applied = await said("apply", "-f", str(manifest))
    # Each text once, beside the result.
    assert applied.err == f"Warning: {text}\n"
    assert applied.out.splitlines() == [
        f"propagationpolicy.{keys.GROUP}/example created",
        f"propagationpolicy.{keys.GROUP}/another created",
    ]
    assert (await said("apply", "-f", str(manifest))).err == ""  # unchanged, so nothing was written
    labelled = await said("label", "pp/example", "a=b", "-n", NAMESPACE)
    assert labelled.err == f"Warning: {text}\n"
    patched = await said("patch", "pp/example", "-p", "{spec: {maxClusters: 0}}", "-n", NAMESPACE)
    assert patched.err.splitlines() == [
        f"Warning: {text}",
        "Warning: spec.maxClusters is less than 1: no cluster is ever chosen",
    ]
