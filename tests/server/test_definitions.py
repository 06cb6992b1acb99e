"""Custom resource definitions in the server: served with the acknowledged write, cleaned up before they go."""

from typing import Any

from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import TOKENS, HttpClient, until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FOOS = "/apis/example.com/v1/namespaces/default/foos"


def definition() -> dict[str, Any]:
    spec_schema = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
    schema = {"type": "object", "properties": {"spec": spec_schema, "status": {"type": "object"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "foos", "kind": "Foo"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "foos.example.com"}, "spec": spec}


def foo(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name, **metadata}, "spec": {}}


async def test_a_kind_is_served_when_its_definition_is_acknowledged(client: HttpClient) -> None:
    assert (await client.get(FOOS)).code == 404
    assert (await client.post(DEFINITIONS, definition())).code == 201
    made = await client.post(FOOS, foo("a"))
    assert (made.code, made.body["spec"]) == (201, {"size": 3})
    assert (await client.patch(f"{FOOS}/a", {"spec": {"size": "big"}})).code == 422
    strategic = await client.patch(f"{FOOS}/a", {}, "strategic-merge-patch")
    assert strategic.code == 415


async def test_definitions_and_their_objects_survive_a_restart(tmp_path: Any) -> None:
    for attempt in (1, 2):
        server = EmbeddedServer(tmp_path, tokens=TOKENS)
        await server.start()
        async with HttpClient(server) as client:
            if attempt == 1:
                await client.post(DEFINITIONS, definition())
                await client.post(FOOS, foo("a"))
            assert [item["metadata"]["name"] for item in (await client.get(FOOS)).body["items"]] == ["a"]
        await server.stop()


async def test_a_definition_goes_after_its_objects(client: HttpClient) -> None:
    await client.post(DEFINITIONS, definition())
    await client.post(FOOS, foo("free"))
    await client.post(FOOS, foo("held", finalizers=["example.com/hold"]))
    assert (await client.delete(f"{DEFINITIONS}/foos.example.com")).code == 200
    await until(lambda: client.get(f"{FOOS}/free"), lambda answer: answer.code == 404)
    late = await client.post(FOOS, foo("late"))
    assert (late.code, "is terminating" in late.body["message"]) == (403, True)
    assert (await client.get(f"{DEFINITIONS}/foos.example.com")).code == 200
    await until(lambda: client.get(f"{FOOS}/held"), lambda answer: "deletionTimestamp" in answer.body["metadata"])
    await client.patch(f"{FOOS}/held", {"metadata": {"finalizers": None}})
    await until(lambda: client.get(f"{DEFINITIONS}/foos.example.com"), lambda answer: answer.code == 404)
    assert (await client.get(FOOS)).code == 404
