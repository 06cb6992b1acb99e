"""The verbs over HTTPS, on both storages: what is stored, what is answered, what is refused."""

import asyncio
from typing import Any

import orjson
import pytest

from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import HttpClient

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def config_map(name: str = "a", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def deployment(name: str = "web", replicas: int = 2) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def test_create_sets_what_only_the_server_sets(client: HttpClient) -> None:
    made = await client.post(MAPS, config_map(data={"k": "v"}, metadata={"uid": "mine", "selfLink": "x"}))
    assert made.code == 201
    meta = made.body["metadata"]
    assert meta["namespace"] == "default"
    assert meta["uid"] != "mine"
    assert meta["resourceVersion"].isdigit()
    assert meta["creationTimestamp"].endswith("Z")
    assert "selfLink" not in meta
    assert "generation" not in meta
    read = await client.get(f"{MAPS}/a")
    assert read.code == 200
    assert read.body == made.body


async def test_a_present_name_is_a_conflict(client: HttpClient) -> None:
    await client.post(MAPS, config_map())
    again = await client.post(MAPS, config_map())
    assert again.code == 409
    assert again.body["reason"] == "AlreadyExists"
    assert again.body["message"] == 'configmaps "a" already exists'
    assert again.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_generate_name_makes_distinct_names(client: HttpClient) -> None:
    body = {"metadata": {"generateName": "run-"}}
    names = {(await client.post(MAPS, body)).body["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


async def test_absent_objects_and_resources_are_told_apart(client: HttpClient) -> None:
    absent = await client.get(f"{DEPLOYMENTS}/none")
    assert (absent.code, absent.body["message"]) == (404, 'deployments.apps "none" not found')
    assert absent.body["details"] == {"name": "none", "group": "apps", "kind": "deployments"}
    unserved = await client.get("/apis/apps/v1/namespaces/default/nonesuch")
    assert unserved.body["message"] == "the server could not find the requested resource"
    assert (await client.get("/apis/none.example/v1/things")).code == 404


async def test_a_missing_namespace_is_not_found(client: HttpClient) -> None:
    answer = await client.post("/api/v1/namespaces/nonesuch/configmaps", config_map())
    assert (answer.code, answer.body["message"]) == (404, 'namespaces "nonesuch" not found')


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", MAPS), ("POST", f"{MAPS}/a"), ("POST", "/api/v1/configmaps"), ("OPTIONS", MAPS)],
)
async def test_methods_that_mean_nothing_are_not_allowed(client: HttpClient, method: str, path: str) -> None:
    answer = await client.send(method, path, {})
    assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_bad_names_labels_and_finalizers_are_all_told(client: HttpClient) -> None:
    metadata = {"name": "A_b", "labels": {"a b": "c d"}, "finalizers": ["x"]}
    answer = await client.post(MAPS, config_map(metadata=metadata))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"].startswith('ConfigMap "A_b" is invalid: [metadata.name: Invalid value: "A_b": ')
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "metadata.name",
        "metadata.labels",
        "metadata.labels",
        "metadata.finalizers[0]",
    ]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"{", "unexpected end of JSON input ({)"),
        (b"[]", "cannot unmarshal array"),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, "cannot be handled as a ConfigMap"),
        ({"metadata": {"name": 5}}, "cannot unmarshal number into Go struct field ObjectMeta.metadata.name"),
        ({"metadata": {"name": "a", "namespace": "other"}}, "does not match the namespace sent on the request"),
        (b'{"metadata":' + b'{"a":' * 300 + b"1" + b"}" * 301, "nested deeper"),
    ],
)
async def test_unreadable_bodies_are_bad_requests(client: HttpClient, body: Any, text: str) -> None:
    answer = await client.post(MAPS, body)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert text in answer.body["message"]


