"""The step that places namespaces in every cluster."""

import pytest

from argosy.api import keys
from argosy.kube.regexp import compile_pattern
from argosy.plan.copies.placement import placed, with_placement
from argosy.plan.pipeline.namespaces import ANNOTATIONS, propagate_namespace
from tests.unit.plan.pipeline.steps import begun, inputs, taken
from tests.unit.plan.worlds import NAMESPACES


def given(name="shop", annotations=None, **more):
    source = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations or {}}}
    source["metadata"]["uid"] = "u-2"
    return inputs(source=source, type_config=NAMESPACES, wanted=True, **more)


def test_it_is_placed_everywhere_and_adopted_where_it_is_already():
    after = taken(propagate_namespace, given())
    assert placed(after.spec) == ["m1", "m2", "m3"]
    assert ANNOTATIONS.items() <= after.annotations.items()


@pytest.mark.parametrize(
    "excluded",
    [
        given("kube-public"),
        given("default"),
        given(annotations={keys.NO_AUTO_PROPAGATION: "true"}),
        given(exclude_namespaces=compile_pattern("^sh")),
    ],
    ids=["kube-", "default", "opted out", "excluded"],
)
def test_one_that_does_not_go_everywhere_stays_where_it_is(excluded):
    before = begun(excluded)
    before = before.with_spec(with_placement(before.spec, keys.NSAUTOPROP_CONTROLLER, ["m2"]))
    assert taken(propagate_namespace, excluded, before) is before
