"""list: paging at one version, resourceVersion semantics, selectors."""

import base64
from typing import Any

import pytest

from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import HttpClient

MAPS = "/api/v1/namespaces/team/configmaps"
ALL = "/api/v1/configmaps"


async def fill(client: HttpClient, count: int) -> list[str]:
    await client.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await settled(client)
    names = [f"m{number:02}" for number in range(count)]
    for number, name in enumerate(names):
        labels = {"app": "even" if number % 2 == 0 else "odd"}
        answer = await client.post(MAPS, {"metadata": {"name": name, "labels": labels}})
        assert answer.code == 201
    return names


async def settled(client: HttpClient) -> None:
    """The namespace's own config map is made by the server; wait until it is there."""
    async with client.stream(MAPS, timeoutSeconds="10") as stream:
        await stream.content.readline()


def listed(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]


async def test_a_list_has_its_kind_version_and_items_in_order(client: HttpClient) -> None:
    names = await fill(client, 3)
    answer = await client.get(MAPS)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert listed(answer.body) == names
    newest = max(int(item["metadata"]["resourceVersion"]) for item in answer.body["items"])
    assert int(answer.version) >= newest


async def test_pages_show_the_state_of_the_first_one(client: HttpClient) -> None:
    await fill(client, 5)
    first = (await client.get(MAPS, limit="2")).body
    assert len(first["items"]) == 2
    assert first["metadata"]["remainingItemCount"] == 4
    await client.delete(f"{MAPS}/m04")
    await client.post(MAPS, {"metadata": {"name": "m01a"}})
    await client.patch(f"{MAPS}/m02", {"data": {"a": "b"}})
    second = (await client.get(MAPS, limit="10", **{"continue": first["metadata"]["continue"]})).body
    assert listed(first) + listed(second) == ["m00", "m01", "m02", "m03", "m04"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]
    assert all("data" not in item for item in second["items"] if item["metadata"]["name"] == "m02")
    assert "m04" not in listed((await client.get(MAPS)).body)


async def test_pages_over_all_namespaces_and_with_selectors(client: HttpClient) -> None:
    await fill(client, 6)
    seen: list[str] = []
    token = ""
    for _ in range(10):
        query = {"limit": "2", "labelSelector": "app in (even,odd)"} | ({"continue": token} if token else {})
        page = (await client.get(ALL, **query)).body
        assert "remainingItemCount" not in page["metadata"]
        seen += listed(page)
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert seen == [f"m{number:02}" for number in range(6)]


async def test_a_token_older_than_the_history_offers_an_inconsistent_rest(
    server: EmbeddedServer, client: HttpClient
) -> None:
    await fill(client, 4)
    first = (await client.get(MAPS, limit="2")).body
    await client.post(MAPS, {"metadata": {"name": "new"}})
    await server.server.store.compact(server.server.store.version)
    gone = await client.get(MAPS, **{"continue": first["metadata"]["continue"]})
    assert (gone.code, gone.body["reason"]) == (410, "Expired")
    rest = await client.get(MAPS, **{"continue": gone.body["metadata"]["continue"]})
    assert listed(rest.body) == ["m01", "m02", "m03", "new"]


async def test_exact_versions_show_the_past(client: HttpClient) -> None:
    await fill(client, 2)
    then = (await client.get(MAPS)).version
    await client.delete(f"{MAPS}/m00")
    past = await client.get(MAPS, resourceVersion=then, resourceVersionMatch="Exact")
    assert listed(past.body) == ["m00", "m01"]
    assert past.version == then
    assert listed((await client.get(MAPS, resourceVersion=then)).body) == ["m01"]
    assert listed((await client.get(MAPS, resourceVersion="0")).body) == ["m01"]


async def test_a_version_from_the_future_is_a_timeout(client: HttpClient) -> None:
    answer = await client.get(ALL, resourceVersion="9999999999999999")
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ({"resourceVersion": "abc"}, 400, 'invalid resource version: resourceVersion: Invalid value: "abc"'),
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"continue": "zzz"}, 400, "invalid continue token"),
        ({"fieldSelector": "spec.foo=1"}, 400, '"spec.foo" is not a known field selector: only "metadata.name"'),
        ({"labelSelector": "a in"}, 400, "unable to parse requirement: found '' expected: '('"),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Foo", "resourceVersion": "1"}, 422, "Unsupported value"),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
    ],
)
async def test_wrong_parameters(client: HttpClient, query: dict[str, str], code: int, text: str) -> None:
    answer = await client.get(ALL, **query)
    assert answer.code == code
    assert text in answer.body["message"]


async def test_selectors(client: HttpClient) -> None:
    await fill(client, 4)
    assert listed((await client.get(MAPS, labelSelector="app=even")).body) == ["m00", "m02"]
    assert listed((await client.get(MAPS, labelSelector="app!=even")).body) == ["m01", "m03"]
    assert listed((await client.get(MAPS, fieldSelector="metadata.name=m02")).body) == ["m02"]
    assert listed((await client.get(ALL, fieldSelector="metadata.namespace=team,metadata.name!=m02")).body) == [
        "m00",
        "m01",
        "m03",
    ]


async def test_selectors_of_single_kinds(client: HttpClient) -> None:
    pods = "/api/v1/namespaces/default/pods"
    for name, node in (("a", "n1"), ("b", "n2")):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
        assert (await client.post(pods, {"metadata": {"name": name}, "spec": spec})).code == 201
    assert listed((await client.get(pods, fieldSelector="spec.nodeName=n2")).body) == ["b"]
    assert listed((await client.get(pods, fieldSelector="status.phase!=Running")).body) == ["a", "b"]
    wrong = await client.get(pods, fieldSelector="spec.foo=1")
    assert wrong.body["message"] == "field label not supported: spec.foo"


async def test_tables_and_partial_objects(client: HttpClient) -> None:
    await fill(client, 2)
    table = (await client.get(MAPS, {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"})).body
    assert table["kind"] == "Table"
    assert [row["object"]["metadata"]["name"] for row in table["rows"]][1:] == ["m00", "m01"]
    accept = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    assert (await client.get(MAPS, accept)).body["kind"] == "PartialObjectMetadataList"
    assert (await client.get(MAPS, {"accept": "text/html"})).code == 406
    protobuf = {"accept": "application/vnd.kubernetes.protobuf,application/json"}
    assert (await client.get(MAPS, protobuf)).body["kind"] == "ConfigMapList"


async def test_a_token_from_the_future_is_a_timeout(client: HttpClient) -> None:
    await fill(client, 2)
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":9999999999999999,"start":"m00"}').decode()
    answer = await client.get(MAPS, **{"continue": token})
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