async def test_yaml_bodies_and_answers(client: HttpClient) -> None:
    body = b"metadata:\n  name: a\ndata:\n  when: '2020-01-01'\n  day: 2020-01-01\n"
    made = await client.post(MAPS, body, {"content-type": "application/yaml"})
    assert made.code == 201, made.raw
    assert made.body["data"] == {"when": "2020-01-01", "day": "2020-01-01"}
    read = await client.get(f"{MAPS}/a", {"accept": "application/yaml"})
    assert b"name: a\n" in read.raw
    bomb = b"a: &a [x, x, x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c, *%c, *%c]\n" % (c + 1, c + 1, *[c] * 4) for c in b"abcdefghijkl"
    )
    refused = await client.post(MAPS, bomb, {"content-type": "application/yaml"})
    assert refused.code == 400
    assert "document contains excessive aliasing" in refused.body["message"]


async def test_unknown_and_repeated_fields_follow_field_validation(client: HttpClient) -> None:
    body = b'{"metadata":{"name":"x"},"data":{"a":"1","a":"2"},"foo":1}'
    strict = await client.post(MAPS, body, fieldValidation="Strict")
    assert strict.code == 400
    assert strict.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data.a", unknown field "foo"'
    )
    warned = await client.post(MAPS, body)
    assert warned.code == 201
    assert warned.warnings == ['299 - "duplicate field \\"data.a\\""', '299 - "unknown field \\"foo\\""']
    assert warned.body["data"] == {"a": "2"}
    assert "foo" not in warned.body
    ignored = await client.put(f"{MAPS}/x", body, fieldValidation="Ignore")
    assert "warning" not in ignored.headers
    wrong = await client.post(MAPS, body, fieldValidation="Nope", dryRun="x")
    assert wrong.code == 422
    assert [cause["field"] for cause in wrong.body["details"]["causes"]] == ["dryRun", "fieldValidation"]


async def test_dry_run_answers_and_stores_nothing(client: HttpClient) -> None:
    made = await client.post(MAPS, config_map(), dryRun="All")
    assert made.code == 201
    assert "resourceVersion" not in made.body["metadata"]
    assert (await client.get(f"{MAPS}/a")).code == 404
    stored = await client.post(MAPS, config_map())
    changed = await client.put(f"{MAPS}/a", config_map(data={"a": "b"}), dryRun="All")
    assert changed.body["data"] == {"a": "b"}
    assert (await client.delete(f"{MAPS}/a", dryRun="All")).code == 200
    assert (await client.get(f"{MAPS}/a")).body == stored.body


async def test_update_compares_versions(client: HttpClient) -> None:
    first = await client.post(MAPS, config_map())
    second = await client.put(f"{MAPS}/a", first.body | {"data": {"a": "1"}})
    assert second.code == 200
    assert int(second.version) > int(first.version)
    stale = await client.put(f"{MAPS}/a", first.body | {"data": {"a": "2"}})
    assert stale.code == 409
    assert stale.body["message"] == f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'
    unconditional = await client.put(f"{MAPS}/a", config_map(data={"a": "3"}))
    assert unconditional.code == 200
    assert unconditional.body["metadata"]["uid"] == first.body["metadata"]["uid"]
    other = await client.put(f"{MAPS}/a", config_map(metadata={"uid": "other"}))
    assert other.code == 409
    assert "UID in precondition: other" in other.body["message"]


async def test_an_update_that_changes_nothing_keeps_the_version(client: HttpClient) -> None:
    first = await client.post(DEPLOYMENTS, deployment())
    assert (await client.put(f"{DEPLOYMENTS}/web", first.body)).version == first.version
    assert (await client.put(f"{DEPLOYMENTS}/web", deployment())).version == first.version
    assert (await client.patch(f"{DEPLOYMENTS}/web", {})).version == first.version


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (config_map("b"), "the name of the object (b) does not match the name on the URL (a)"),
        ({"metadata": {}}, "the name of the object (a based on URL) was undeterminable: name must be provided"),
        (config_map(metadata={"namespace": "z"}), "does not match the namespace sent on the request"),
    ],
)
async def test_update_of_another_object_than_the_url_names(client: HttpClient, body: Any, text: str) -> None:
    await client.post(MAPS, config_map())
    answer = await client.put(f"{MAPS}/a", body)
    assert answer.code == 400
    assert text in answer.body["message"]


