"""Fields that members own, by their paths in a type config."""

import msgspec
import pytest

from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan.copies.render import render
from argosy.plan.kinds.rules.retained import keeping_fields, steps_of


def keeping(desired, observed, *paths):
    return keeping_fields(paths)(desired, observed)


@pytest.mark.parametrize("path", ["spec.size", ".spec.size"])
def test_a_field_stays_as_the_member_has_it(path):
    assert keeping({"spec": {"size": 1, "a": 1}}, {"spec": {"size": 5, "a": 2}}, path) == {"spec": {"size": 5, "a": 1}}


def test_a_field_that_the_member_does_not_have_is_ours():
    assert keeping({"spec": {"size": 1}}, {"spec": {}}, "spec.size") == {"spec": {"size": 1}}
    assert keeping({"spec": {"size": 1}}, {}, "spec.size") == {"spec": {"size": 1}}


def test_a_field_that_we_do_not_have_stays_and_nothing_else_comes_along():
    assert keeping({"spec": {}}, {"spec": {"a": {"b": 1}}}, "spec.a.b") == {"spec": {"a": {"b": 1}}}
    assert keeping({"spec": {}}, {"spec": {"a": {}}}, "spec.a.b") == {"spec": {}}
    assert keeping({}, {"spec": {"a": {"b": 1}}}, "spec.a.b") == {"spec": {"a": {"b": 1}}}


def test_items_of_lists_are_found_by_their_names():
    desired = {"parts": [{"name": "x", "size": 1}, {"name": "y", "size": 1}, {"name": ["odd"]}]}
    observed = {"parts": [{"name": "y", "size": 9}, {"name": "z", "size": 9}]}
    assert keeping(desired, observed, "parts[*].size") == {
        "parts": [{"name": "x", "size": 1}, {"name": "y", "size": 9}, {"name": ["odd"]}]
    }


@pytest.mark.parametrize("desired", [{"spec": None}, {"spec": 3}, {"spec": [1]}])
def test_what_has_another_shape_is_ours(desired):
    assert keeping(desired, {"spec": {"size": 5}}, "spec.size") == desired


@pytest.mark.parametrize(
    "path", ["", ".", "spec..size", "spec[0]", "spec.a b", "metadata.labels", "kind", ".apiVersion"]
)
def test_malformed_paths_and_what_an_object_is_are_not_for_members(path):
    assert steps_of(path) == ()


def test_a_type_config_says_what_members_own_besides_what_the_kind_says():
    config = msgspec.convert(
        {
            "metadata": {"name": "services"},
            "spec": {
                "sourceType": {"version": "v1", "kind": "Service", "pluralName": "services", "scope": "Namespaced"},
                "retainedFields": ["spec.sessionAffinity"],
            },
        },
        FederatedTypeConfig,
    )
    ours = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"sessionAffinity": "None"}}
    theirs = {**ours, "spec": {"clusterIP": "10.0.0.1", "sessionAffinity": "ClientIP"}}
    assert render(ours, [], theirs, {}, config)["spec"] == theirs["spec"]
