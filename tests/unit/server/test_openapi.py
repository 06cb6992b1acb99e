import orjson
import pytest

from argosy.server.crd import CustomResources, accept_names
from argosy.server.kinds import builtin_kinds
from argosy.server.openapi import OpenApi
from argosy.server.openapi.protobuf import CONTENT_TYPE
from argosy.server.registry import Registry
from tests.unit.server.crd.builders import definition

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
SPEC = {
    "type": "object",
    "description": "What is wanted.",
    "properties": {
        "size": {"type": "integer", "nullable": True},
        "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}


@pytest.fixture(scope="module")
def openapi():
    registry = Registry()
    for kind in builtin_kinds():
        registry.add(kind)
    crd = definition(SPEC, subresources={"status": {}})
    CustomResources(registry).observe(orjson.dumps({**crd, "status": accept_names(crd, [])}), None)
    return OpenApi(registry)


def body(openapi, path, **headers):
    answer = openapi.respond(path, headers)
    assert answer is not None
    assert answer.status == 200
    return orjson.loads(answer.body)


def refers(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from refers(value)
    elif isinstance(node, list):
        for item in node:
            yield from refers(item)


def test_the_index_links_every_group_and_version(openapi):
    links = body(openapi, "/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/autoscaling/v2", "apis/example.com/v1"} <= set(links)
    for name, link in links.items():
        path, _, hashed = link["serverRelativeURL"].partition("?hash=")
        assert path == f"/openapi/v3/{name}"
        answer = openapi.respond(path, {}, hashed)
        assert answer.status == 200
        assert answer.headers["cache-control"] == "public, immutable"


def test_every_document_is_whole(openapi):
    for name in body(openapi, "/openapi/v3")["paths"]:
        document = body(openapi, f"/openapi/v3/{name}")
        known = {f"#/components/schemas/{schema}" for schema in document["components"]["schemas"]}
        assert set(refers(document)) <= known, name
        ids = [op["operationId"] for path in document["paths"].values() for op in path.values() if isinstance(op, dict)]
        assert len(ids) == len(set(ids)), name


def test_writes_tell_that_unknown_fields_can_be_refused(openapi):
    paths = body(openapi, "/openapi/v3/apis/apps/v1")["paths"]
    item = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    collection = paths["/apis/apps/v1/namespaces/{namespace}/deployments"]
    for operation in (item["patch"], item["put"], collection["post"]):
        assert "fieldValidation" in [p["name"] for p in operation["parameters"] if p["in"] == "query"]
        assert operation["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "/apis/apps/v1/deployments" in paths
    assert set(paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]) == {
        "get", "put", "patch", "parameters",
    }  # fmt: skip


def test_only_built_in_kinds_take_strategic_merge(openapi):
    strategic = "application/strategic-merge-patch+json"
    apps = body(openapi, "/openapi/v3/apis/apps/v1")["paths"]
    custom = body(openapi, "/openapi/v3/apis/example.com/v1")["paths"]
    deployment = apps["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    widget = custom["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert strategic in deployment["requestBody"]["content"]
    assert strategic not in widget["requestBody"]["content"]


def test_a_custom_schema_is_published_with_the_fields_of_every_object(openapi):
    schemas = body(openapi, "/openapi/v3/apis/example.com/v1")["components"]["schemas"]
    widget = schemas["com.example.v1.Widget"]
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} == set(widget["properties"])
    spec = widget["properties"]["spec"]
    assert spec["description"] == "What is wanted."
    assert set(spec["properties"]["template"]["properties"]) == {"apiVersion", "kind", "metadata"}
    assert schemas["com.example.v1.WidgetList"]["properties"]["items"]["items"] == {
        "$ref": "#/components/schemas/com.example.v1.Widget"
    }


def test_descriptions_beside_a_reference_are_kept(openapi):
    schemas = body(openapi, "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["description"]
    assert strategy["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}]


def test_version_2_is_one_document_without_what_it_cannot_say(openapi):
    document = body(openapi, "/openapi/v2", accept="application/json")
    assert document["swagger"] == "2.0"
    spec = document["definitions"]["com.example.v1.Widget"]["properties"]["spec"]["properties"]
    assert spec["size"] == {}
    assert spec["port"] == {"x-kubernetes-int-or-string": True}
    assert set(refers(document)) <= {f"#/definitions/{name}" for name in document["definitions"]}


def fields(message):
    """The top fields of a protobuf message: number -> contents."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            length = varint()
            found.setdefault(key >> 3, []).append(message[at : at + length])
            at += length
        elif key & 7 == 0:
            found.setdefault(key >> 3, []).append(varint())
        else:
            found.setdefault(key >> 3, []).append(message[at : at + 8])
            at += 8
    return found


def test_version_2_is_served_in_the_form_kubectl_reads(openapi):
    answer = openapi.respond("/openapi/v2", {"accept": PROTOBUF})
    assert answer.headers["content-type"] == CONTENT_TYPE
    document = fields(answer.body)
    assert document[1] == [b"2.0"]
    paths = {fields(path)[1][0].decode(): fields(path)[2][0] for path in fields(document[8][0])[2]}
    definitions = {fields(node)[1][0].decode(): fields(node)[2][0] for node in fields(document[9][0])[1]}
    described = orjson.loads(openapi.respond("/openapi/v2", {}).body)
    assert set(paths) == set(described["paths"])
    assert set(definitions) == set(described["definitions"])
    config_map = fields(definitions["io.k8s.api.core.v1.ConfigMap"])
    assert {fields(p)[1][0] for p in fields(config_map[25][0])[1]} == {
        b"apiVersion", b"kind", b"metadata", b"data", b"binaryData", b"immutable",
    }  # fmt: skip


def test_a_document_that_did_not_change_is_not_sent_again(openapi):
    first = openapi.respond("/openapi/v3/apis/apps/v1", {})
    again = openapi.respond("/openapi/v3/apis/apps/v1", {"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert openapi.respond("/openapi/v2", {"accept": "text/html"}).status == 406
    stale = openapi.respond("/openapi/v3/apis/apps/v1", {}, "OLD")
    assert (stale.status, stale.headers["location"].startswith("/openapi/v3/apis/apps/v1?hash=")) == (301, True)


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v1", "/openapi/v3/apis/none/v1", "/api"])
def test_what_is_not_there_is_not_answered(openapi, path):
    assert openapi.respond(path, {}) is None