async def test_metadata_that_an_update_cannot_change(client: HttpClient) -> None:
    first = await client.post(MAPS, config_map())
    deleting = await client.put(f"{MAPS}/a", config_map(metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"}))
    assert deleting.code == 422
    assert deleting.body["details"]["causes"][0]["field"] == "metadata.deletionTimestamp"
    kept = await client.put(f"{MAPS}/a", config_map(metadata={"creationTimestamp": "2020-01-01T00:00:00Z"}))
    assert kept.body["metadata"]["creationTimestamp"] == first.body["metadata"]["creationTimestamp"]


async def test_generation_counts_changes_of_the_spec(client: HttpClient) -> None:
    first = await client.post(DEPLOYMENTS, deployment())
    assert first.body["metadata"]["generation"] == 1
    labelled = await client.patch(f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.body["metadata"]["generation"] == 1
    scaled = await client.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 5}})
    assert scaled.body["metadata"]["generation"] == 2
    status = await client.patch(f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 5}, "spec": {"replicas": 9}})
    assert status.body["metadata"]["generation"] == 2
    assert status.body["status"]["replicas"] == 5
    assert status.body["spec"]["replicas"] == 5
    main = await client.patch(f"{DEPLOYMENTS}/web", {"status": {"replicas": 0}})
    assert main.body["status"]["replicas"] == 5


async def test_patches_of_all_kinds(client: HttpClient) -> None:
    await client.post(DEPLOYMENTS, deployment())
    path = f"{DEPLOYMENTS}/web"
    container = {
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "new"}, {"name": "d", "image": "x"}]}}}
    }
    strategic = await client.patch(path, container, "strategic-merge-patch")
    assert [c["image"] for c in strategic.body["spec"]["template"]["spec"]["containers"]] == ["new", "x"]
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 7}]
    assert (await client.patch(path, operations, "json-patch")).body["spec"]["replicas"] == 7
    merged = await client.patch(path, {"metadata": {"annotations": {"a": "b"}}})
    assert merged.body["metadata"]["annotations"] == {"a": "b"}
    failed = await client.patch(path, [{"op": "test", "path": "/spec/replicas", "value": 0}], "json-patch")
    assert (failed.code, failed.body["reason"]) == (422, "Invalid")
    assert (await client.patch(path, {}, "json-patch")).code == 400
    assert (await client.patch(path, [1])).code == 400
    assert (await client.send("PATCH", path, {}, {"content-type": "application/json"})).code == 415
    assert (await client.patch(f"{DEPLOYMENTS}/none", {})).code == 404
    renamed = await client.patch(path, {"metadata": {"name": "y"}})
    assert renamed.code == 400


async def test_a_patch_that_names_an_old_version_conflicts(client: HttpClient) -> None:
    first = await client.post(MAPS, config_map())
    await client.patch(f"{MAPS}/a", {"data": {"a": "1"}})
    stale = await client.patch(f"{MAPS}/a", {"metadata": {"resourceVersion": first.version}, "data": {"a": "2"}})
    assert stale.code == 409


async def test_concurrent_patches_all_take_effect(client: HttpClient) -> None:
    await client.post(MAPS, config_map())
    answers = await asyncio.gather(*(client.patch(f"{MAPS}/a", {"data": {f"k{n}": "v"}}) for n in range(10)))
    assert {answer.code for answer in answers} == {200}
    assert len((await client.get(f"{MAPS}/a")).body["data"]) == 10


async def test_server_side_apply_says_not_yet(client: HttpClient) -> None:
    headers = {"content-type": "application/apply-patch+yaml"}
    answer = await client.send("PATCH", f"{MAPS}/a", b"{}", headers, fieldManager="me")
    assert answer.code == 501
    assert "server-side apply" in answer.body["message"]


