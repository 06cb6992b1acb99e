"""What patches cost: the work grows with document and patch together, not with one times the other."""

from typing import Any

import pytest

from argosy.kube import jsonpatch, mergepatch, schema, strategic
from argosy.kube.jsonpatch import JsonPatchError
from tests.harness.growth import assert_linear

OPERATIONS: dict[str, Any] = {
    "copies into a large object": lambda n: [
        {"op": "copy", "from": "/map/k1", "path": f"/map/new{i}"} for i in range(n)
    ],
    "copies within a large list": lambda n: [{"op": "copy", "from": "/list/0", "path": "/list/-"}] * n,
    "copies over each other": lambda n: [{"op": "copy", "from": "/map/k1", "path": "/map/k2"}] * n,
    "additions": lambda n: [{"op": "add", "path": f"/map/new{i}", "value": {}} for i in range(n)],
    "additions at the end": lambda n: [{"op": "add", "path": "/list/-", "value": {}}] * n,
    "replacements": lambda n: [{"op": "replace", "path": f"/list/{i}/v", "value": 1} for i in range(n)],
    "removals": lambda n: [{"op": "remove", "path": f"/map/k{i}"} for i in range(n)],
    "moves": lambda n: [{"op": "move", "from": f"/map/k{i}", "path": f"/other/k{i}"} for i in range(n)],
    "tests": lambda n: [{"op": "test", "path": f"/list/{i}", "value": {"v": i}} for i in range(n)],
}


def document(size: int) -> dict[str, Any]:
    return {"map": {f"k{i}": [i] for i in range(size)}, "list": [{"v": i} for i in range(size)], "other": {}}


@pytest.mark.parametrize("operations", OPERATIONS)
def test_json_patches(operations):
    def make(size: int) -> tuple[Any, Any]:
        return document(10 * size), OPERATIONS[operations](size)

    assert_linear(lambda given: jsonpatch.apply(*given), make, 2_000)


def test_a_json_patch_that_moves_too_many_items_is_refused():
    doc = {"list": [0] * 100_000}
    with pytest.raises(JsonPatchError, match="exceeding the limit 50000000"):
        jsonpatch.apply(doc, [{"op": "add", "path": "/list/0", "value": 1}, {"op": "remove", "path": "/list/0"}] * 400)
    assert len(jsonpatch.apply(doc, [{"op": "add", "path": "/list/-", "value": 1}] * 800)["list"]) == 100_800


def test_a_copy_of_something_very_deep_is_refused():
    deep = [{"op": "add", "path": "/d" * n, "value": {}} for n in range(1, 400)]
    with pytest.raises(JsonPatchError, match="deep copy"):
        jsonpatch.apply({}, [*deep, {"op": "copy", "from": "/d", "path": "/e"}])


def test_merge_patches():
    def make(size: int) -> tuple[Any, Any]:
        return document(size), {"map": {f"k{i}": None if i % 2 else [1] for i in range(size)}}

    assert_linear(lambda given: mergepatch.apply(*given), make, 20_000)


def containers(size: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"c{i}", **fields} for i in range(size)]


STRATEGIC: dict[str, Any] = {
    "merged by key": lambda n: {"containers": containers(n, image="i")},
    "merged in another order": lambda n: {"containers": containers(n, image="i")[::-1]},
    "deleted": lambda n: {"containers": [{"$patch": "delete", "name": f"c{i}"} for i in range(n)]},
    "ordered": lambda n: {"$setElementOrder/containers": [{"name": f"c{i}"} for i in reversed(range(n))]},
    "merged and ordered": lambda n: {
        "$setElementOrder/containers": [{"name": f"c{i}"} for i in range(n)],
        "containers": containers(n, image="i"),
    },
    "retained": lambda n: {
        "nodeSelector": {"$retainKeys": [f"k{i}" for i in range(n)], **{f"k{i}": "x" for i in range(n)}}
    },
    "taken from a list of texts": lambda n: {"$deleteFromPrimitiveList/finalizers": [f"f{i}" for i in range(n)]},
}


@pytest.mark.parametrize("patch", STRATEGIC)
def test_strategic_merge_patches(patch):
    pod = schema.load().kind("", "v1", "Pod")
    assert pod is not None

    def make(size: int) -> tuple[Any, Any]:
        spec = {"containers": containers(size), "nodeSelector": {f"k{i}": "v" for i in range(size)}}
        doc = {"metadata": {"finalizers": [f"f{i}" for i in range(size)]}, "spec": spec}
        changes = STRATEGIC[patch](size)
        return doc, {"metadata" if "finalizers" in str(list(changes)) else "spec": changes}

    assert_linear(lambda given: strategic.apply(*given, pod), make, 2_500)
