"""Custom resources over HTTPS: served as soon as the definition is acknowledged, judged by its schema."""

import asyncio
import copy
import http.client
import ssl
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from argosy.kube import warning
from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import HttpClient
from tests.unit.server.crd.builders import definition, widget

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
SPEC = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "replicas": {"type": "integer", "default": 1, "minimum": 0, "maximum": 10},
        "mode": {"type": "string", "enum": ["Duplicate", "Divide"]},
        "list": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "v": {"type": "integer", "default": 7}},
            },
        },
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def widgets_crd(**version: Any) -> dict[str, Any]:
    columns = [
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    parts = {"subresources": {"status": {}, "scale": SCALE}, "additionalPrinterColumns": columns}
    return definition(copy.deepcopy(SPEC), selectableFields=[{"jsonPath": ".spec.mode"}], **(parts | version))


@pytest.fixture
async def defined(client: HttpClient) -> HttpClient:
    made = await client.post(CRDS, widgets_crd())
    assert made.code == 201, made.raw
    return client


async def test_a_definition_is_established_and_served_at_once(client: HttpClient) -> None:
    assert (await client.get(WIDGETS)).code == 404
    made = await client.post(CRDS, widgets_crd())
    status = {c["type"]: c["status"] for c in made.body["status"]["conditions"]}
    assert status == {"NamesAccepted": "True", "Established": "True"}
    assert made.body["status"]["storedVersions"] == ["v1"]
    assert (await client.post(WIDGETS, widget({"name": "ab"}))).code == 201
    found = await client.get("/apis/example.com/v1")
    assert [r["name"] for r in found.body["resources"]] == ["widgets", "widgets/status", "widgets/scale"]


async def test_objects_are_defaulted_and_pruned(defined: HttpClient) -> None:
    made = await defined.post(WIDGETS, widget({"name": "ab", "zzz": 1, "list": [{"name": "a"}]}, status={"phase": "x"}))
    assert made.code == 201
    assert made.body["spec"] == {"name": "ab", "replicas": 1, "list": [{"name": "a", "v": 7}]}
    assert "status" not in made.body
    assert made.body["metadata"]["generation"] == 1
    assert '299 - "unknown field \\"spec.zzz\\""' in made.headers["warning"]
    strict = await defined.post(WIDGETS, widget({"name": "ab", "zzz": 1}), fieldValidation="Strict")
    assert (strict.code, strict.body["reason"]) == (400, "BadRequest")
    assert strict.body["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.zzz"'
    )


async def test_a_bad_object_is_refused_with_every_cause(defined: HttpClient) -> None:
    bad = widget({"name": "too-long", "replicas": 11, "mode": "X", "list": [{"name": "a"}, {"name": "a", "v": "s"}]})
    refused = await defined.post(WIDGETS, bad)
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert refused.body["message"].startswith('Widget.example.com "w" is invalid: [')
    assert {(c["field"], c["reason"], c["message"]) for c in refused.body["details"]["causes"]} == {
        ("spec.name", "FieldValueTooLong", "Too long: may not be more than 5 bytes"),
        (
            "spec.replicas",
            "FieldValueInvalid",
            "Invalid value: 11: spec.replicas in body should be less than or equal to 10",
        ),
        (
            "spec.mode",
            "FieldValueNotSupported",
            'Unsupported value: "X": supported values: "Duplicate", "Divide"',
        ),
        (
            "spec.list[1].v",
            "FieldValueTypeInvalid",
            'Invalid value: "string": spec.list[1].v in body must be of type integer: "string"',
        ),
        ("spec.list[1]", "FieldValueDuplicate", 'Duplicate value: {"name":"a"}'),
    }


async def test_status_and_scale_are_subresources(defined: HttpClient) -> None:
    made = (await defined.post(WIDGETS, widget({"name": "ab"}))).body
    made["status"] = {"phase": "Ready", "replicas": 4}
    made["spec"]["replicas"] = 9
    answered = await defined.put(f"{WIDGETS}/w/status", made)
    assert answered.code == 200
    assert (answered.body["spec"]["replicas"], answered.body["status"]) == (1, {"phase": "Ready", "replicas": 4})
    assert answered.body["metadata"]["generation"] == 1
    scale = await defined.get(f"{WIDGETS}/w/scale")
    assert (scale.body["spec"], scale.body["status"]["replicas"]) == ({"replicas": 1}, 4)
    await defined.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 6}})
    after = (await defined.get(f"{WIDGETS}/w")).body
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (6, 2)
    too_many = await defined.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 60}})
    assert too_many.code == 422


async def test_selectable_fields_select(defined: HttpClient) -> None:
    for name, mode in (("a", "Divide"), ("b", "Duplicate")):
        obj = widget({"name": "ab", "mode": mode})
        obj["metadata"]["name"] = name
        assert (await defined.post(WIDGETS, obj)).code == 201
    found = await defined.get(WIDGETS, fieldSelector="spec.mode=Divide")
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["a"]
    assert (await defined.get(WIDGETS, fieldSelector="spec.name=ab")).code == 400


