"""YAML as it is answered: any reader gets the JSON value back."""

from typing import Any

import orjson
import yaml
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import yamlreader
from argosy.kube.yamlwriter import to_yaml

ODD = [
    "yes",
    "12:30",
    "1e3",
    "~",
    "0x1",
    ".5",
    "=",
    "<<",
    "- a",
    "a: b",
    "a #b",
    "null",
    "2024-01-01",
    "\u2028",
    "\x85",
]
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.sampled_from(ODD)
KEYS = st.text(max_size=5) | st.sampled_from([*ODD, "k" * 2000])
VALUES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    value = orjson.loads(orjson.dumps(value))
    assert yaml.load(to_yaml(value), Loader=yaml.CSafeLoader) == value


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_parts_fit_into_a_document(items: list[Any]) -> None:
    text = b"items:\n" + b"".join(to_yaml([item], 1) for item in items)
    assert yaml.load(text, Loader=yaml.CSafeLoader) == {"items": orjson.loads(orjson.dumps(items))}


def test_it_is_pleasant_to_read() -> None:
    value = {"kind": "Pod", "metadata": {"labels": {}, "name": "web-0"}, "list": [{"a": 1, "b": ["x", "12:30"]}, []]}
    assert to_yaml(value).decode().splitlines() == [
        "kind: Pod",
        "metadata:",
        "  labels: {}",
        "  name: web-0",
        "list:",
        "  - a: 1",
        "    b:",
        "      - x",
        '      - "12:30"',
        "  - []",
    ]


TEXTS = st.one_of(
    st.sampled_from([*ODD, "n", "08", "0o10", "1_000", "-_1", ".inf", "!!str", "&a", "*a", "", " "]), st.text()
)


@given(st.dictionaries(TEXTS, TEXTS | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none() | st.lists(TEXTS)))
def test_kubernetes_reads_it_as_it_was(value: dict[str, Any]) -> None:
    found = yamlreader.read(to_yaml(value)).value
    assert repr(sorted(found.items())) == repr(sorted(value.items()))
