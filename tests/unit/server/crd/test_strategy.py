"""A custom object's way through pruning, defaulting and validation."""

import copy
import time

import pytest

from tests.unit.server.crd.builders import definition, strategy_of, widget

LIST_MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "v": {"type": "integer", "default": 7, "maximum": 9}},
    },
}
SPEC = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "replicas": {"type": "integer", "default": 1, "minimum": 0},
        "mode": {"type": "string"},
        "nul": {"type": "string", "nullable": True},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "list": LIST_MAP,
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "outer": {"type": "object", "default": {}, "properties": {"inner": {"type": "string", "default": "d"}}},
    },
}
SUBRESOURCES = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


@pytest.fixture
def strategy():
    crd = definition(SPEC, subresources=SUBRESOURCES)
    return strategy_of(crd)


def texts(errors):
    return [str(error) for error in errors]


def test_unknown_fields_are_pruned_and_told(strategy):
    obj = widget({
        "name": "ab", "zzz": 1, "list": [{"name": "a", "q": 1}], "labels": {"a": {"b": 1}},
        "free": {"any": {"thing": 1}, "known": {"a": "x", "b": 1}},
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"bogus": 1}, "spec": {"x": 1}},
    })  # fmt: skip
    obj["metadata"]["typo"] = {}
    obj["metadata"]["ownerReferences"] = [{"name": "o", "nme": "x"}]
    assert strategy.decode(obj).unknown == (
        "metadata.ownerReferences[0].nme",
        "metadata.typo",
        "spec.free.known.b",
        "spec.labels.a.b",
        "spec.list[0].q",
        "spec.template.metadata.bogus",
        "spec.zzz",
    )
    assert obj["spec"] == {
        "name": "ab", "list": [{"name": "a"}], "labels": {"a": {}},
        "free": {"any": {"thing": 1}, "known": {"a": "x"}},
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"x": 1}},
    }  # fmt: skip


def test_defaults_reach_into_lists_and_into_defaults(strategy):
    obj = widget({"name": "ab", "list": [{"name": "a"}, {"name": "b", "v": 2}]})
    strategy.default(obj)
    assert obj["spec"] == {
        "name": "ab",
        "replicas": 1,
        "list": [{"name": "a", "v": 7}, {"name": "b", "v": 2}],
        "outer": {"inner": "d"},
    }


def test_null_counts_as_absent_unless_nullable(strategy):
    obj = widget({"name": "ab", "replicas": None, "mode": None, "nul": None, "outer": {"inner": None}})
    strategy.default(obj)
    assert obj["spec"] == {"name": "ab", "replicas": 1, "nul": None, "outer": {"inner": "d"}}


def test_two_objects_never_share_a_default(strategy):
    one, two = widget({"name": "a"}), widget({"name": "b"})
    strategy.default(one)
    strategy.default(two)
    one["spec"]["outer"]["inner"] = "changed"
    assert two["spec"]["outer"] == {"inner": "d"}


def test_sets_and_list_maps_have_no_duplicates(strategy):
    obj = widget({"name": "ab", "tags": ["a", "b", "a", "a"], "list": [{"name": "x"}, {"name": "x", "v": 1}]})
    assert texts(strategy.validate(obj)) == [
        'spec.tags[2]: Duplicate value: "a"',
        'spec.list[1]: Duplicate value: {"name":"x"}',
    ]


def test_embedded_resources_have_an_identity(strategy):
    obj = widget({"name": "ab", "template": {"metadata": {"labels": {"-": "x"}}}})
    found = texts(strategy.validate(obj))
    assert found[:2] == ["spec.template.apiVersion: Required value", "spec.template.kind: Required value"]
    assert found[2].startswith('spec.template.metadata.labels: Invalid value: "-": ')


def test_scale_paths_must_hold_counts(strategy):
    obj = widget({"name": "ab", "replicas": 2**31}, status={"selector": 5, "replicas": -1})
    assert texts(strategy.validate(obj))[-3:] == [
        ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
        ".status.replicas: Invalid value: -1: should be a non-negative integer",
        '.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string',
    ]


def test_an_update_is_not_refused_for_what_it_left_alone(strategy):
    old = widget({"name": "too-long-by-now", "mode": "a", "list": [{"name": "a", "v": 99}]})
    new = copy.deepcopy(old)
    new["spec"]["mode"] = "b"
    assert strategy.validate_update(new, old) == []
    new["spec"]["list"].insert(0, {"name": "b", "v": 100})
    assert texts(strategy.validate_update(new, old)) == [
        "spec.list[0].v: Invalid value: 100: spec.list[0].v in body should be less than or equal to 9"
    ]
    new["spec"]["name"] = "other-too-long"
    assert "spec.name: Too long: may not be more than 5 bytes" in texts(strategy.validate_update(new, old))


def test_status_is_checked_alone_and_named_from_its_own_root(strategy):
    old = widget({"name": "invalid-name"})
    new = {**old, "status": {"phase": 3}}
    assert texts(strategy.validate_status(new, old)) == [
        'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"'
    ]


def test_status_is_written_only_through_its_subresource(strategy):
    old = widget({"name": "ab"}, status={"phase": "Old"})
    new = widget({"name": "cd"}, status={"phase": "New"})
    strategy.prepare_update(new, old)
    assert new["status"] == {"phase": "Old"}
    new = widget({"name": "cd"}, status={"phase": "New"})
    new["metadata"].update(labels={"a": "b"}, resourceVersion="7")
    strategy.prepare_status(new, old)
    assert (new["spec"], new["status"]) == ({"name": "ab"}, {"phase": "New"})
    assert new["metadata"] == {**old["metadata"], "resourceVersion": "7"}


def test_without_the_subresource_status_is_content():
    crd = definition(SPEC)
    strategy = strategy_of(crd)
    old, new = widget({}, status={"phase": "Old"}), widget({}, status={"phase": "New"})
    strategy.prepare_update(new, old)
    strategy.prepare_create(new)
    assert new["status"] == {"phase": "New"}
    assert strategy.generation_grows(new, old)
    assert not strategy.generation_grows(old, old)


def test_selectable_fields_read_the_object():
    crd = definition(SPEC, selectableFields=[{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.on"}])
    strategy = strategy_of(crd)
    obj = widget({"name": "ab", "on": True})
    assert {name: read(obj) for name, read in strategy.selectable.items()} == {"spec.name": "ab", "spec.on": "true"}
    assert strategy.selectable["spec.name"](widget({})) == ""


def test_a_bare_finalizer_warns(strategy):
    obj = widget({})
    obj["metadata"]["finalizers"] = ["mine", "example.com/ok"]
    assert strategy.warnings(obj) == [
        'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts '
        "with other finalizer writers",
    ]


def test_a_small_object_costs_microseconds(strategy):
    obj = widget({"name": "ab", "replicas": 3, "tags": ["a", "b"], "list": [{"name": "a", "v": 1}]})
    fastest = 1.0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(200):
            strategy.decode(obj)
            strategy.default(obj)
            assert not strategy.validate(obj)
        fastest = min(fastest, (time.perf_counter() - start) / 200)
    assert fastest < 500e-6
