"""Core kinds through the whole server: what needs the core and the kind to work together."""

from typing import Any

from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import HttpClient

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"


def pod(**spec: Any) -> Object:
    containers = [{"name": "c", "image": "x:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}


def service(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


async def test_a_pod_is_admitted_bound_and_grows_a_generation_only_with_its_spec(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        created = (await client.post(PODS, pod())).body
        assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert (created["spec"]["priority"], created["spec"]["serviceAccountName"]) == (0, "default")
        order = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "node-1"}}
        assert (await client.post(f"{PODS}/a/binding", order)).code == 201
        refused = await client.post(f"{PODS}/a/binding", order)
        assert (refused.code, refused.body["reason"]) == (409, "Conflict")
        assert 'pod a is already assigned to node "node-1"' in refused.body["message"]
        found = await client.get(PODS, fieldSelector="spec.nodeName=node-1")
        assert [item["metadata"]["name"] for item in found.body["items"]] == ["a"]
        relabelled = await client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
        status = await client.patch(f"{PODS}/a/status", {"status": {"podIP": "10.1.0.7", "phase": "Running"}})
        image = await client.patch(f"{PODS}/a", {"spec": {"containers": [{"name": "c", "image": "x:2"}]}})
    generations = [answer.body["metadata"]["generation"] for answer in (relabelled, status, image)]
    assert generations[0] == generations[1]
    assert generations[2] == generations[1] + 1
    assert status.body["status"]["podIPs"] == [{"ip": "10.1.0.7"}]


async def test_an_ephemeral_container_is_added_to_a_running_pod(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        await client.post(PODS, pod())
        added = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:1"}]}}
        assert (await client.patch(f"{PODS}/a", added)).code == 422
        answer = await client.patch(f"{PODS}/a/ephemeralcontainers", added)
        assert answer.code == 200, answer.raw
        removed = await client.patch(f"{PODS}/a/ephemeralcontainers", {"spec": {"ephemeralContainers": []}})
    assert answer.body["spec"]["ephemeralContainers"][0]["terminationMessagePolicy"] == "File"
    assert (removed.code, removed.body["details"]["causes"][0]["field"]) == (422, "spec.ephemeralContainers")


async def test_a_cluster_ip_is_kept_taken_and_given_back(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        first = (await client.post(SERVICES, service("a", type="NodePort"))).body
        address, port = first["spec"]["clusterIP"], first["spec"]["ports"][0]["nodePort"]
        replaced = await client.put(f"{SERVICES}/a", service("a", selector={"x": "y"}, type="NodePort"))
        assert (replaced.body["spec"]["clusterIP"], replaced.body["spec"]["ports"][0]["nodePort"]) == (address, port)
        refused = await client.post(SERVICES, service("b", clusterIP=address))
        assert refused.code == 422
        assert refused.body["details"]["causes"][0]["message"].endswith("provided IP is already allocated")
        invalid = await client.post(SERVICES, service("b", clusterIP="10.96.7.7", sessionAffinity="X"))
        assert invalid.code == 422
        assert (await client.post(SERVICES, service("b", clusterIP="10.96.7.7"))).code == 201
        await client.delete(f"{SERVICES}/a")
        assert (await client.post(SERVICES, service("c", clusterIP=address))).code == 201


async def test_put_creates_the_kinds_kubernetes_lets_it_create(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        made = await client.put(f"{SERVICES}/new", service("new"))
        absent = await client.put(f"{PODS}/a", pod())
    assert (made.code, absent.code) == (201, 404)
    assert made.body["spec"]["clusterIP"].startswith("10.96.")


async def test_a_secret_is_sealed_and_its_plain_text_folded(memory_server: EmbeddedServer) -> None:
    path = "/api/v1/namespaces/default/secrets"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a"},
        "stringData": {"k": "v"},
        "immutable": True,
    }
    async with HttpClient(memory_server) as client:
        created = (await client.post(path, secret)).body
        found = await client.get(path, fieldSelector="type=Opaque")
        refused = await client.patch(f"{path}/a", {"stringData": {"k": "w"}})
    assert created["data"] == {"k": "dg=="}
    assert "stringData" not in created
    assert [item["metadata"]["name"] for item in found.body["items"] if item["metadata"]["name"] == "a"] == ["a"]
    assert refused.body["details"]["causes"] == [
        {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: field is immutable when `immutable` is set",
            "field": "data",
        }
    ]
