"""Requests: number N of a seed, always the same bytes."""

import json
import random
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tests.fuzz import mutate
from tests.fuzz.seeds import NAMESPACES, PLANTED, Seed, seeds

__all__ = ["Sent", "make"]

NAMES = tuple(f"f{number}" for number in range(12))
GROUPS = ("a.fuzz.example", "b.fuzz.example")
JSON = "application/json"
_TYPES = (
    JSON, "application/yaml", "application/vnd.kubernetes.protobuf", "application/merge-patch+json",
    "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
    "text/plain", "", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "application/cbor",
)  # fmt: skip
_ACCEPTS = (
    JSON, "*/*", "application/yaml", "application/vnd.kubernetes.protobuf", "text/html", "", "application/json;q=x",
    "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=Nothing;v=v9;g=x," * 50, "a/b;c=" + "d" * 3000,
)  # fmt: skip
_SELECTORS = (
    "a=b", "a in (b,c)", "!a", "a", "a==b,c!=d", "a notin ()", "((((", "a in (" + "b," * 5000 + "c)", "=", ",,,,", "a=b" * 500,
    "é=ü", "a=\x00", "metadata.name=f1", "metadata.name=f1,metadata.namespace=x", "spec.nodeName=", "status.phase!=Running",
    "a>1", "a<x", "x" * 10_000,
)  # fmt: skip
_QUERY = {
    "limit": ("1", "0", "-1", "2", "x", "99999999999999999999", ""),
    "continue": ("x", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0=", "A" * 5000, "%00"),
    "labelSelector": _SELECTORS,
    "fieldSelector": _SELECTORS,
    "resourceVersion": ("0", "1", "", "-1", "x", "99999999999999999999999", "18446744073709551615", "٣"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "dryRun": ("All", "", "x", "All&dryRun=All"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "fieldManager": ("x", "", "m" * 200, "\x00", "a\nb"),
    "timeoutSeconds": ("1", "0", "-1", "x", "9" * 30),
    "propagationPolicy": ("Orphan", "Foreground", "Background", "x"),
    "gracePeriodSeconds": ("0", "1", "-1", "x", "9" * 30),
    "orphanDependents": ("true", "x"),
    "force": ("true", "false", "x"),
    "pretty": ("true", "x"),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "x"),
    "watch": ("false", "0"),
    "shardSelector": ("x", "shardRange(object.metadata.uid, '0', '8')"),
}
_SUBRESOURCES = (
    "status",
    "scale",
    "token",
    "finalize",
    "binding",
    "eviction",
    "log",
    "exec",
    "proxy/x",
    "approval",
    "x",
)
_PATHS = (
    "/", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/x/y", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/version",
    "/metrics", "/healthz", "/readyz?verbose", "/livez/ping", "/apis/apps", "//api//v1", "/api/v1/namespaces/%2e%2e/pods",
    "/api/v1/namespaces/a%2fb/pods", "/api/v1/nodes/x/proxy/", "/%", "/api/v1/" + "a/" * 500, "/" + "x" * 7000,
    "/api/v1/watch/pods",
)  # fmt: skip
_HEADERS = (
    ("Impersonate-User", "jane"), ("Impersonate-User", ""), ("Impersonate-Group", "system:masters"), ("Impersonate-Uid", "x"),
    ("Impersonate-Extra-a%2fb", "c"), ("Impersonate-Extra-%zz", "c"), ("Impersonate-User", "system:serviceaccount:a:b"),
    ("If-Match", "*"), ("Range", "bytes=0-1"), ("Accept-Encoding", "gzip, br, zstd;q=x"), ("Expect", "100-continue"),
    ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("X-Forwarded-For", "::1"), ("Cookie", "a=b; " * 100),
    ("Authorization", "Bearer x"), ("Authorization", "Basic eDp5"), ("Authorization", "Bearer " + "x" * 5000),
    ("Authorization", "Bearer e30.e30.e30"), ("X-Long", "y" * 7000), ("Kubectl-Command", "\xff"), ("Content-Encoding", "gzip"),
    ("Audit-Id", "x" * 300), ("Origin", "https://x"), ("Host", "other"), ("Traceparent", "00-0-0-0"),
)  # fmt: skip
_RAW = (
    b"GET / HTTP/9.9\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n{}",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n", b"GET / HTTP/1.1\r\nA: " + b"b" * 200_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcdeGET /apis HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
    b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
)  # fmt: skip


class Sent(NamedTuple):
    """One request. `raw` is sent as it is; others have headers of their own added, to be let in and framed."""

    number: int
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    raw: bytes = b""
    #: Seconds after which the connection is dropped, answered or not.
    leaves: float | None = None

    def shown(self) -> str:
        if self.raw:
            return repr(self.raw[:300])
        head = " ".join(f"-H {name}:{value[:60]!r}" for name, value in self.headers)
        return f"{self.method} {self.target[:300]} {head} {self.body[:600]!r}{'…' if len(self.body) > 600 else ''}"


def make(seed: int, number: int) -> Sent:
    rng = random.Random(f"{seed}/{number}")
    makers = (_write, _patch, _read, _watch, _delete, _definition, _custom, _raw, _place)
    weights = (36, 24, 10, 6, 5, 4, 6, 4, 3)
    return rng.choices(makers, weights)[0](rng, number)


def _write(rng: random.Random, number: int) -> Sent:
    seed = rng.choice(seeds())
    name = rng.choice(NAMES)
    body = _placed(rng, seed, name)
    if rng.random() < 0.8:
        body = mutate.mutated(rng, body)
    update = rng.random() < 0.35
    target = _target(rng, seed.collection, name if update else "")
    return _sent(rng, number, "PUT" if update else "POST", target, body, JSON)


def _patch(rng: random.Random, number: int) -> Sent:
    seed = rng.choice(seeds())
    body, type = _patch_of(rng, seed)
    return _sent(rng, number, "PATCH", _target(rng, seed.collection, rng.choice(NAMES)), body, type)


def _patch_of(rng: random.Random, seed: Seed) -> tuple[Any, str]:
    body = _placed(rng, seed, rng.choice(NAMES))
    parts = {
        key: body[key] for key in body if key in ("spec", "data", "metadata", "rules", "status") or rng.random() < 0.2
    }
    if rng.random() < 0.4:
        return [_operation(rng, body) for _ in range(rng.choice((1, 2, 5, 200)))], "application/json-patch+json"
    type = rng.choice(("application/merge-patch+json", "application/strategic-merge-patch+json"))
    if rng.random() < 0.25:
        return mutate.mutated(rng, body), "application/apply-patch+yaml"
    if rng.random() < 0.2 and isinstance(parts.get("spec"), dict):
        parts["spec"] = {
            **parts["spec"],
            rng.choice(("$patch", "$retainKeys", "$setElementOrder/containers")): mutate.odd(rng),
        }
    return mutate.mutated(rng, parts), type


def _operation(rng: random.Random, body: Any) -> Any:
    path, node = "", body
    while isinstance(node, dict | list) and node and rng.random() < 0.8:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        path += f"/{str(key).replace('~', '~0').replace('/', '~1')}"
        node = node[key]
    path += rng.choice(("", "", "", "/-", "/x", "/~2", "/999999999999"))
    operation = {"op": rng.choice(("add", "remove", "replace", "copy", "move", "test", "x")), "path": path}
    operation[rng.choice(("value", "from"))] = mutate.odd(rng) if rng.random() < 0.6 else path.rpartition("/")[0]
    return operation


def _read(rng: random.Random, number: int) -> Sent:
    if rng.random() < 0.35:
        target = rng.choice(_PATHS)
    else:
        name = rng.choice((*NAMES, "")) if rng.random() < 0.5 else ""
        target = _target(rng, rng.choice(seeds()).collection, name)
    sent = _sent(rng, number, rng.choice(("GET", "GET", "GET", "HEAD", "OPTIONS")), target, None, "")
    return sent._replace(leaves=2.0) if "/watch/" in target else sent


def _watch(rng: random.Random, number: int) -> Sent:
    collection = rng.choice(seeds()).collection
    where = collection if rng.random() < 0.7 else collection.replace("/namespaces/{ns}", "")
    target = _target(rng, where, "")
    target += f"{'&' if '?' in target else '?'}watch=1"
    return _sent(rng, number, "GET", target, None, "")._replace(leaves=rng.choice((0.0, 0.05, 0.5, 2.0)))


def _delete(rng: random.Random, number: int) -> Sent:
    collection = rng.choice(seeds()).collection
    inside = "{ns}" in collection
    name = "" if inside and rng.random() < 0.3 else rng.choice(NAMES)
    body = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "x"},
        "propagationPolicy": "Foreground",
    }
    wanted = mutate.mutated(rng, body) if rng.random() < 0.5 else None
    return _sent(rng, number, "DELETE", _target(rng, collection, name), wanted, JSON)


