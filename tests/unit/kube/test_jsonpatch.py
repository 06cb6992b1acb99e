import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import jsonpatch
from argosy.kube.jsonpatch import JsonPatchError, MalformedPatch, TooManyOperations

DOC: dict[str, Any] = {"a": {"b": [1, 2, 3], "c/d": "x", "e~f": None}, "list": [{"n": 1}, {"n": 2}]}


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        ({"op": "add", "path": "/a/new", "value": 1}, {"a": {"b": [1, 2, 3], "c/d": "x", "e~f": None, "new": 1}}),
        ({"op": "add", "path": "/a/b/-", "value": 4}, {"a": {"b": [1, 2, 3, 4], "c/d": "x", "e~f": None}}),
        ({"op": "add", "path": "/a/b/1", "value": 9}, {"a": {"b": [1, 9, 2, 3], "c/d": "x", "e~f": None}}),
        ({"op": "add", "path": "/a/b/-1", "value": 9}, {"a": {"b": [1, 2, 3, 9], "c/d": "x", "e~f": None}}),
        ({"op": "remove", "path": "/a/b/-1"}, {"a": {"b": [1, 2], "c/d": "x", "e~f": None}}),
        ({"op": "remove", "path": "/a/c~1d"}, {"a": {"b": [1, 2, 3], "e~f": None}}),
        ({"op": "replace", "path": "/a/e~0f", "value": 1}, {"a": {"b": [1, 2, 3], "c/d": "x", "e~f": 1}}),
        ({"op": "replace", "path": "/a/missing", "value": 1}, {"a": {**DOC["a"], "missing": 1}}),
        ({"op": "replace", "path": "/list/1/n", "value": 5}, {"list": [{"n": 1}, {"n": 5}]}),
        (
            {"op": "move", "from": "/a/b", "path": "/list/0/b"},
            {"a": {"c/d": "x", "e~f": None}, "list": [{"n": 1, "b": [1, 2, 3]}, {"n": 2}]},
        ),
        ({"op": "copy", "from": "/list/0", "path": "/list/-"}, {"list": [{"n": 1}, {"n": 2}, {"n": 1}]}),
        ({"op": "test", "path": "/list/0/n", "value": 1}, {}),
        ({"op": "test", "path": "/a/absent", "value": None}, {}),
    ],
)
def test_operation_gives_the_document_kubernetes_gives(operation: dict[str, Any], changed: dict[str, Any]) -> None:
    before = copy.deepcopy(DOC)
    assert jsonpatch.apply(DOC, [operation]) == {**before, **changed}
    assert before == DOC


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            {"op": "add", "path": "/x/y", "value": 1},
            'add operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {"op": "add", "path": "/a/b/9", "value": 1},
            "error in add for path: '/a/b/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "remove", "path": "/a/x"},
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "replace", "path": "/x/y", "value": 1},
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            {"op": "replace", "path": "/a/b/7", "value": 1},
            "replace operation does not apply: doc is missing key: /a/b/7: missing value",
        ),
        ({"op": "test", "path": "/list/0/n", "value": True}, "testing value /list/0/n failed: test failed"),
        (
            {"op": "add", "path": "/a/b/0/x", "value": 1},
            'add operation does not apply: doc is missing path: "/a/b/0/x": missing value',
        ),
        ({"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: operation missing path field: missing value"),
        ({"op": "replace", "path": "", "value": 3}, "replace operation value must be object or array"),
    ],
)
def test_operation_that_does_not_apply_says_so_in_kube_apiservers_words(
    operation: dict[str, Any], message: str
) -> None:
    with pytest.raises(JsonPatchError) as error:
        jsonpatch.apply(DOC, [operation])
    assert str(error.value) == message


def test_copied_value_is_independent_of_its_source() -> None:
    doc = {"a": {"x": {"n": 1}}, "b": {}}
    operations = [
        {"op": "replace", "path": "/a/x/n", "value": 2},
        {"op": "copy", "from": "/a/x", "path": "/b/x"},
        {"op": "replace", "path": "/b/x/n", "value": 3},
    ]
    assert jsonpatch.apply(doc, operations) == {"a": {"x": {"n": 2}}, "b": {"x": {"n": 3}}}


def test_value_of_an_operation_is_not_changed_by_later_ones() -> None:
    value: dict[str, Any] = {"n": 1}
    operations = [{"op": "add", "path": "/a", "value": value}, {"op": "replace", "path": "/a/n", "value": 2}]
    assert jsonpatch.apply({}, operations) == {"a": {"n": 2}}
    assert value == {"n": 1}


def test_doubling_copies_are_stopped() -> None:
    operations = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(60)]
    with pytest.raises(JsonPatchError, match="accumulated size"):
        jsonpatch.apply({"a": ["x" * 100]}, operations)


def test_malformed_and_oversized_patches_are_told_apart() -> None:
    with pytest.raises(MalformedPatch, match=r"cannot unmarshal object into Go value of type \[\]handlers.jsonPatchOp"):
        jsonpatch.apply({}, {"op": "add"})
    with pytest.raises(MalformedPatch, match=r"cannot unmarshal string into Go value of type handlers.jsonPatchOp"):
        jsonpatch.apply({}, ["add"])
    with pytest.raises(TooManyOperations):
        jsonpatch.apply({}, [{"op": "test", "path": "", "value": {}}] * 10_001)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab~/", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text("ab~/", max_size=2), json_values, max_size=3), st.lists(json_values, max_size=4), st.data()
)
def test_input_is_never_changed_and_only_patch_errors_are_raised(
    doc: Any, values: list[Any], data: st.DataObject
) -> None:
    paths = st.text("/ab01-~", max_size=6)
    operations = [
        {
            "op": data.draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])),
            "path": data.draw(paths),
            "from": data.draw(paths),
            "value": v,
        }
        for v in values
    ]
    before, given_operations = copy.deepcopy(doc), copy.deepcopy(operations)
    with contextlib.suppress(JsonPatchError):
        jsonpatch.apply(doc, operations)
    assert doc == before
    assert operations == given_operations
