"""Any kind in the columns its server shows, as `argosy get` reads them."""

from typing import Any

from argosy.api import keys, resources
from argosy.api.crds import manifests
from argosy.cli.client import tables
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import eventually

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


def made(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


async def test_a_built_in_kind_has_its_own_columns(memory_server: EmbeddedServer) -> None:
    client = memory_server.client()
    await client.create(BUDGETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": {"minAvailable": 2}})
    shown = await tables.read(client, BUDGETS, "default", None)
    assert shown.columns == ["NAME", "MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "AGE"]
    assert [row[:4] for row in shown.rows] == [["web", "2", "N/A", "0"]]


async def test_all_namespaces_have_a_column_of_their_own(memory_server: EmbeddedServer) -> None:
    client = memory_server.client()
    for namespace in ("default", "kube-public"):
        await client.create(MAPS, {"metadata": {"name": "same", "namespace": namespace}})
    await client.create(MAPS, {"metadata": {"name": "other", "namespace": "default"}, "data": {"a": "b"}})
    shown = await tables.read(client, MAPS, None, "same")
    assert shown.columns == ["NAMESPACE", "NAME", "DATA", "AGE"]
    assert [row[:3] for row in shown.rows] == [["default", "same", "0"], ["kube-public", "same", "0"]]
    assert (await tables.read(client, NODES, None, None)).columns[0] == "NAME"


async def test_more_than_a_page_is_read(memory_server: EmbeddedServer, monkeypatch) -> None:
    monkeypatch.setattr(tables, "_PAGE", 2)
    client = memory_server.client()
    for number in range(5):
        await client.create(MAPS, {"metadata": {"name": f"m{number}", "namespace": "default"}})
    shown = await tables.read(client, MAPS, "default", None)
    assert [row[0] for row in shown.rows if row[0].startswith("m")] == [f"m{number}" for number in range(5)]


async def test_the_federations_kinds_say_what_people_ask_for(memory_server: EmbeddedServer) -> None:
    client = memory_server.client()
    for each in manifests():
        await client.create(CRDS, each)

    async def served() -> bool:
        found = (await client.discover()).resources
        return {resources.FEDERATED_OBJECTS, resources.PROPAGATION_POLICIES, resources.FEDERATED_CLUSTERS} <= set(found)

    await eventually(served)
    time = "2024-01-01T00:00:00Z"
    ready = {"lastProbeTime": time, "lastTransitionTime": time, "status": "True", "reason": "x", "message": "x"}
    spec = {"apiEndpoint": "https://x", "secretRef": {"name": "x"}}
    await client.create(resources.FEDERATED_CLUSTERS, made("FederatedCluster", "paris", "", spec))
    status = {"conditions": [{"type": "Ready", **ready}], "kubernetesVersion": "v1.36.3", "lastHeardTime": time}
    await client.patch(resources.FEDERATED_CLUSTERS, "paris", {"status": status}, subresource="status")
    shown = await tables.read(client, resources.FEDERATED_CLUSTERS, None, None)
    assert shown.columns == ["NAME", "READY", "JOINED", "VERSION", "HEARD", "RESPONDING", "AGE"]
    [[name, *cells, heard, responding, _]] = shown.rows
    assert (name, cells, responding) == ("paris", ["True", "<none>", "v1.36.3"], "<none>")
    assert heard.endswith("d") or "y" in heard, "years ago"

    federated = made("FederatedObject", "web-deployments.apps", "default", {"template": {}})
    await client.create(resources.FEDERATED_OBJECTS, federated)
    propagated = {"type": "Propagated", "status": "False"}
    status = {"syncedGeneration": 1, "syncedClusters": "2/3", "conditions": [propagated]}
    await client.patch(
        resources.FEDERATED_OBJECTS, "web-deployments.apps", {"status": status}, "default", subresource="status"
    )
    shown = await tables.read(client, resources.FEDERATED_OBJECTS, "default", None)
    assert shown.columns == ["NAME", "CLUSTERS", "PROPAGATED", "GENERATION", "SYNCED", "AGE"]
    assert [row[1:5] for row in shown.rows] == [["2/3", "False", "1", "1"]]

    spec = {"placement": [{"cluster": "paris"}, {"cluster": "rome"}], "clusterSelector": {"region": "eu"}}
    policy = made("PropagationPolicy", "eu", "default", {"schedulingMode": "Divide", **spec})
    await client.create(resources.PROPAGATION_POLICIES, policy)
    shown = await tables.read(client, resources.PROPAGATION_POLICIES, "default", None)
    assert shown.columns == ["NAME", "MODE", "CLUSTERS", "SELECTOR", "AGE"]
    assert [row[1:4] for row in shown.rows] == [
        ["Divide", '[{"cluster":"paris"},{"cluster":"rome"}]', '{"region":"eu"}']
    ]
