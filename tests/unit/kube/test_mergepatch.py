import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import mergepatch

values = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text("ab", max_size=2), values, max_size=4)


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merges_as_the_rfc_shows(doc: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy(doc)
    assert mergepatch.apply(doc, patch) == result
    assert doc == before


@given(objects, objects)
def test_created_patch_leads_from_one_to_the_other(original: dict[str, Any], modified: dict[str, Any]) -> None:
    patch = mergepatch.create(original, modified)
    assert mergepatch.same(mergepatch.apply(original, patch), modified)


@given(objects)
def test_nothing_changed_needs_no_patch(doc: dict[str, Any]) -> None:
    assert mergepatch.create(doc, copy.deepcopy(doc)) == {}


@given(objects, objects)
def test_applying_twice_changes_nothing_more(doc: dict[str, Any], patch: dict[str, Any]) -> None:
    once = mergepatch.apply(doc, patch)
    assert mergepatch.apply(once, patch) == once


def test_true_is_not_one() -> None:
    assert mergepatch.create({"a": True}, {"a": 1}) == {"a": 1}
