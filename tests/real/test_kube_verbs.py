"""Every verb of the client on a real kube-apiserver: what it takes, what it answers, and how its refusals read."""

import asyncio
from typing import Any

import pytest

from argosy.kube.client import Client, Patch
from argosy.kube.config import load
from argosy.kube.errors import (
    AlreadyExists,
    ApplyConflict,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
)
from argosy.kube.http import HttpTransport
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from argosy.testing import API_SERVER
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
PODS = Resource("", "v1", "pods", "Pod")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
UNSERVED = Resource("nowhere.example", "v1", "widgets", "Widget")
CONTAINER = {"name": "app", "image": "registry.invalid/app:1"}


def obj(resource: Resource, name: str, namespace: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **rest.pop("metadata", {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}


def deployment(name: str, namespace: str, *images: str) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images or ("app:1",))]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return obj(DEPLOYMENTS, name, namespace, spec=spec)


async def test_an_object_is_created_read_changed_and_deleted(client: Client, namespace: str) -> None:
    made = await client.create(MAPS, obj(MAPS, "a", namespace, data={"x": "1"}))
    assert await client.get(MAPS, "a", namespace) == made
    with pytest.raises(AlreadyExists):
        await client.create(MAPS, obj(MAPS, "a", namespace))
    changed = await client.update(MAPS, {**made, "data": {"x": "2"}})
    assert changed["data"] == {"x": "2"}
    with pytest.raises(Conflict):
        await client.update(MAPS, {**made, "data": {"x": "3"}})
    for held in ({"uid": "another"}, {"resource_version": made["metadata"]["resourceVersion"]}):
        with pytest.raises(Conflict):
            await client.delete(MAPS, "a", namespace, **held)
    await client.delete(MAPS, "a", namespace, uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(MAPS, "a", namespace)


async def test_an_answer_becomes_what_is_asked_for(client: Client, namespace: str) -> None:
    await client.create(MAPS, obj(MAPS, "a", namespace, data={"x": "1"}))
    assert (await client.get(MAPS, "a", namespace, into=Partial)).metadata.name == "a"
    assert b'"x":"1"' in await client.get(MAPS, "a", namespace, into=bytes)
    found = await client.list(MAPS, namespace, field_selector="metadata.name=a")
    assert [(one["kind"], one["apiVersion"], one["data"]) for one in found.items] == [("ConfigMap", "v1", {"x": "1"})]


async def test_json_patch(client: Client, namespace: str) -> None:
    await client.create(MAPS, obj(MAPS, "a", namespace, data={"x": "1"}))
    operations = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "add", "path": "/data/y", "value": "2"}]
    assert (await client.patch(MAPS, "a", operations, namespace, kind=Patch.JSON))["data"] == {"x": "1", "y": "2"}
    with pytest.raises(Invalid):
        await client.patch(MAPS, "a", [{"op": "remove", "path": "/data/z"}], namespace, kind=Patch.JSON)


async def test_merge_patch(client: Client, namespace: str) -> None:
    await client.create(MAPS, obj(MAPS, "a", namespace, data={"x": "1", "y": "1"}))
    patched = await client.patch(MAPS, "a", {"data": {"x": None, "z": "1"}}, namespace)
    assert patched["data"] == {"y": "1", "z": "1"}


async def test_strategic_merge_patch(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("a", namespace, "app:1", "side:1"))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c1", "image": "side:2"}]}}}}
    patched = await client.patch(DEPLOYMENTS, "a", change, namespace, kind=Patch.STRATEGIC)
    assert [one["image"] for one in patched["spec"]["template"]["spec"]["containers"]] == ["app:1", "side:2"]


async def test_an_invalid_object_names_its_fields(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("a", namespace))
    with pytest.raises(Invalid) as refused:
        await client.patch(DEPLOYMENTS, "a", {"spec": {"replicas": -1}}, namespace)
    assert [cause["field"] for cause in refused.value.causes] == ["spec.replicas"]


async def test_apply_creates_changes_and_gives_up_fields(client: Client, namespace: str) -> None:
    await client.apply(MAPS, obj(MAPS, "a", namespace, data={"x": "1", "y": "1"}))
    changed = await client.apply(MAPS, obj(MAPS, "a", namespace, data={"x": "2"}))
    assert changed["data"] == {"x": "2"}
    assert [entry["manager"] for entry in changed["metadata"]["managedFields"]] == ["argosy"]


