"""Equality of JSON values, as both Kubernetes and a person see it."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.plan.fields import equal

SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, "", "1", "x"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner))
WIDE = {f"k{number}": "v" for number in range(1000)}


@given(VALUES, VALUES)
def test_values_are_equal_when_their_json_is(a: Any, b: Any) -> None:
    def encoded(value: Any) -> bytes:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)

    assert equal(a, a)
    if encoded(a) == encoded(b):
        assert equal(a, b)
    if a != b:
        assert not equal(a, b)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (dict(reversed(WIDE.items())), True),
        ({**WIDE, "k7": "w"}, False),
        ({**WIDE, "more": "v"}, False),
        ({**WIDE, "k7": None}, False),
    ],
)
def test_wide_objects_are_equal_as_a_whole(other: dict[str, Any], same: bool) -> None:
    assert equal({"data": WIDE}, {"data": other}) is same
    assert equal({"data": {**WIDE, "n": 1}}, {"data": {**other, "n": 1}}) is same
    assert not equal({**WIDE, "n": 1}, {**WIDE, "n": True})