async def test_tables_have_the_definitions_columns(defined: HttpClient) -> None:
    await defined.post(WIDGETS, widget({"name": "ab"}))
    table = (await defined.get(WIDGETS, TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Replicas", "Age"]
    assert table["rows"][0]["cells"][:2] == ["w", 1]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_versions_share_their_objects(client: HttpClient) -> None:
    crd = widgets_crd()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    assert (await client.post(CRDS, crd)).code == 201
    made = await client.post(WIDGETS, widget({"name": "ab"}))
    other = await client.get("/apis/example.com/v2/namespaces/default/widgets/w")
    assert other.body == {**made.body, "apiVersion": "example.com/v2"}
    changed = await client.patch("/apis/example.com/v2/namespaces/default/widgets/w", {"spec": {"replicas": 3}})
    assert changed.code == 200
    assert (await client.get(f"{WIDGETS}/w")).body["spec"]["replicas"] == 3


async def test_a_tightened_schema_lets_old_objects_be(defined: HttpClient) -> None:
    await defined.post(WIDGETS, widget({"name": "abcde"}))
    crd = (await defined.get(f"{CRDS}/widgets.example.com")).body
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["name"]["maxLength"] = 2
    assert (await defined.put(f"{CRDS}/widgets.example.com", crd)).code == 200
    assert (await defined.patch(f"{WIDGETS}/w", {"spec": {"replicas": 3}})).code == 200
    assert (await defined.patch(f"{WIDGETS}/w", {"spec": {"name": "other"}})).code == 422


async def test_a_broken_schema_is_refused(client: HttpClient) -> None:
    crd = widgets_crd()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["name"] = {}
    refused = await client.post(CRDS, crd)
    assert refused.code == 422
    assert {
        "field": "spec.validation.openAPIV3Schema.properties[spec].properties[name].type",
        "reason": "FieldValueRequired",
        "message": "Required value: must not be empty for specified object fields",
    } in refused.body["details"]["causes"]


async def test_rules_that_are_not_evaluated_are_told(client: HttpClient) -> None:
    crd = widgets_crd()
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "self.replicas < 5"}]
    made = await client.post(CRDS, crd)
    assert made.code == 201
    assert "rules are stored but not evaluated by this server" in made.headers["warning"]


async def test_very_many_warnings_are_an_answer_that_clients_take(memory_server: EmbeddedServer) -> None:
    """A definition as large as Istio's, with a rule in each of 140 places; Python's own client takes 100 lines of headers."""
    crd = widgets_crd()
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = [{"rule": "self.size() < 5"}]
    for number in range(140):
        name = f"a-field-with-quite-a-long-name-of-its-own-number-{number}"
        spec["properties"][name] = {"type": "string", "maxLength": 9, "x-kubernetes-validations": rules}

    def create() -> tuple[int, list[str] | None]:
        address = urlsplit(memory_server.url)
        trust = ssl.create_default_context(cadata=memory_server.authority.certificate.decode())
        connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=trust, timeout=60)
        headers = {"authorization": "Bearer admin-token", "content-type": "application/json"}
        connection.request("POST", CRDS, orjson.dumps(crd), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get_all("warning")

    code, lines = await asyncio.to_thread(create)
    assert code == 201
    texts = [text for line in lines or () for text in warning.texts(line)]
    assert len(texts) > 10
    assert sum(map(len, texts)) < warning.MAX_TOTAL + warning.MAX_CUT
    assert all(len(text) <= warning.MAX_CUT for text in texts)


async def test_an_update_needs_the_version_it_was_read_at(defined: HttpClient) -> None:
    made = (await defined.post(WIDGETS, widget({"name": "ab"}))).body
    del made["metadata"]["resourceVersion"]
    refused = await defined.put(f"{WIDGETS}/w", made)
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["message"] == "Invalid value: 0: must be specified for an update"


async def test_names_of_another_definition_are_not_taken_over(defined: HttpClient) -> None:
    other = widgets_crd()
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"].update(plural="gadgets", singular="gadget", listKind="GadgetList")
    made = await defined.post(CRDS, other)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in made.body["status"]["conditions"]}
    assert conditions == {"NamesAccepted": ("False", "KindConflict"), "Established": ("False", "NotAccepted")}
    assert (await defined.get("/apis/example.com/v1/namespaces/default/gadgets")).code == 404


async def test_an_object_stored_before_a_default_came_shows_it_when_read(client: HttpClient) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    spec: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "integer"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}
    names = {"plural": "jars", "kind": "Jar"}
    made = await client.post(
        definitions,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "jars.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
        },
    )
    assert made.code == 201
    jar = {"apiVersion": "example.com/v1", "kind": "Jar", "metadata": {"name": "old"}, "size": 1}
    assert (await client.post("/apis/example.com/v1/jars", jar)).code == 201
    spec["properties"]["lid"] = {"type": "string", "default": "cork"}
    patched = await client.patch(f"{definitions}/jars.example.com", {"spec": {"versions": [version]}})
    assert patched.code == 200
    assert (await client.get("/apis/example.com/v1/jars/old")).body["lid"] == "cork"
    assert [one["lid"] for one in (await client.get("/apis/example.com/v1/jars")).body["items"]] == ["cork"]
    events = await client.watch("/apis/example.com/v1/jars", timeoutSeconds="1")
    assert [event["object"]["lid"] for event in events] == ["cork"]
