"""What a body can cost by itself: the work grows with its size and no faster, and no bytes are an unhandled error."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.errors import ApiError, BadRequest
from argosy.server.http.encoding import decode_body
from tests.harness.growth import assert_linear

JSON, YAML = "application/json", "application/yaml"

#: Nasty families, by the number of their parts. About 100 KB at 10,000.
YAML_FAMILIES: dict[str, Callable[[int], str]] = {
    "sexagesimal": lambda n: "v: 1" + ":59" * n,
    "sexagesimal float": lambda n: "v: 1" + ":59" * n + ".5",
    "underscores": lambda n: "v: 1" + "_0" * n,
    "an integer": lambda n: "v: " + "9" * 10 * n,
    "a hexadecimal integer": lambda n: "v: 0x" + "f" * 10 * n,
    "a float": lambda n: f"v: 0.{'1' * 10 * n}e-5",
    "a number with zeros": lambda n: "v: " + "0" * 10 * n + "1",
    "a float that is none": lambda n: "v: " + "1" * 10 * n + "x",
    "a plain text": lambda n: "v: " + "word " * 2 * n,
    "a text of many lines": lambda n: "v: |\n" + "  line\n" * n,
    "a folded text": lambda n: "v: >\n" + "  line\n\n" * n,
    "quoted escapes": lambda n: 'v: "' + "\\u00e9" * n + '"',
    "binary": lambda n: "v: !!binary " + "aaaa" * n,
    "keys": lambda n: "".join(f"key{i}: v\n" for i in range(n)),
    "long keys": lambda n: "".join(f"{'k' * 500}{i}: v\n" for i in range(n // 50)),
    "keys given twice": lambda n: "key: v\n" * n,
    "a long key given twice inside": lambda n: f"{'k' * 10 * n}: {{{'a: 1, ' * n}}}",
    "items": lambda n: "- a\n" * n,
    "empty items": lambda n: "-\n" * n,
    "merges": lambda n: "a: &a {x: 1}\nb: {" + "<<: *a, " * n + "}",
    "merges of new keys": lambda n: "{" + ", ".join(f"<<: {{k{i}: v}}" for i in range(n)) + "}",
    "a merge of many": lambda n: "{<<: [" + ", ".join(f"{{k{i}: v}}" for i in range(n)) + "]}",
    "anchors": lambda n: "".join(f"- &a{i} v\n" for i in range(n)),
    "one anchor many times": lambda n: "- &a v\n" * n,
    "aliases": lambda n: "- &a v\n" + "- *a\n" * n,
    "aliases of lists": lambda n: "- &a [v, v]\n" + "- *a\n" * n,
    "tags": lambda n: "- !x v\n" * n,
    "flow collections": lambda n: "[" + "[{}]," * n + "]",
    "deep flow collections": lambda n: "[" + ("[" * 150 + "]" * 150 + ",") * (n // 50) + "]",
    "deeper than allowed": lambda n: "[" * 10 * n,
    "deep blocks": lambda n: "".join("- " * 100 + "a\n" for _ in range(n // 50)),
    "indentation": lambda n: "a:\n" + " " * 10 * n + "b: c",
    "comments": lambda n: "# a comment\n" * n + "a: b",
    "comments behind": lambda n: "a: b # a comment\n" + " # a comment\n" * n,
    "documents": lambda n: "a: b\n---\n" * n,
    "empty documents": lambda n: "---\n" * n,
    "directives": lambda n: "%TAG !a! b\n" + "%X y\n" * n + "---\na",
    "blank lines": lambda n: "a:\n" + "\n" * 10 * n + "  b",
    "question marks": lambda n: "? a\n" * n,
    "colons": lambda n: "a" + ":" * 10 * n,
    "an open quote": lambda n: 'a: "' + "\n" * 10 * n,
    "an open brace": lambda n: "{" + "a, " * n,
}

JSON_FAMILIES: dict[str, Callable[[int], str]] = {
    "keys": lambda n: "{" + ",".join(f'"key{i}":1' for i in range(n)) + "}",
    "keys given twice": lambda n: "{" + ",".join(['"key":1'] * n) + "}",
    "a long key with keys given twice": lambda n: '{"' + "k" * 10 * n + '":[' + ",".join(['{"a":1,"a":1}'] * n) + "]}",
    "many keys given twice": lambda n: "{" + ",".join(f'"key{i % (n // 2)}":1' for i in range(n)) + "}",
    "an integer": lambda n: '{"v":' + "9" * 10 * n + "}",
    "large integers": lambda n: "[" + ",".join(["18446744073709551615"] * n) + "]",
    "a float": lambda n: '{"v":0.' + "1" * 10 * n + "}",
    "halves of surrogates": lambda n: '"' + "\\ud800" * n + '"',
    "backslashes": lambda n: '"' + "\\\\" * 10 * n,
    "spaces behind names": lambda n: '{"a"' + " " * 10 * n + ":1}",
    "quotes": lambda n: '["' + '" ' * 10 * n,
    "deep": lambda n: "[" * 10 * n,
    "wide and deep": lambda n: "[" + ",".join(["[" * 150 + "]" * 150] * (n // 50)) + "]",
}


@pytest.mark.parametrize("family", YAML_FAMILIES)
def test_yaml_is_read_in_linear_time(family):
    assert_linear(lambda body: decoded(body, YAML), lambda size: YAML_FAMILIES[family](size).encode(), 10_000)


@pytest.mark.parametrize("family", JSON_FAMILIES)
def test_json_is_read_in_linear_time(family):
    assert_linear(lambda body: decoded(body, JSON), lambda size: JSON_FAMILIES[family](size).encode(), 10_000)


def decoded(body: bytes, form: str) -> object:
    try:
        return decode_body(body, form, "Thing")
    except ApiError as error:
        return error


@given(st.binary(max_size=300), st.sampled_from([JSON, YAML]))
def test_any_bytes_are_read_or_refused(body, form):
    with contextlib.suppress(BadRequest):
        decode_body(body, form, "Thing")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"-0", 0),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", 2.0**63),
        (b"[18446744073709551615]", [2.0**64]),
        (b"18446744073709551616", 2.0**64),
        (b"-9223372036854775809", -(2.0**63)),
        (b'"\\ud800"', "\ufffd"),
        (b'"\\ud83d\\ude00 \\\\ud800 \\udc00x"', "\U0001f600 \\ud800 \ufffdx"),
        (b'{"a\xff": "\xc3"}', {"a\ufffd": "\ufffd"}),
    ],
)
def test_json_is_what_go_makes_of_it(body, value):
    assert repr(decode_body(body, JSON, "Thing")[0]) == repr(value)


@pytest.mark.parametrize(
    "body", [b"1e999", b"-1e999", b"9" * 400, b"NaN", b"Infinity", b"01", b'"\x01"', b"1 2", b"\xef\xbb\xbf1", b'"\\ud800', b""]
)  # fmt: skip
def test_json_that_go_refuses_is_refused(body):
    with pytest.raises(BadRequest):
        decode_body(body, JSON, "Thing")


def test_of_repeated_fields_a_hundred_are_told():
    body = "{" + ",".join(f'"a{i}":1,"a{i}":1' for i in range(1000)) + "}"
    _, told = decode_body(body.encode(), JSON, "Thing")
    assert told == [f'duplicate field "a{i}"' for i in range(100)]
    _, told = decode_body(("a: 1\n" * 1000).encode(), YAML, "Thing")
    assert told == [
        "yaml: unmarshal errors:" + "".join(f'\n  line {n}: key "a" already set in map' for n in range(2, 102))
    ]


def test_a_repetition_is_not_hidden_by_an_escaped_quote():
    assert decode_body(b'{"a": 1, "a": "\\u0022:"}', JSON, "Thing") == ({"a": '":'}, ['duplicate field "a"'])


def test_a_repetition_inside_a_field_that_was_replaced_is_found():
    body = b'{"a": {"b": 1, "b": 2, "c": [0, {"d": 1, "d": 2, "d": 3}]}, "a": 2}'
    assert decode_body(body, JSON, "Thing") == (
        {"a": 2},
        ['duplicate field "a.b"', 'duplicate field "a.c[1].d"', 'duplicate field "a"'],
    )
