"""Which kinds a definition brings, and the status it is stored with."""

import copy

import orjson

from argosy.server.crd import CustomResources, accept_names, rule_warnings
from argosy.server.registry import Registry, ScalePaths
from tests.unit.server.crd.builders import definition


def established(crd, *others):
    return {**crd, "status": accept_names(crd, others)}


def conditions(status):
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def served(registry):
    return sorted((kind.group, kind.version, kind.plural) for kind in registry)


def test_a_definition_is_established_by_its_own_write():
    status = accept_names(definition(), [])
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert status["storedVersions"] == ["v1"]
    assert conditions(status) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }


def test_names_of_another_definition_of_the_group_are_taken():
    first = established(definition())
    other = definition()
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"].update(plural="gadgets", singular="gadget", shortNames=["widget", "g"])
    status = accept_names(other, [first])
    assert conditions(status)["NamesAccepted"] == ("False", "ListKindConflict", '"WidgetList" is already in use')
    assert conditions(status)["Established"] == ("False", "NotAccepted", "not all names are accepted")
    assert "shortNames" not in status["acceptedNames"]
    registry = Registry()
    CustomResources(registry).observe(orjson.dumps({**other, "status": status}), None)
    assert served(registry) == []


def test_names_in_other_groups_are_free():
    first = established(definition())
    other = definition()
    other["spec"]["group"] = "other.example.com"
    other["metadata"]["name"] = "widgets.other.example.com"
    assert conditions(accept_names(other, [first]))["NamesAccepted"][0] == "True"


def test_an_established_definition_keeps_its_transition_times():
    before = established(definition())
    before["status"]["conditions"][0]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    assert accept_names(before, [])["conditions"][0]["lastTransitionTime"] == "2020-01-01T00:00:00Z"


def test_a_former_storage_version_stays_listed():
    before = established(definition())
    after = copy.deepcopy(before)
    after["spec"]["versions"][0]["storage"] = False
    after["spec"]["versions"].append({**before["spec"]["versions"][0], "name": "v2"})
    assert accept_names(after, [])["storedVersions"] == ["v1", "v2"]


def test_kinds_come_change_and_go_with_their_definition():
    registry = Registry()
    resources = CustomResources(registry)
    first = established(definition(subresources={"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"}}))  # fmt: skip
    resources.observe(orjson.dumps(first), None)
    kind = registry.find("example.com", "v1", "widgets")
    assert kind is not None
    assert kind.subresources == {"status", "scale"}
    assert kind.scale == ScalePaths("spec.replicas", "status.replicas", "status.selector")
    assert (kind.storage_version, kind.storage_key, kind.namespaced) == ("v1", "example.com/widgets", True)

    second = copy.deepcopy(first)
    second["spec"]["versions"][0]["served"] = False
    second["spec"]["versions"].append({**first["spec"]["versions"][0], "name": "v2", "storage": False})
    second["status"] = accept_names(second, [])
    resources.observe(orjson.dumps(second), orjson.dumps(first))
    assert served(registry) == [("example.com", "v2", "widgets")]
    only = registry.find("example.com", "v2", "widgets")
    assert only is not None
    assert (only.storage_version, only.storage_key) == ("v1", "example.com/widgets")

    resources.observe(None, orjson.dumps(second))
    assert served(registry) == []


def test_the_author_is_told_of_rules_that_are_not_evaluated():
    crd = definition({"type": "object", "x-kubernetes-validations": [{"rule": "self.a > 0"}]})
    assert rule_warnings(crd) == [
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations: "
        "rules are stored but not evaluated by this server"
    ]
    assert rule_warnings(definition()) == []


def test_a_write_that_changes_nothing_served_leaves_the_registry_alone():
    registry = Registry()
    resources = CustomResources(registry)
    first = established(definition())
    resources.observe(orjson.dumps(first), None)
    before = registry.generation
    relabelled = copy.deepcopy(first)
    relabelled["metadata"]["labels"] = {"a": "b"}
    resources.observe(orjson.dumps(relabelled), orjson.dumps(first))
    assert registry.generation == before
