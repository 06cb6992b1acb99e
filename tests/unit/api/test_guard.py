"""The guard as Argosy's own API server asks it: before anything is known of the shape of what is written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.admission import guard
from argosy.kube import jsonpatch
from tests.harness.guarding import MISSHAPEN, PLACED, STEP, federated

Json = dict[str, Any]


def asked(new: Json, old: Json, *, may_place: bool = True) -> str:
    write = guard.Write("step", (), "federatedobjects", "", new, old)
    return guard.refusal(write, [], lambda: may_place)


def changed(path: str, value: Any) -> Json:
    result: Json = jsonpatch.apply(federated(), [{"op": "add", "path": path, "value": value}])
    return result


@pytest.mark.parametrize(("path", "value"), MISSHAPEN, ids=str)
def test_what_is_no_federated_object_places_nothing(path, value):
    assert "controllers alone" in asked(changed(path, value), federated())


def test_a_step_that_may_place_adds_what_is_its_own():
    theirs = {"controller": STEP, "placement": [{"cluster": "m2"}]}
    assert asked(changed("/spec/placements/-", theirs), federated()) == ""
    assert asked(changed("/spec/overrides", None), federated()) == ""
    assert asked(changed("/spec/placements/-", theirs), federated(), may_place=False)
    assert asked(changed("/spec/placements/-", PLACED), federated())


json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("controller"), inner),
    max_leaves=6,
)


@given(
    path=st.sampled_from(["/spec", "/spec/placements", "/spec/overrides", "/spec/template", "/spec/placements/0"]),
    value=json,
)
def test_whatever_is_written_there_is_an_answer(path, value):
    assert isinstance(asked(changed(path, value), federated()), str)
