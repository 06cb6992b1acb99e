"""Kinds outside the core group through the whole server: what needs the core and the kind to work together."""

from typing import Any

from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import HttpClient

Object = dict[str, Any]
TEMPLATE: Object = {"spec": {"containers": [{"name": "c", "image": "x:1"}], "restartPolicy": "Never"}}


def apps(plural: str) -> str:
    return f"/apis/apps/v1/namespaces/default/{plural}"


def deployment() -> Object:
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": pods}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def autoscaler(version: str, **spec: Any) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 3, **spec},
    }


async def test_a_job_selects_its_pods_by_its_own_uid(memory_server: EmbeddedServer) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "a-"}, "spec": {"template": TEMPLATE}}
    async with HttpClient(memory_server) as client:
        created = await client.post("/apis/batch/v1/namespaces/default/jobs", job)
    assert created.code == 201, created.raw
    meta, spec = created.body["metadata"], created.body["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}}
    assert spec["template"]["metadata"]["labels"] == meta["labels"]
    assert meta["labels"]["batch.kubernetes.io/job-name"] == meta["name"]


async def test_an_autoscaler_is_one_object_in_both_versions(memory_server: EmbeddedServer) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    async with HttpClient(memory_server) as client:
        created = await client.post(path.format("v1"), autoscaler("v1", targetCPUUtilizationPercentage=50))
        assert created.code == 201, created.raw
        assert created.body["spec"]["targetCPUUtilizationPercentage"] == 50
        newer = await client.get(path.format("v2") + "/a")
        assert newer.body["apiVersion"] == "autoscaling/v2"
        assert newer.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
        older = await client.get(path.format("v1"))
        assert [item["spec"]["targetCPUUtilizationPercentage"] for item in older.body["items"]] == [50]


async def test_an_event_is_one_object_in_both_groups(memory_server: EmbeddedServer) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Started",
        "action": "Start",
        "note": "it runs",
        "reportingController": "a.io/b",
        "reportingInstance": "b-0",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    }
    async with HttpClient(memory_server) as client:
        created = await client.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        assert created.code == 201, created.raw
        core = await client.get("/api/v1/namespaces/default/events/a")
        assert core.code == 200, core.raw
        assert (core.body["message"], core.body["involvedObject"]["name"]) == ("it runs", "p")
        selected = "/apis/events.k8s.io/v1/namespaces/default/events"
        found = await client.get(selected, fieldSelector="regarding.name=p")
        assert [item["note"] for item in found.body["items"]] == ["it runs"]
        none = await client.get(selected, fieldSelector="regarding.name=q")
        assert none.body["items"] == []


async def test_an_annotation_is_a_new_generation_of_a_deployment(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        created = await client.post(apps("deployments"), deployment())
        assert created.body["metadata"]["generation"] == 1
        path = apps("deployments/a")
        annotated = await client.patch(path, {"metadata": {"annotations": {"a": "b"}}})
        assert annotated.body["metadata"]["generation"] == 2
        labelled = await client.patch(path, {"metadata": {"labels": {"a": "b"}}})
        assert labelled.body["metadata"]["generation"] == 2
        refused = await client.patch(path, {"spec": {"selector": {"matchLabels": {"app": "b"}}}})
        assert refused.code == 422
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == [
            "spec.template.metadata.labels",
            "spec.selector",
        ]


async def test_a_lease_is_created_by_an_update_but_never_overwritten_blindly(memory_server: EmbeddedServer) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}}
    async with HttpClient(memory_server) as client:
        created = await client.put(path, lease)
        assert created.code == 201, created.raw
        blind = await client.put(path, lease)
        assert blind.code == 422, blind.raw
        assert [cause["field"] for cause in blind.body["details"]["causes"]] == ["metadata.resourceVersion"]