async def test_apply_tells_what_others_own_and_takes_it_by_force(client: Client, namespace: str) -> None:
    await client.apply(MAPS, obj(MAPS, "a", namespace, data={"x": "1", "y": "1"}), field_manager="somebody")
    mine = obj(MAPS, "a", namespace, data={"x": "2", "z": "2"})
    with pytest.raises(ApplyConflict) as refused:
        await client.apply(MAPS, mine)
    assert refused.value.fields == {".data.x": 'conflict with "somebody"'}
    assert (await client.get(MAPS, "a", namespace))["data"] == {"x": "1", "y": "1"}
    taken = await client.apply(MAPS, mine, force=True)
    assert taken["data"] == {"x": "2", "y": "1", "z": "2"}


async def test_apply_of_a_subresource_leaves_the_rest(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("a", namespace))
    status = {"replicas": 1, "observedGeneration": 1}
    applied = await client.apply(
        DEPLOYMENTS, obj(DEPLOYMENTS, "a", namespace, status=status), subresource="status", field_manager="status"
    )
    assert applied["status"]["replicas"] == 1
    assert applied["spec"]["replicas"] == 2


async def test_apply_needs_a_name(client: Client) -> None:
    with pytest.raises(ValueError, match=r"needs metadata\.name"):
        await client.apply(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})


async def test_the_status_is_written_apart(client: Client, namespace: str) -> None:
    made = await client.create(DEPLOYMENTS, deployment("a", namespace))
    told = {**made, "status": {"replicas": 1}, "spec": {**made["spec"], "replicas": 9}}
    written = await client.update(DEPLOYMENTS, told, subresource="status")
    assert (written["status"]["replicas"], written["spec"]["replicas"]) == (1, 2)
    patched = await client.patch(DEPLOYMENTS, "a", {"status": {"replicas": 2}}, namespace, subresource="status")
    assert patched["status"]["replicas"] == 2
    assert (await client.get(DEPLOYMENTS, "a", namespace, subresource="status"))["status"]["replicas"] == 2


async def test_scale_is_a_subresource(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("a", namespace))
    scale = await client.get(DEPLOYMENTS, "a", namespace, subresource="scale")
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    await client.update(DEPLOYMENTS, {**scale, "spec": {"replicas": 5}}, subresource="scale")
    await client.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 6}}, namespace, subresource="scale")
    assert (await client.get(DEPLOYMENTS, "a", namespace))["spec"]["replicas"] == 6


async def test_a_token_is_asked_for(client: Client, namespace: str) -> None:
    await client.create(ACCOUNTS, obj(ACCOUNTS, "robot", namespace))
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = await client.create(ACCOUNTS, request, namespace, name="robot", subresource="token")
    assert answer["status"]["token"].count(".") == 2


async def test_eviction_respects_budgets(client: Client, namespace: str) -> None:
    await eventually(lambda: client.get(ACCOUNTS, "default", namespace), 30)
    spec = {"containers": [CONTAINER]}
    await client.create(PODS, obj(PODS, "a", namespace, metadata={"labels": {"app": "a"}}, spec=spec))
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(PODS, "a", {"status": running}, namespace, subresource="status")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await client.create(BUDGETS, obj(BUDGETS, "a", namespace, spec=budget))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": namespace}}
    # Nobody here has counted the pods, so nothing may be disturbed yet; the server asks to come back in ten seconds.
    impatient = client.request("POST", PODS.path(namespace, "a", "eviction"), body=eviction, timeout=2.0)
    with pytest.raises(TooManyRequests):
        await impatient
    await client.delete(BUDGETS, "a", namespace)
    await client.create(PODS, eviction, namespace, name="a", subresource="eviction")
    await eventually(lambda: is_gone(client, namespace))


async def is_gone(client: Client, namespace: str) -> bool:
    return not (await client.list(PODS, namespace, field_selector="metadata.name=a")).items


async def test_a_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    body = obj(MAPS, "a", namespace, data={"x": "1"})
    assert (await client.create(MAPS, body, dry_run=True))["data"] == {"x": "1"}
    assert (await client.apply(MAPS, body, dry_run=True))["data"] == {"x": "1"}
    with pytest.raises(NotFound):
        await client.get(MAPS, "a", namespace)
    made = await client.create(MAPS, body)
    other = {**body, "data": {"x": "2"}}
    assert (await client.update(MAPS, other, dry_run=True))["data"] == {"x": "2"}
    assert (await client.patch(MAPS, "a", {"data": {"x": "3"}}, namespace, dry_run=True))["data"] == {"x": "3"}
    await client.delete(MAPS, "a", namespace, dry_run=True)
    await client.delete_collection(MAPS, namespace, dry_run=True)
    assert await client.get(MAPS, "a", namespace) == made


