"""What a member may answer instead of the truth, a row each, by what it is about.

`shown` is what one of the FederatedCluster's conditions says meanwhile; rows without it are lies that nobody can tell from the
truth, or that are told where they do harm: in the status of the object that could not be written.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from argosy.api.keys import SYSTEM_NAMESPACE
from tests.harness.liar import STREAM, Tell, alters, chunk, drips, head, pours, raw, says, streams

__all__ = ["LIES", "LIST", "Lie", "nested", "news"]

Json = dict[str, Any]
LIST = "GET /apis/apps/v1/deployments"
WATCH = "WATCH /apis/apps/v1/deployments"
COPY = "/apis/apps/v1/namespaces/default/deployments/web"
READ, WRITE = f"GET {COPY}", f"PUT {COPY}"
NODES, PODS = "GET /api/v1/nodes", "GET /api/v1/pods"
WHO = f"GET /api/v1/namespaces/{SYSTEM_NAMESPACE}"
HEALTH, APIS = "GET /healthz", "GET /apis"
MEGABYTE = b"x" * 2**20


class Lie(NamedTuple):
    name: str
    about: str
    tell: Tell
    shown: str = ""
    #: How often it is told at least: a write that was done needs not be repeated, whatever was answered.
    times: int = 2


def unreadable(text: str) -> str:
    return f"AnswersReadable=False .*{text}"


NOT_HTTP = unreadable("did not answer in HTTP")
NO_LIST = unreadable("did not answer a Kubernetes list")
NO_EVENT = unreadable("a watch event")
NO_DISCOVERY = "Ready=False .*discover"


def event(type: str, obj: Any) -> bytes:
    return orjson.dumps({"type": type, "object": obj}) + b"\n"


def a_copy(**changes: Any) -> Json:
    """A Deployment as a watch might bring it."""
    labels = {"kubeadmiral.io/managed": "true"}
    identity = {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": "1", "labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**identity, **changes.pop("metadata", {})},
        **changes,
    }


def page(**changes: Any) -> Tell:
    """The true answer with these fields."""
    return alters(lambda answer: answer | changes)


def items(change: Callable[[Json], Json]) -> Tell:
    return alters(lambda answer: answer | {"items": [change(each) for each in answer["items"]]})


def item(**changes: Any) -> Tell:
    return items(lambda each: each | changes)


def meta(**changes: Any) -> Tell:
    return items(lambda each: each | {"metadata": each["metadata"] | changes})


def news(**changes: Any) -> Tell:
    """As if they had changed: of a version that is known nobody looks at the rest."""
    return items(lambda each: _newer(each) | changes)


def _newer(each: Json, **metadata: Any) -> Json:
    version = str(int(each["metadata"]["resourceVersion"]) + 1)
    return each | {"metadata": each["metadata"] | {"resourceVersion": version, **metadata}}


def own(**changes: Any) -> Tell:
    """The one object that was asked for, with this metadata."""
    return alters(lambda answer: answer | {"metadata": answer["metadata"] | changes})


def node(**amounts: Any) -> Tell:
    return items(lambda each: each | {"status": each["status"] | {"allocatable": amounts}})


def pod(requests: Any = (), status: Any = (), containers: int = 1) -> Tell:
    """One pod more than there is."""
    identity = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    spec = {"containers": [{"resources": {"requests": dict(requests)}}] * containers}
    return page(items=[{"metadata": identity, "spec": spec, "status": dict(status)}])


def replicas(text: bytes) -> Tell:
    """The number of replicas as this text: what JSON may have and an encoder does not write."""
    return alters(lambda answer: orjson.dumps(answer).replace(b'"replicas":2', b'"replicas":' + text))


def levels(number: int) -> Json:
    inner: Any = 1
    for _ in range(number):
        inner = {"a": inner}
    return {"replicas": 2, "x": inner}


def nested(number: int) -> Tell:
    """A status of so many levels: more than an encoder writes."""

    def change(answer: Json) -> bytes:
        items = [_newer(each) | {"status": {"replicas": 2, "x": "DEEP"}} for each in answer["items"]]
        deep = b'{"a":' * number + b"1" + b"}" * number
        return orjson.dumps(answer | {"items": items}).replace(b'"DEEP"', deep)

    return alters(change)


def a_list(items: bytes) -> bytes:
    return b'{"kind":"DeploymentList","metadata":{"resourceVersion":"5"},"items":[' + items + b"]}"


def a_group(name: str, **resource: Any) -> Json:
    kind = {"kind": "Thing"}
    found = {"resource": "things", "responseKind": kind, "scope": "Namespaced", "verbs": ["list"], **resource}
    return {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [found]}]}


def discovered(*groups: Any) -> Tell:
    return says({"kind": "APIGroupDiscoveryList", "items": list(groups)})


CROWDED = unreadable("200000 objects and arrays")
CROWD = b'"x":[' + b"[]," * 300_000 + b'1],"spec":{'
DEEP = b'"x":' + b"[" * 300 + b"]" * 300 + b',"spec":{'
MANAGED = {"kubeadmiral.io/managed": "true"}
MANY_LABELS = {f"label-{number}": "x" * 60 for number in range(5000)}
ENDLESS = {"kind": "DeploymentList", "metadata": {"resourceVersion": "5", "continue": "x"}, "items": [a_copy()]}
LONG = [
    Lie("a page of 900 MB", LIST, pours(head(200, 900 * 2**20), MEGABYTE), unreadable("answered more than")),
    Lie("a page without an end", LIST, pours(STREAM, chunk(MEGABYTE)), unreadable("answered more than")),
    Lie("pages without an end", LIST, says(ENDLESS), unreadable("does not end")),
    Lie("an event without an end", WATCH, pours(STREAM, chunk(MEGABYTE)), unreadable("event is longer than")),
    Lie("headers without an end", LIST, pours(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1000), NOT_HTTP),
    Lie("a header without an end", LIST, pours(b"HTTP/1.1 200 OK\r\nX-A: ", b"b" * 65536), NOT_HTTP),
    Lie("a status line without an end", LIST, pours(b"HTTP/1.1 200 ", b"b" * 65536), NOT_HTTP),
    Lie("100 Continue without an end", LIST, pours(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500), NOT_HTTP),
    Lie("trailers without an end", LIST, pours(STREAM + b"0\r\n", b"X-A: b\r\n" * 1000), NOT_HTTP),
    Lie("crumbs without an end", LIST, pours(STREAM, b"1\r\n{\r\n" * 1000), NOT_HTTP),
    Lie("a chunk size without an end", HEALTH, pours(STREAM, b"0" * 65536), "Offline=True"),
    Lie("a chunk extension without an end", HEALTH, pours(STREAM + b"5;a=", b"0" * 65536), "Offline=True"),
    Lie("a healthz without an end", HEALTH, pours(STREAM, chunk(MEGABYTE)), "Ready=False .*more than"),
    Lie("a healthz that drips", HEALTH, drips(STREAM, chunk(b"o")), "Offline=True"),
    Lie("an object without an end", READ, pours(STREAM, chunk(MEGABYTE))),
    Lie("an answer to a write without an end", WRITE, pours(STREAM, chunk(MEGABYTE))),
]
PACKED = says(b"\x1f\x8b" + MEGABYTE, headers={"Content-Encoding": "gzip"})
HTTP = [
    Lie("an answer that is packed", LIST, PACKED, unreadable("in the encoding 'gzip', unasked")),
    Lie("nothing at all", LIST, raw()),
    Lie("garbage", LIST, raw(b"\x00\x01\x02 garbage\r\n\r\n"), NOT_HTTP),
    Lie("two lengths", LIST, raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}"), NOT_HTTP),
    Lie("a length below zero", LIST, raw(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"), NOT_HTTP),
    Lie("a status of 9999", LIST, raw(b"HTTP/1.1 9999 Odd\r\nContent-Length: 2\r\n\r\n{}"), NOT_HTTP),
    Lie("a redirect", LIST, says(b"", 307, {"Location": "https://127.0.0.1:1/"})),
    Lie("another protocol", LIST, raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")),
    Lie("no content", LIST, raw(b"HTTP/1.1 204 No Content\r\n\r\n"), NO_LIST),
    Lie("a page of HTML", LIST, says(b"<html><title>Sign in</title></html>"), unreadable("it is an HTML page")),
    Lie("too many requests for 10^9 s", LIST, says({"kind": "Status"}, 429, {"Retry-After": "1000000000"})),
    Lie("too many requests, without a word", LIST, says(b"", 429)),
    Lie("too many requests for -1 s", LIST, says(b"", 429, {"Retry-After": "-1"})),
    Lie("too many requests for NaN s", LIST, says(b"", 429, {"Retry-After": "NaN"})),
]
LISTS = [
    Lie("null", LIST, says(None), NO_LIST),
    Lie("a list", LIST, says([]), NO_LIST),
    Lie("an object of no kind", LIST, says({}), unreadable("it has no kind")),
    Lie("a million levels", LIST, says(b'{"kind":"DeploymentList","items":' + b"[" * 10**6), NO_LIST),
    Lie("items that are an object", LIST, page(items={}), NO_LIST),
    Lie("items that are lists", LIST, page(items=[[1], [[2]]]), unreadable("Expected `object`")),
    Lie("items that are texts", LIST, page(items=["a", "b"]), unreadable("Expected `object`")),
    Lie("items that are null", LIST, page(items=[None]), unreadable("Expected `object`")),
    Lie("metadata of the list that is null", LIST, page(metadata=None), NO_LIST),
    Lie("no version", LIST, page(metadata={}), unreadable("the list has no version")),
    Lie("a version that is a number", LIST, page(metadata={"resourceVersion": 5}), NO_LIST),
    Lie("a continue that is a list", LIST, page(metadata={"resourceVersion": "5", "continue": []}), NO_LIST),
    Lie("no metadata", LIST, items(lambda each: {"spec": each["spec"]}), unreadable("no name")),
    Lie("metadata that is null", LIST, item(metadata=None), unreadable("no name")),
    Lie("metadata that is a list", LIST, item(metadata=[]), unreadable("metadata")),
    Lie("no name", LIST, meta(name=""), unreadable("no name")),
    Lie("a name of a megabyte", LIST, meta(name="x" * 2**20), unreadable("a name of more than")),
    Lie("no namespace", LIST, meta(namespace=""), unreadable("of the wrong scope")),
    Lie("half a character", LIST, alters(lambda a: orjson.dumps(a).replace(b'"web"', b'"\\ud800"'))),
    Lie("bytes that are no text", LIST, alters(lambda a: orjson.dumps(a).replace(b'"web"', b'"\xff"')), unreadable("")),
    Lie("labels that are numbers", LIST, meta(labels={"kubeadmiral.io/managed": "true", "a": 1}), unreadable("labels")),
    Lie("labels that are a list", LIST, meta(labels=["a"]), unreadable("labels")),
    Lie("annotations of 300 KB", LIST, meta(annotations={"a": "x" * 300_000}), unreadable("annotations: more than")),
    Lie("labels of 300 KB", LIST, meta(labels=MANAGED | MANY_LABELS), unreadable("labels: more than")),
    Lie("two million numbers", LIST, says(a_list(b"1," * (2 * 10**6 - 100) + b"1")), unreadable("values")),
    Lie("a million nothings", LIST, says(a_list(b"{}," * 10**6 + b"{}")), unreadable("too small for objects")),
    Lie("an item of a million lists", LIST, alters(lambda a: orjson.dumps(a).replace(b'"spec":{', CROWD)), CROWDED),
    Lie("labels of others", LIST, meta(labels={}), unreadable("not asked for, by its labels")),
    Lie("a generation that is a text", LIST, meta(generation="x"), unreadable("generation")),
    Lie("the same object a thousand times", LIST, alters(lambda a: a | {"items": a["items"] * 1000})),
    Lie("versions that are no numbers", LIST, meta(resourceVersion="abc")),
    Lie("versions that are to come", LIST, meta(resourceVersion=str(2**62))),
]
LATEST = "latestreplicaset.kubeadmiral.io/"
DIGITS = {f"{LATEST}replicas": "1" * 5000, f"{LATEST}name": "x", "number": "0"}
STATUSES = [
    Lie("an annotation of 5,000 digits", LIST, items(lambda each: _newer(each, annotations=DIGITS))),
    Lie("a status that is a text", LIST, news(status="fine"), unreadable("status")),
    Lie("replicas that are a text", LIST, news(status={"replicas": "three"}), unreadable("replicas")),
    Lie("replicas that are a list", LIST, news(status={"replicas": [1]}), unreadable("replicas")),
    Lie("a wish that is a text", LIST, news(spec={"replicas": "three"})),
    Lie("conditions that are an object", LIST, news(status={"conditions": {"type": 1}}), unreadable("conditions")),
    Lie("conditions that are texts", LIST, news(status={"conditions": ["Available"]}), unreadable("conditions")),
    Lie(
        "a generation seen that is a text",
        LIST,
        news(status={"observedGeneration": "x"}),
        unreadable("observedGeneration"),
    ),
    Lie("a status of 300 levels", LIST, nested(300), unreadable("nested deeper than 200 levels")),
    Lie("a status of 900 levels", LIST, nested(900), unreadable("nested deeper than 200 levels")),
    Lie(
        "a status of 3.3 MB",
        LIST,
        news(status={"replicas": 2, "x": "y" * 3_300_000}),
        unreadable("too large to be stored"),
    ),
    Lie("a wish of 30 digits", LIST, replicas(b"1" + b"0" * 30)),
    Lie("a wish beyond all bounds", LIST, replicas(b"1e999"), unreadable("")),
    Lie("a wish that is no number", LIST, replicas(b"NaN"), NO_LIST),
]
WATCHES = [
    Lie("no JSON", WATCH, streams(b"}{\n"), NO_EVENT),
    Lie("an event of no type", WATCH, streams(b'{"object":{}}\n'), NO_EVENT),
    Lie("an event of an unknown type", WATCH, streams(event("RENAMED", a_copy())), NO_EVENT),
    Lie("an event without an object", WATCH, streams(b'{"type":"ADDED"}\n'), NO_EVENT),
    Lie("an event of null", WATCH, streams(event("ADDED", None)), unreadable("Expected `object`")),
    Lie("an event without a name", WATCH, streams(event("MODIFIED", {"metadata": {}})), unreadable("no name")),
    Lie(
        "an event that was not asked for",
        WATCH,
        streams(event("ADDED", a_copy(metadata={"labels": {}}))),
        unreadable("labels"),
    ),
    Lie("a bookmark of nothing", WATCH, streams(event("BOOKMARK", {}), ends=True)),
    Lie("a bookmark of null", WATCH, streams(event("BOOKMARK", None)), unreadable("Expected `object`")),
    Lie("an error of nothing", WATCH, streams(event("ERROR", {}))),
    Lie("an error of null", WATCH, streams(event("ERROR", None)), NO_EVENT),
    Lie("an error of odd fields", WATCH, streams(event("ERROR", {"code": "x", "details": [], "message": {}}))),
    Lie(
        "an event of 300 levels", WATCH, streams(event("MODIFIED", a_copy(status=levels(200)))), unreadable("nested"), 1
    ),
    Lie("an event of a million lists", WATCH, streams(event("MODIFIED", a_copy(status=[[]] * 300_000))), CROWDED),
    Lie("an error of a million lists", WATCH, streams(event("ERROR", {"details": [[]] * 300_000})), CROWDED),
    Lie("an event cut short", WATCH, streams(b'{"type":"ADDED","object":{', ends=True)),
    Lie("a deletion of what is not there", WATCH, streams(event("DELETED", a_copy(metadata={"name": "x"})), ends=True)),
    Lie("events of long ago", WATCH, streams(*[event("MODIFIED", a_copy())] * 50, ends=True)),
]
ODD = {"kind": "Status", "code": "x", "details": {"retryAfterSeconds": "x", "causes": 5}, "message": 5, "reason": []}
ENDLESS_WORDS = {"kind": "Status", "code": 422, "reason": "x" * 5000, "message": "y" * 2**19}
OBJECTS = [
    Lie("an object that is a list", READ, says([])),
    Lie("an object that is null", READ, says(None)),
    Lie("an object without metadata", READ, says({})),
    Lie("an object of odd metadata", READ, page(metadata={"labels": 5})),
    Lie("an object of odd labels", READ, own(labels={"a": 1})),
    Lie("an object of odd annotations", READ, own(annotations=[])),
    Lie("an object of odd finalizers", READ, own(finalizers=[1])),
    Lie("another object", READ, own(name="other")),
    Lie("a spec that is a text", READ, page(spec="none")),
    Lie("an object of 300 levels", READ, alters(lambda a: orjson.dumps(a).replace(b'"spec":{', DEEP))),
    Lie("an object of a million lists", READ, page(x=[[]] * 300_000)),
    Lie("an error of a million lists", READ, says({"kind": "Status", "details": [[]] * 300_000}, 500)),
    Lie("an error of odd words", READ, says(ODD, 500)),
    Lie("an error of endless words", WRITE, says(ENDLESS_WORDS, 422)),
    Lie("a write that answers a list", WRITE, says([])),
    Lie("a write that answers nothing", WRITE, says({})),
    Lie("a write that answers odd metadata", WRITE, says({"metadata": {"name": 5}})),
    Lie("a write that answers another object", WRITE, own(name="other"), times=1),
]
MANY = [a_group(f"g{number}") for number in range(8000)]
MEMBER = [
    Lie("APIs that are texts", APIS, discovered("x"), NO_DISCOVERY),
    Lie("APIs that are null", APIS, says(b"null"), NO_DISCOVERY),
    Lie("8,000 APIs", APIS, discovered(*MANY), "Ready=False .*(8[0-9]{3} resources|more than)"),
    Lie("an API with a name of 100 KB", APIS, discovered(a_group("g" * 100_000)), "Ready=False .*more than 253"),
    Lie("an API of odd kinds", APIS, discovered(a_group("g", responseKind={"kind": 5})), NO_DISCOVERY),
    Lie("a healthz of nonsense", HEALTH, says(b"\xff\xfe" * 1000), "Ready=False"),
    Lie("nodes of 10^999999999 cores", NODES, node(cpu="1e999999999")),
    Lie("nodes of 10^400 cores", NODES, node(cpu="1e400", memory="1e400")),
    Lie("nodes of 500,000 digits", NODES, node(cpu="9" * 500_000)),
    Lie("nodes of less than nothing", NODES, node(cpu="-5", memory="-5Gi")),
    Lie("nodes of the largest number", NODES, node(cpu=str(2**63 - 1), memory=str(2**63 - 1), other=str(2**63 - 1))),
    Lie("nodes of lists", NODES, node(cpu=[1]), unreadable("allocatable")),
    Lie(
        "nodes of 20,000 resources",
        NODES,
        node(**{f"e.com/r{n}": "1" for n in range(20_000)}),
        unreadable("allocatable"),
    ),
    Lie("a node of odd conditions", NODES, item(status={"conditions": "Ready"}), unreadable("conditions")),
    Lie("a node of odd taints", NODES, item(spec={"taints": [1]}), unreadable("taints")),
    Lie("a pod of 20,000 containers", PODS, pod(containers=20_000), unreadable("containers")),
    Lie("a pod of odd requests", PODS, pod({"cpu": {}}), unreadable("requests")),
    Lie("a pod of less than nothing", PODS, pod({"cpu": "-100000"})),
    Lie("a pod of everything", PODS, pod({"cpu": "1e400"})),
    Lie("a pod of odd conditions", PODS, pod(status={"conditions": [5]}), unreadable("conditions")),
]
IDENTITY = [
    Lie("an identity that is a list", WHO, says([])),
    Lie("an identity that is null", WHO, says(None)),
    Lie("an identity without metadata", WHO, says({"kind": "Namespace"})),
    Lie("an identity of odd metadata", WHO, page(metadata={"uid": 5, "annotations": []})),
    Lie("an identity without a uid", WHO, own(uid=None)),
    Lie("an identity without an end", WHO, pours(STREAM, chunk(MEGABYTE))),
    Lie("an identity that is packed", WHO, PACKED),
    Lie("an identity that is a page of HTML", WHO, says(b"<html>", 404)),
    Lie("an identity for which there is too much to do", WHO, says(b"", 429, {"Retry-After": "x"})),
]
LIES = {
    "identity": IDENTITY,
    "without an end": LONG,
    "HTTP": HTTP,
    "lists": LISTS,
    "statuses": STATUSES,
    "watches": WATCHES,
    "objects": OBJECTS,
    "what a member is and has": MEMBER,
}
