"""Answers of few bytes and very many parts: refused before any part is made, and nothing that Kubernetes sends is."""

import gc
from collections.abc import Callable, Iterator

import orjson
import pytest

from argosy.kube import memory
from argosy.kube.answers import MOST_VALUES
from argosy.kube.client import Client
from argosy.kube.errors import AnswerTooLarge, BadAnswer
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.kube.transport import Request
from tests.unit.kube.test_http import Peer, events_of, ok, stream, talking_to

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
MiB = 2**20


@pytest.fixture(scope="module", autouse=True)
def what_was_taken_is_given_back() -> Iterator[None]:
    yield
    gc.collect()
    memory.give_back()


def a_list(items: bytes) -> bytes:
    return b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[' + items + b"]}"


def an_object(content: bytes) -> bytes:
    return b'{"metadata":{"name":"a","namespace":"n","resourceVersion":"5"},"x":[' + content + b"]}"


EMPTY = b"[]," * (6 * MiB // 3) + b"1"


def fields(count: int) -> bytes:
    return b"{" + b",".join(b'"%d":""' % number for number in range(count)) + b"}"


async def list_page(transport: HttpTransport) -> object:
    return await transport.list(Request("GET", "/x"))


async def get(transport: HttpTransport) -> object:
    return await Client(transport).get(MAPS, "a", "n")


async def list_objects(transport: HttpTransport) -> object:
    return await Client(transport).list(MAPS, "n")


@pytest.mark.parametrize(
    ("answer", "ask", "error", "why"),
    [
        (
            lambda: ok(a_list(b"1," * (6 * MiB) + b"1")),
            list_page,
            AnswerTooLarge,
            f"a page of more than {MOST_VALUES} values",
        ),
        (lambda: ok(a_list(b"{}," * 400_000 + b"{}")), list_page, BadAnswer, "400001 items, too small for objects"),
        (lambda: ok(a_list(an_object(EMPTY[: MiB - 1] + b"1"))), list_page, BadAnswer, "200000 objects and arrays"),
        (lambda: ok(an_object(EMPTY)), get, BadAnswer, "200000 objects and arrays"),
        (lambda: ok(an_object(fields(700_000))), get, BadAnswer, "more than 1048576 texts"),
        (lambda: ok(an_object(b"1," * (3 * MiB) + b"1")), get, BadAnswer, f"more than {MOST_VALUES} values"),
        (lambda: ok(an_object(EMPTY), "500 Oops"), get, BadAnswer, "200000 objects and arrays"),
        (lambda: ok(an_object(EMPTY), "500 Oops"), list_page, BadAnswer, "200000 objects and arrays"),
        (lambda: ok(an_object(EMPTY), "403 No"), events_of, BadAnswer, "200000 objects and arrays"),
        (
            lambda: stream(b'{"type":"ERROR","object":' + an_object(EMPTY) + b"}\n"),
            events_of,
            BadAnswer,
            "objects and arrays",
        ),
        (
            lambda: stream(b'{"type":"ADDED","object":' + an_object(EMPTY) + b"}\n"),
            events_of,
            BadAnswer,
            "objects and arrays",
        ),
    ],
    ids=[
        "a page of numbers",
        "a page of tiny objects",
        "a page of one object",
        "an object of lists",
        "an object of fields",
        "an object of numbers",
        "an error",
        "an error for a list",
        "an error for a watch",
        "an error within a watch",
        "an event",
    ],
)
async def test_more_parts_than_can_be_read_at_once_are_refused(
    answer: Callable[[], bytes], ask: Callable[[HttpTransport], object], error: type[Exception], why: str
) -> None:
    async with talking_to(Peer(answer())) as transport:
        with pytest.raises(error, match=why):
            await ask(transport)  # type: ignore[misc]


def a_pod(number: int) -> dict[str, object]:
    fields = {f"f:{part}": {".": {}, "f:name": {}, "f:value": {}} for part in range(60)}
    return {
        "metadata": {
            "name": f"web-{number}",
            "namespace": "n",
            "uid": f"0a1b2c3d-1111-2222-3333-{number:012}",
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:spec": fields}}],
        },
        "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "b"}] * 40}] * 3},
    }


def a_node(number: int) -> dict[str, object]:
    image = {"names": ["registry.example.com/team/app@sha256:" + "a" * 64, "registry.example.com/team/app:1"]}
    return {**a_pod(number), "status": {"images": [{**image, "sizeBytes": 123_456_789}] * 200}}


def a_schema(depth: int) -> dict[str, object]:
    if depth == 0:
        return {"type": "string"}
    return {"type": "object", "properties": {f"field{number}": a_schema(depth - 1) for number in range(11)}}


ADDRESS = {
    "ip": "10.0.0.1",
    "nodeName": "n",
    "targetRef": {"kind": "Pod", "namespace": "n", "name": "p", "uid": "u" * 36},
}
#: Made when they are asked for: every worker reads this file.
LARGE: dict[str, Callable[[], dict[str, object]]] = {
    "a definition": lambda: {"spec": {"versions": [{"schema": {"openAPIV3Schema": a_schema(4)}}] * 3}},
    "endpoints": lambda: {"subsets": [{"addresses": [ADDRESS] * 20_000, "ports": [{"port": 80}] * 100}]},
    "a table in a text": lambda: {"data": {"table": "1," * (3 * MiB // 2)}},
    "JSON in a text": lambda: {"data": {"json": orjson.dumps([{"a": [{}]}] * 150_000).decode()}},
    "JSON in JSON in a text": lambda: {
        "data": {"json": orjson.dumps(orjson.dumps([{"a\\": "\\"}] * 90_000).decode()).decode()}
    },
    "numbers": lambda: {"weights": [1] * 1_500_000},
    "floats": lambda: {"weights": [0.12345] * 300_000},
    "a table of texts": lambda: {"data": {f"k{number}": "" for number in range(280_000)}},
}


@pytest.mark.parametrize("name", LARGE)
async def test_large_objects_that_there_are_can_be_read(name: str) -> None:
    thing = {"metadata": {"name": "a", "namespace": "n", "uid": "u"}, **LARGE[name]()}
    body = orjson.dumps(thing)
    assert MiB < len(body) < 8 * MiB
    listed = orjson.dumps({"kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": [thing]})
    event = orjson.dumps({"type": "ADDED", "object": thing}) + b"\n"
    async with talking_to(Peer(ok(body), ok(listed), stream(event))) as transport:
        assert await Client(transport).get(MAPS, "a", "n") == thing
        assert (await Client(transport).list(MAPS, "n")).items == [{"apiVersion": "v1", "kind": "ConfigMap", **thing}]
        assert [orjson.loads(each.object) for each in await events_of(transport)] == [thing]


@pytest.mark.parametrize(("make", "size"), [(a_pod, 2), (a_node, 18)])
async def test_large_pages_that_there_are_are_read(make: Callable[[int], object], size: int) -> None:
    """500 objects are asked for at first, however large they are."""
    things = [make(number) for number in range(500)]
    body = orjson.dumps({"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": things})
    assert len(body) > size * MiB
    async with talking_to(Peer(ok(body))) as transport:
        assert list((await transport.list(Request("GET", "/x"))).items) == [orjson.dumps(each) for each in things]


async def test_a_page_of_too_many_parts_is_asked_for_in_smaller_ones() -> None:
    numbers = orjson.dumps({"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "weights": [1] * 1_000_000})
    peer = Peer(ok(a_list(numbers + b"," + numbers)), ok(a_list(numbers)))
    async with talking_to(peer) as transport:
        assert len((await Client(transport).list(MAPS, "n", limit=2)).items) == 1
    assert [b"limit=2" in peer.requests[0], b"limit=1" in peer.requests[1]] == [True, True]
