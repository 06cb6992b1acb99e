"""Metadata and decoding: nulls, keys, versions, bad input."""

import msgspec
import pytest

from argosy.kube.objects import (
    DecodeError,
    Metadata,
    OwnerReference,
    Partial,
    decode,
    encode,
    key_of,
    split_key,
    version_number,
)


def test_null_maps_lists_and_times_are_empty() -> None:
    raw = (
        b'{"metadata":{"name":"a","namespace":null,"uid":null,"resourceVersion":null,"labels":null,"annotations":null,'
        b'"finalizers":null,"ownerReferences":null,"creationTimestamp":null,"deletionTimestamp":null}}'
    )
    assert msgspec.json.decode(raw, type=Partial).metadata == Metadata(name="a")


def test_metadata_is_read_whole() -> None:
    raw = (
        b'{"kind":"X","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":2,'
        b'"creationTimestamp":"2024-01-01T00:00:00Z","deletionTimestamp":"2024-01-02T00:00:00Z","labels":{"l":"1"},'
        b'"annotations":{"k":"2"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p",'
        b'"uid":"pu","controller":true}]},"spec":{"x":[1,2]}}'
    )
    assert decode(raw, Partial).metadata == Metadata(
        name="a",
        namespace="n",
        uid="u",
        resource_version="7",
        generation=2,
        creation_timestamp="2024-01-01T00:00:00Z",
        deletion_timestamp="2024-01-02T00:00:00Z",
        labels={"l": "1"},
        annotations={"k": "2"},
        finalizers=("f",),
        owner_references=(OwnerReference("v1", "P", "p", "pu", True),),
    )


class Spec(msgspec.Struct, frozen=True):
    replicas: int = 1
    labels: dict[str, str] = {}


class Projection(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: Spec = Spec()


def test_a_null_in_a_projection_means_not_set() -> None:
    raw = b'{"metadata":{"name":"a"},"spec":{"replicas":null,"labels":null}}'
    assert decode(raw, Projection).spec == Spec()
    assert decode(b'{"metadata":{"name":"a"},"spec":null}', Projection).spec == Spec()


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b'{"metadata":3}', b'{"metadata":{"name":1}}', b"\xff"])
def test_bytes_that_are_no_object_raise_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(raw, Projection)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    raw = b'{"metadata":' + b"[" * 100_000
    for into in (dict, Partial):
        with pytest.raises(DecodeError):
            decode(raw, into)


def test_bytes_and_dicts_are_decoded_as_such() -> None:
    assert decode(b'{"a":1}', bytes) == b'{"a":1}'
    assert decode(b'{"a":null}', dict) == {"a": None}


def test_keys_join_and_split() -> None:
    assert key_of(Metadata(name="a", namespace="n")) == "n/a"
    assert key_of(Metadata(name="a")) == "a"
    assert split_key("n/a") == ("n", "a")
    assert split_key("a") == ("", "a")


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("", None), ("abc", None), ("-1", None), ("٣", None), ("9" * 5000, None)]
)
def test_only_plain_numbers_are_version_numbers(text: str, number: int | None) -> None:
    assert version_number(text) == number


def test_bodies_of_every_form_encode_to_json() -> None:
    assert encode(b"{}") == b"{}"
    assert encode({"a": 1}) == b'{"a":1}'
    assert encode(Partial(Metadata(name="x", deletion_timestamp=None))) == b'{"metadata":{"name":"x"}}'
