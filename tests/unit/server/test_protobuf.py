"""Protobuf bodies: the wire format, the shapes Kubernetes gives its JSON, and what is not a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.errors import BadRequest
from argosy.server.http.encoding import decode_body
from argosy.server.protobuf import MEDIA_TYPE, ProtobufError, decode, wire


def number(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field: int, value: int) -> bytes:
    return number(field << 3) + number(value)


def text(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return number(field << 3 | 2) + number(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + text(1, text(1, api_version) + text(2, kind)) + text(2, raw)


def definition_with_maximum(maximum: bytes) -> bytes:
    version = text(1, "v1") + text(4, text(1, number(9 << 3 | 1) + maximum))
    return envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", text(2, text(7, version)))


META = text(1, "web") + text(2, "") + text(8, b"")


def test_zero_values_count_only_where_json_shows_them() -> None:
    spec = integer(1, 0) + integer(5, 0) + integer(7, 0)
    body = envelope("apps/v1", "Deployment", text(1, META) + text(2, spec) + text(3, b""))
    assert decode(body) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 0},
        "status": {},
    }
    version = text(1, "v1") + integer(2, 0) + integer(3, 0) + integer(7, 0)
    decoded = decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", text(2, text(7, version))))
    assert decoded["spec"]["versions"] == [{"name": "v1", "served": False, "storage": False}]


def test_maps_bytes_and_lists() -> None:
    data = text(2, text(1, "key") + text(2, b"\x00\xff")) + text(2, text(1, "empty"))
    meta = text(1, "s") + text(11, text(1, "a") + text(2, "b")) + text(14, "example.com/x") + text(14, "example.com/y")
    decoded = decode(envelope("v1", "Secret", text(1, meta) + data + integer(5, 0)))
    assert decoded["data"] == {"key": "AP8=", "empty": ""}
    assert decoded["metadata"] == {"name": "s", "labels": {"a": "b"}, "finalizers": ["example.com/x", "example.com/y"]}
    assert decoded["immutable"] is False


def test_inlined_messages_times_quantities_and_int_or_string() -> None:
    probe = text(1, text(2, text(1, "/") + text(2, integer(1, 1) + integer(2, 0) + text(3, "http"))))
    resources = text(1, text(1, "cpu") + text(2, text(1, "500m")))
    container = text(1, "c") + text(8, resources) + text(10, probe)
    volume = text(1, "v") + text(2, text(2, b""))
    meta = text(1, "p") + text(8, integer(1, 1_600_000_000) + integer(2, 0))
    decoded = decode(
        envelope("v1", "Pod", text(1, meta) + text(2, text(1, volume) + text(2, container) + integer(4, -1)))
    )
    assert decoded["metadata"]["creationTimestamp"] == "2020-09-13T12:26:40Z"
    assert decoded["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {
                "name": "c",
                "resources": {"limits": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
            }
        ],
        "terminationGracePeriodSeconds": -1,
    }


def test_reviews_carry_lists_inside_maps() -> None:
    extra = text(5, text(1, "scopes") + text(2, text(1, "a") + text(1, "b")))
    decoded = decode(envelope("authorization.k8s.io/v1", "SubjectAccessReview", text(2, text(3, "me") + extra)))
    assert decoded["spec"] == {"user": "me", "extra": {"scopes": ["a", "b"]}}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty data"),
        (b"{}", "does not appear to be a protobuf message"),
        (envelope("example.com/v1", "Foo", b""), 'no protobuf form of kind "Foo"'),
        (envelope("v1", "Pod", text(1, META))[:-3], "cut off"),
        (envelope("v1", "Pod", integer(1, 5)), "expected"),
        (envelope("v1", "Pod", text(1, text(1, b"\xff\xfe"))), "not valid UTF-8"),
        (envelope("v1", "Pod", text(1, number(1 << 3 | 1) + b"eight by")), "expected"),
        (envelope("v1", "Pod", text(1, number(1 << 3 | 2) + b"\xff" * 9 + b"\x01")), "cut off"),
        (envelope("v1", "Pod", b"\x08" + b"\xff" * 11), "too long"),
        (definition_with_maximum(b"\0" * 6 + b"\xf0\x7f"), "not finite"),
        (envelope("v1", "Pod", b"\x0b"), "wire type 3"),
        (envelope("v1", "Pod", text(1, text(8, integer(1, 1 << 62)))), "out of range"),
    ],
)
def test_what_is_not_a_message_is_told(body: bytes, why: str) -> None:
    with pytest.raises(ProtobufError, match=why):
        decode(body)


def test_deep_nesting_is_refused() -> None:
    schema = b""
    for _ in range(150):
        schema = text(29, text(1, "a") + text(2, schema))
    version = text(1, "v1") + text(4, text(1, schema))
    with pytest.raises(ProtobufError, match="nested deeper"):
        decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", text(2, text(7, version))))


@pytest.mark.parametrize(
    "raw",
    [
        text(2, text(2, b"") * 101),
        text(2, text(14, text(4, b"\1" * 101))),
        text(1, text(8, integer(1, 0) * 101)),
        integer(99, 0) * 101,
    ],
    ids=["messages", "packed numbers", "a time", "unknown fields"],
)
def test_a_body_of_countless_fields_is_refused(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    body = envelope("v1", "Pod", raw)
    assert decode(body)["kind"] == "Pod"
    monkeypatch.setattr(wire, "MAX_FIELDS", 100)
    with pytest.raises(ProtobufError, match="more than 100 fields"):
        decode(body)


def test_json_inside_a_message_is_held_to_the_depth_of_bodies() -> None:
    deep = b'{"a":' * 300 + b"1" + b"}" * 300
    body = envelope("apps/v1", "ControllerRevision", text(1, META) + text(2, text(1, deep)))
    with pytest.raises(BadRequest, match="nested deeper"):
        decode_body(body, MEDIA_TYPE, "ControllerRevision")


@given(st.binary(max_size=200))
def test_any_bytes_give_an_object_or_an_error(data: bytes) -> None:
    for kind in ("Pod", "Secret", "Event"):
        try:
            decoded = decode(envelope("v1", kind, data))
        except ProtobufError:
            continue
        assert decoded["kind"] == kind