def _place(rng: random.Random, number: int) -> Sent:
    """The namespaces themselves come back, and now and then go."""
    name = rng.choice(NAMESPACES)
    if rng.random() < 0.1:
        return _sent(rng, number, "DELETE", f"/api/v1/namespaces/{name}", None, "", plain=True)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return _sent(rng, number, "POST", "/api/v1/namespaces", body, JSON, plain=True)


def _definition(rng: random.Random, number: int) -> Sent:
    """A CRD of a few names, with a schema that may be anything."""
    group, plural = rng.choice(GROUPS), rng.choice(("widgets", "gadgets"))
    pattern = rng.choice(("^a+$", "^[ab]*a[ab]{900}c$", "(a+)+$", "[", "^(?!x)", "\\p{L}+", "a{1001}"))
    properties = {
        "text": {"type": "string", "pattern": pattern, "maxLength": 100, "default": "aaa"},
        "number": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 5},
        "list": {
            "type": "array",
            "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        },
        "map": {"type": "object", "additionalProperties": {"type": "string", "enum": ["x", "y"]}},
        "any": {"x-kubernetes-preserve-unknown-fields": True, "type": "object"},
        "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    }
    schema = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    kind = plural.capitalize()[:-1]
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    how = rng.random()
    if how < 0.15:
        return _sent(rng, number, "DELETE", f"{base}/{plural}.{group}", None, "")
    odd = mutate.mutated(rng, body) if how < 0.75 else body
    if rng.random() < 0.4:
        return _sent(rng, number, "PATCH", f"{base}/{plural}.{group}", odd, "application/merge-patch+json")
    return _sent(rng, number, "POST", base, odd, JSON)


def _custom(rng: random.Random, number: int) -> Sent:
    group, plural = rng.choice(GROUPS), rng.choice(("widgets", "gadgets"))
    name = rng.choice(NAMES)
    spec = {
        "text": rng.choice(("aaa", "ab" * 4000)),
        "number": 5,
        "list": [{"a": "b"}],
        "map": {"k": "x"},
        "any": {"a": 1},
    }
    kind = plural.capitalize()[:-1]
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}, "spec": {**spec, "either": 1}}
    collection = f"/apis/{group}/v1/namespaces/{rng.choice(NAMESPACES)}/{plural}"
    odd = mutate.mutated(rng, body) if rng.random() < 0.7 else body
    method = rng.choice(("POST", "POST", "PUT", "PATCH", "GET", "DELETE"))
    target = collection if method == "POST" else f"{collection}/{name}"
    type = "application/merge-patch+json" if method == "PATCH" else JSON
    return _sent(rng, number, method, target, odd if method not in ("GET", "DELETE") else None, type)


