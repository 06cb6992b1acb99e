import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.crd.columns import columns_printer
from argosy.server.crd.jsonpath import JsonPathError, parse

OBJECT = {
    "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app.kubernetes.io/name": "x"}},
    "spec": {"replicas": 3, "on": True, "ratio": 0.5, "map": {"b": 1, "a": [None]}, "tags": ["a", "b", "c"]},
    "status": {"conditions": [
        {"type": "Ready", "status": "True", "count": 1}, {"type": "Synced", "status": "False", "count": 5}]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("$.spec.replicas", [3]),
        (".spec.missing.deeper", []),
        (".spec.tags[0]", ["a"]),
        (".spec.tags[-1]", ["c"]),
        (".spec.tags[7]", []),
        (".spec.tags[*]", ["a", "b", "c"]),
        (".spec.tags[0:2]", ["a", "b"]),
        (".spec.tags[1:]", ["b", "c"]),
        (".metadata.labels['app.kubernetes.io/name']", ["x"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["x"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type=="Synced")].status', ["False"]),
        (".status.conditions[?(@.count > 2)].type", ["Synced"]),
        (".status.conditions[?(@.type != 'Ready')].type", ["Synced"]),
        (".status.conditions[?(@.count)].type", ["Ready", "Synced"]),
        (".status.conditions[?(@.type > 2)].type", []),
    ],
)
def test_paths_select_as_kubernetes_does(path, found):
    assert parse(path).find(OBJECT) == found


@pytest.mark.parametrize("path", ["..name", ".a[", ".a[?(@.b", ".a[x]", ".a[0:2:0]", ".a b"])
def test_other_paths_are_refused(path):
    with pytest.raises(JsonPathError):
        parse(path)


@given(st.text(".[]*?()@='\"ab0:-\\ ", max_size=12))
def test_any_text_parses_or_is_refused(text):
    with contextlib.suppress(JsonPathError):
        assert isinstance(parse(text).find(OBJECT), list)


def test_columns_show_values_by_their_type():
    kinds = [("integer", ".spec.replicas"), ("string", ".spec.map"), ("string", ".spec.tags[*]"),
             ("boolean", ".spec.on"), ("number", ".spec.ratio"), ("date", ".metadata.creationTimestamp"),
             ("date", ".metadata.name"), ("integer", ".metadata.name"), ("string", ".spec.none"),
             ("string", ".spec.replicas")]  # fmt: skip
    printer = columns_printer([{"name": "c", "type": kind, "jsonPath": path} for kind, path in kinds])
    assert printer.cells(OBJECT, 1767225600.0 + 90) == [
        "w", 3, '{"a":[null],"b":1}', "a", True, 0.5, "90s", "<invalid>", None, None, "3",
    ]  # fmt: skip


def test_without_columns_name_and_age_are_shown():
    printer = columns_printer([])
    assert [column.name for column in printer.columns] == ["Name", "Age"]
    assert printer.cells(OBJECT, 1767225600.0 + 7200) == ["w", "120m"]