async def test_unknown_fields_are_warned_of_refused_or_ignored_as_asked(kubernetes: Kubernetes, namespace: str) -> None:
    cluster = await kubernetes.shared(API_SERVER)
    heard: list[str] = []
    client = Client(cluster.client().transport, on_warning=heard.append)
    body = {**obj(MAPS, "a", namespace), "colour": "red", "size": 3}
    await client.create(MAPS, body, dry_run=True, field_validation="Warn")
    assert heard == ['unknown field "colour"', 'unknown field "size"']
    await client.create(MAPS, body, dry_run=True, field_validation="Ignore")
    assert len(heard) == 2
    with pytest.raises(BadRequest, match='unknown field "colour", unknown field "size"'):
        await client.create(MAPS, body, field_validation="Strict")
    await client.close()


async def test_a_deprecated_version_is_warned_of_once_in_the_log(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        await client.list(ENDPOINTS, namespace)
    lines = [record.getMessage() for record in caplog.records if record.name == "argosy.kube.client"]
    assert len(lines) == 1
    assert lines[0].startswith(f"{client.name} warns: v1 Endpoints is deprecated")


async def test_a_collection_is_read_in_pages_and_deleted_by_selector(client: Client, namespace: str) -> None:
    for number in range(7):
        labels = {"test": "verbs", "odd": str(number % 2)}
        await client.create(MAPS, obj(MAPS, f"a{number}", namespace, metadata={"labels": labels}))
    pages = [page async for page in client.pages(MAPS, namespace, label_selector="test=verbs", limit=3)]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    whole = await client.list(MAPS, namespace, label_selector="test=verbs", limit=2, into=Partial)
    assert [one.metadata.name for one in whole.items] == [f"a{number}" for number in range(7)]
    await client.delete_collection(MAPS, namespace, label_selector="odd=1")
    left = await client.list(MAPS, namespace, label_selector="test=verbs", into=Partial)
    assert [one.metadata.name for one in left.items] == ["a0", "a2", "a4", "a6"]
    await client.delete_collection(MAPS, namespace, field_selector="metadata.name=a0")
    assert len((await client.list(MAPS, namespace, label_selector="test=verbs")).items) == 3


async def test_deletion_waits_for_finalizers_and_policies(client: Client, namespace: str) -> None:
    kept = obj(MAPS, "kept", namespace, metadata={"finalizers": ["example.com/hold"]})
    await client.create(MAPS, kept)
    answer = await client.delete(MAPS, "kept", namespace, propagation="Background")
    assert answer["metadata"]["deletionTimestamp"]
    await client.patch(MAPS, "kept", {"metadata": {"finalizers": None}}, namespace)
    with pytest.raises(NotFound):
        await client.get(MAPS, "kept", namespace)
    await client.create(DEPLOYMENTS, deployment("a", namespace))
    answer = await client.delete(DEPLOYMENTS, "a", namespace, propagation="Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_a_watch_brings_changes_in_order_and_bookmarks(client: Client, namespace: str) -> None:
    start = (await client.list(MAPS, namespace)).resource_version
    await client.create(MAPS, obj(MAPS, "a", namespace, metadata={"labels": {"in": "yes"}}))
    await client.patch(MAPS, "a", {"metadata": {"labels": {"in": None}}}, namespace)
    await client.patch(MAPS, "a", {"metadata": {"labels": {"in": "yes"}}}, namespace)
    await client.delete(MAPS, "a", namespace)
    watch = client.watch(MAPS, namespace, resource_version=start, label_selector="in=yes", timeout_seconds=3)
    async with watch as events:
        types = [event.type async for event in events]
    assert [each for each in types if each != "BOOKMARK"] == ["ADDED", "DELETED", "ADDED", "DELETED"]


async def test_refusals_are_typed(client: Client, namespace: str, kubernetes: Kubernetes) -> None:
    with pytest.raises(NotFound):
        await client.list(UNSERVED)
    with pytest.raises(MethodNotAllowed):
        await client.delete_collection(NAMESPACES)
    with pytest.raises(BadRequest):
        await client.list(MAPS, namespace, label_selector="!!")
    cluster = await kubernetes.shared(API_SERVER)
    nobody = Client(HttpTransport(load(str(cluster.kubeconfig_of("nobody")))))
    with pytest.raises(Forbidden, match='User "nobody" cannot list resource "configmaps"'):
        await nobody.list(MAPS, namespace)
    with pytest.raises(Forbidden):
        async with nobody.watch(MAPS, namespace, resource_version="0"):
            pass
    await nobody.close()


async def test_discovery_version_and_health(client: Client) -> None:
    found = await client.discover()
    assert found.failures == {}
    assert {MAPS, NAMESPACES, DEPLOYMENTS} <= set(found.resources)
    assert {"get", "list", "watch", "create", "deletecollection"} <= found.verbs[MAPS]
    version, health = await asyncio.gather(client.version(), client.healthz())
    assert version["gitVersion"].startswith("v1.")
    assert health == "ok"