def _raw(rng: random.Random, number: int) -> Sent:
    return Sent(number, "", "", (), b"", rng.choice(_RAW), leaves=rng.choice((0.2, 1.0)))


def _placed(rng: random.Random, seed: Seed, name: str) -> Any:
    """The seed's object under one of our names. An object keeps its own where its kind wants a certain one."""
    text = json.dumps(seed.body, default=str).replace("{ns}", rng.choice(NAMESPACES)).replace("{id}", "fuzz")
    body = json.loads(text.replace("{name}", name))
    if isinstance(body.get("metadata"), dict) and "." not in str(body["metadata"].get("name", "")):
        body["metadata"] = {**body["metadata"], "name": name}
    return body


def _target(rng: random.Random, collection: str, name: str) -> str:
    path = collection.replace("{ns}", rng.choice(NAMESPACES)).replace("{id}", "fuzz")
    if name and not any(plural in path for plural in PLANTED):
        path += f"/{name}"
        if rng.random() < 0.2:
            path += f"/{rng.choice(_SUBRESOURCES)}"
    path = quote(path, safe="/{}:%")
    if rng.random() < 0.45:
        chosen = rng.sample(sorted(_QUERY), rng.randrange(1, 4))
        path += "?" + urlencode([(key, rng.choice(_QUERY[key])) for key in chosen])
    return path


def _sent(
    rng: random.Random, number: int, method: str, target: str, value: Any, type: str, *, plain: bool = False
) -> Sent:
    body = b"" if value is None else mutate.encoded(rng, value)
    headers = [("Content-Type", type)] if type else []
    if not plain:
        if body and rng.random() < 0.12:
            body = mutate.broken(rng, body)
        if headers and rng.random() < 0.1:
            headers = [("Content-Type", rng.choice(_TYPES))]
        if rng.random() < 0.3:
            headers.append(("Accept", rng.choice(_ACCEPTS)))
        headers += [
            rng.choice(_HEADERS) for _ in range(rng.choice((0, 0, 0, 0, 1, 2, 120 if rng.random() < 0.1 else 1)))
        ]
    return Sent(number, method, target, tuple(headers), body)
