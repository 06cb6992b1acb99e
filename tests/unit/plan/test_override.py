"""Override rules: which clusters they are for and what patches they make."""

import msgspec
import pytest

from argosy.api.policies import TargetClusters
from argosy.fleet.snapshot import Fleet
from argosy.plan.override import OverrideError, apply_patches, overrides, rule_matches
from argosy.plan.selection import SelectionError
from tests.unit.plan.worlds import cluster, deployment, fleet, override_policy


def patch_rule(path, value=None, operator="replace", **target):
    rule = {"overriders": {"jsonpatch": [{"operator": operator, "path": path, "value": value}]}}
    return {**rule, "targetClusters": target} if target else rule


@pytest.mark.parametrize(
    ("target", "matches"),
    [
        (None, True),
        ({}, True),
        ({"clusters": ["m1"]}, True),
        ({"clusters": ["m2"]}, False),
        ({"clusterSelector": {"zone": "a"}}, True),
        ({"clusterSelector": {"zone": "b"}}, False),
        ({"clusters": ["m1"], "clusterSelector": {"zone": "b"}}, False),
        ({"clusterAffinity": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}, True),
        (
            {"clusterAffinity": [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["m1"]}]}]},
            False,
        ),
        ({"clusterAffinity": [{}]}, False),
    ],
)
def test_all_criteria_of_a_rule_must_match(target, matches):
    stated = None if target is None else msgspec.convert(target, TargetClusters)
    assert rule_matches(stated, "m1", {"zone": "a"}) is matches


def test_a_wrong_criterion_is_an_error_not_a_mismatch():
    with pytest.raises(OverrideError, match="clusterSelector"):
        rule_matches(TargetClusters(cluster_selector={"a" * 100: "b"}), "m1", {})
    stated = msgspec.convert(
        {"clusterAffinity": [{"matchFields": [{"key": "metadata.name", "operator": "Exists", "values": []}]}]},
        TargetClusters,
    )
    with pytest.raises(SelectionError):
        rule_matches(stated, "m1", {})


def test_rules_apply_in_order_and_see_what_earlier_ones_made():
    cluster_wide = override_policy(patch_rule("/spec/extra", {}, "add"), namespace="")
    own = override_policy(patch_rule("/spec/extra/deep", 1, "add"), patch_rule("/spec/extra/deep", 2, clusters=["m2"]))
    made = overrides([cluster_wide, own], deployment(), fleet("m1", "m2").members)
    assert [patch["path"] for patch in made["m1"]] == ["/spec/extra", "/spec/extra/deep"]
    assert [patch.get("value") for patch in made["m2"]] == [{}, 1, 2]


def test_a_null_value_is_not_written_because_servers_drop_it():
    made = overrides([override_policy(patch_rule("/spec/paused", None))], deployment(), fleet("m1").members)
    assert made["m1"] == [{"op": "replace", "path": "/spec/paused"}]
    assert apply_patches(deployment(), made["m1"])["spec"]["paused"] is None


def test_clusters_without_a_matching_rule_are_not_mentioned():
    assert (
        overrides([override_policy(patch_rule("/spec/paused", True, clusters=["m9"]))], deployment(), fleet().members)
        == {}
    )


@pytest.mark.parametrize(
    ("overriders", "message"),
    [
        ({"image": [{"operations": []}]}, "'image' is not supported yet"),
        ({"magic": [1]}, "unknown overrider 'magic'"),
        ({"jsonpatch": [{"value": 1}]}, "jsonpatch"),
        ({"jsonpatch": "x"}, "jsonpatch"),
        ({"jsonpatch": [{"path": "/spec/no/such", "value": 1}]}, "missing"),
        ({"jsonpatch": [{"operator": "explode", "path": "/spec", "value": 1}]}, "explode"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_names_the_rule(overriders, message):
    policy = override_policy({"overriders": {}}, {"overriders": overriders})
    with pytest.raises(OverrideError, match=message) as raised:
        overrides([policy], deployment(), Fleet.of([cluster("m1")]).members)
    assert "OverridePolicy differ, overrideRules[1], cluster m1" in str(raised.value)


def test_finalizers_are_left_for_rendering():
    rule = patch_rule("/metadata/finalizers/-", "example.com/f", "add")
    assert overrides([override_policy(rule)], deployment(), fleet("m1").members)["m1"][0]["value"] == "example.com/f"


@pytest.mark.parametrize(
    "path", ["/kind", "/metadata/name", "/metadata/namespace", "/metadata/generateName", "/metadata", ""]
)
def test_an_object_stays_the_object_it_is(path):
    with pytest.raises(OverrideError, match="cannot be overridden"):
        apply_patches(deployment(), [{"path": path, "value": {"a": "b"}}])


def test_the_api_version_may_differ_and_an_empty_operation_replaces():
    source = deployment()
    assert apply_patches(source, [{"path": "/apiVersion", "value": "apps/v2"}])["apiVersion"] == "apps/v2"
    assert apply_patches(source, [{"op": "", "path": "/spec/paused", "value": True}])["spec"]["paused"] is True
    assert source == deployment()
