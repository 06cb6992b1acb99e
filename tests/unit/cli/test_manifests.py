"""Manifests are read as kubectl reads them."""

from pathlib import Path

import pytest

from argosy.cli.client import manifests
from argosy.cli.output.failures import Failure


def read(folder: Path, text: str | bytes) -> list[manifests.Manifest]:
    path = folder / "m.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return manifests.read([str(path)])


def test_values_are_those_of_kubernetes(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {at: 12:30, day: 2001-01-01, mode: 0o10, on: yes}\n"
    [found] = read(tmp_path, text)
    assert found.object["data"] == {"at": "12:30", "day": "2001-01-01", "mode": 8, "true": True}


def test_merges_may_be_overridden(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\nbase: &base {a: 1, b: 2}\nspec: {<<: *base, b: 3}\n"
    [found] = read(tmp_path, text)
    assert found.object["spec"] == {"a": 1, "b": 3}


def test_each_document_has_its_place(tmp_path: Path) -> None:
    one = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"
    found = read(tmp_path, f"# nothing\n---\n{one}---\n---\n{one}")
    assert [manifest.place.rpartition("m.yaml ")[2] for manifest in found] == ["line 3", "line 8"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: the field 'a' is there twice"),
        ("a: [", "not valid YAML: did not find expected node content"),
        ("a: !!int x", "line 1: not valid YAML: cannot decode !!str `x` as a !!int"),
        ("a: .inf", "line 1: not valid YAML: json: unsupported value: +Inf"),
        ("[" * 300, "nested deeper than 200 levels"),
        (b"a: \xff", "not valid YAML"),
        ("v: 1" + ":59" * 100_000, "apiVersion is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(Failure) as caught:
        read(tmp_path, text)
    assert problem in caught.value.message


def test_lists_of_any_kind_are_their_items(tmp_path: Path) -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n"
        "- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n"
    )
    found = [manifest.object for manifest in read(tmp_path, text)]
    assert [(each["kind"], each["apiVersion"], each["metadata"]["name"]) for each in found] == [
        ("ConfigMap", "v1", "a"),
        ("Secret", "v1", "b"),
    ]