async def test_scale_reads_and_writes_replicas(client: HttpClient) -> None:
    made = await client.post(DEPLOYMENTS, deployment(replicas=3))
    path = f"{DEPLOYMENTS}/web/scale"
    scale = (await client.get(path)).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 0, "selector": "app=web"})
    written = await client.put(path, scale | {"spec": {"replicas": 5}})
    assert written.body["spec"] == {"replicas": 5}
    assert (await client.put(path, scale | {"spec": {"replicas": 6}})).code == 409
    assert (await client.patch(path, {"spec": {"replicas": 0}})).body["spec"] == {}
    assert (await client.patch(path, {"spec": {"replicas": -1}})).code == 422
    after = (await client.get(f"{DEPLOYMENTS}/web")).body
    assert after["spec"]["replicas"] == 0
    assert after["metadata"]["generation"] == 3
    assert after["metadata"]["uid"] == made.body["metadata"]["uid"]


async def test_put_creates_where_the_kind_allows_it(client: HttpClient) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    assert (await client.put(path, lease)).code == 201
    assert (await client.put(f"{MAPS}/none", config_map("none"))).code == 404


async def test_services_get_and_give_back_addresses(client: HttpClient) -> None:
    path = "/api/v1/namespaces/default/services"
    body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
    first = await client.post(path, body)
    address = first.body["spec"]["clusterIP"]
    assert address.startswith("10.96.")
    wanted = {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}], "clusterIP": address}}
    assert (await client.post(path, wanted)).code == 422
    assert (await client.post(path, wanted)).code == 422, "a refused wish does not free the address"
    assert (await client.delete(f"{path}/s")).code == 200
    assert (await client.post(path, wanted)).code == 201


async def test_a_pod_is_bound_once_and_evicted(client: HttpClient) -> None:
    pods = "/api/v1/namespaces/default/pods"
    await client.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await client.post(f"{pods}/p/binding", binding)).code == 201
    assert (await client.get(f"{pods}/p")).body["spec"]["nodeName"] == "n1"
    assert (await client.post(f"{pods}/p/binding", binding)).code == 409
    logs = await client.get(f"{pods}/p/log")
    assert (logs.code, "needs a node" in logs.body["message"]) == (501, True)
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}
    assert (await client.post(f"{pods}/p/eviction", eviction)).code == 201
    assert (await client.get(f"{pods}/p")).code == 404


@pytest.mark.parametrize("digits", [20, 5000])
async def test_a_version_of_too_many_digits_is_told(client: HttpClient, digits: int) -> None:
    await client.post(MAPS, config_map())
    version = "9" * digits
    answer = await client.put(f"{MAPS}/a", config_map(metadata={"resourceVersion": version}))
    assert answer.body["message"] == f'strconv.ParseUint: parsing "{version}": value out of range'


SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_an_empty_dry_run_is_none(client: HttpClient) -> None:
    made = await client.post(SERVICES, service("a"), dryRun="")
    assert made.code == 201
    address = made.body["spec"]["clusterIP"]
    taken = await client.post(SERVICES, service("b", clusterIP=address))
    assert (taken.code, "provided IP is already allocated" in taken.body["message"]) == (422, True)


async def test_an_address_belongs_to_what_was_stored_however_its_write_ended(
    server: EmbeddedServer, client: HttpClient
) -> None:
    made = await client.post(SERVICES, service("a"))
    address = made.body["spec"]["clusterIP"]
    await client.delete(f"{SERVICES}/a")
    # As a write leaves it that was given up, and gave back what it had taken, while it was committed.
    await server.server.store.create("core/services/default/a", lambda version: orjson.dumps(made.body))
    taken = await client.post(SERVICES, service("b", clusterIP=address))
    assert (taken.code, "provided IP is already allocated" in taken.body["message"]) == (422, True)
