"""Override rules: which clusters they are for and what patches they make."""

import msgspec
import pytest

from argosy.api import keys
from argosy.api.policies import TargetClusters
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.overriders.record import Made
from argosy.plan.pipeline.override import overrides, rule_matches
from argosy.plan.scheduling.selection import SelectionError
from tests.unit.plan.worlds import deployment, fleet, override_policy


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
    made = overrides([cluster_wide, own], deployment(), fleet("m1", "m2").members).patches
    assert [patch["path"] for patch in made["m1"]] == ["/spec/extra", "/spec/extra/deep"]
    assert [patch.get("value") for patch in made["m2"]] == [{}, 1, 2]


def test_a_null_value_is_not_written_because_servers_drop_it():
    made = overrides([override_policy(patch_rule("/spec/paused", None))], deployment(), fleet("m1").members).patches
    assert made["m1"] == [{"op": "replace", "path": "/spec/paused"}]
    assert apply_patches(deployment(), made["m1"])["spec"]["paused"] is None


def test_clusters_without_a_matching_rule_are_not_mentioned():
    made = overrides(
        [override_policy(patch_rule("/spec/paused", True, clusters=["m9"]))], deployment(), fleet().members
    )
    assert (made.patches, made.made, made.refusals) == ({}, {}, {})


@pytest.mark.parametrize(
    ("overriders", "message"),
    [
        ({"image": [{}]}, "image: Object missing required field `operations`"),
        ({"magic": [1]}, "unknown overrider 'magic'"),
        ({"jsonpatch": [{"value": 1}]}, "jsonpatch"),
        ({"jsonpatch": "x"}, "jsonpatch"),
        ({"jsonpatch": [{"path": "/spec/no/such", "value": 1}]}, "missing"),
        ({"jsonpatch": [{"operator": "explode", "path": "/spec", "value": 1}]}, "explode"),
    ],
)
def test_what_cannot_be_done_is_refused_in_the_cluster_it_is_for_and_names_the_rule(overriders, message):
    bad = {"targetClusters": {"clusters": ["m1"]}, "overriders": overriders}
    policy = override_policy(patch_rule("/spec/paused", True), bad)
    made = overrides([policy], deployment(), fleet("m1", "m2").members)
    assert made.patches == {"m2": [{"op": "replace", "path": "/spec/paused", "value": True}]}
    assert made.made == {"m2": (Made("OverridePolicy differ", 0, 1),)}
    told = made.refusals["m1"].told_of("m1")
    assert told.startswith("OverridePolicy differ, overrideRules[1], cluster m1: ")
    assert message in told


def test_finalizers_are_left_for_rendering():
    rule = patch_rule("/metadata/finalizers/-", "example.com/f", "add")
    assert (
        overrides([override_policy(rule)], deployment(), fleet("m1").members).patches["m1"][0]["value"]
        == "example.com/f"
    )


@pytest.mark.parametrize(
    "patch",
    [
        *(
            {"path": path, "value": {"a": "b"}}
            for path in ("/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/metadata", "")
        ),
        {"path": "/apiVersion", "value": "apps/v2"},
        {"path": "/metadata/name", "op": "remove"},
        {"path": "/metadata/namespace", "op": "remove"},
        {"path": "/metadata", "op": "remove"},
        {"path": "/metadata", "value": {"name": "web", "namespace": "kube-system"}},
        {"path": "", "value": {**deployment(), "kind": "ClusterRoleBinding"}},
        {"path": "/metadata/name", "op": "copy", "from": "/kind"},
        {"path": "/metadata/name", "op": "move", "from": "/kind"},
        *(
            {"path": f"/metadata/{field}", "op": "add", "value": value}
            for field, value in (
                ("generateName", "web-"),
                ("uid", "1"),
                ("resourceVersion", "1"),
                ("ownerReferences", [{"kind": "Node", "name": "n", "uid": "1"}]),
                ("deletionTimestamp", "2026-01-01T00:00:00Z"),
                ("managedFields", []),
            )
        ),
    ],
    ids=lambda patch: f"{patch.get('op', 'replace')} {patch['path']}",
)
def test_an_object_stays_the_object_it_is(patch):
    with pytest.raises(OverrideError, match="cannot be overridden"):
        apply_patches(deployment(), [patch])


@pytest.mark.parametrize("field", ["labels", "annotations", "finalizers"])
@pytest.mark.parametrize("value", ["text", 1, {"a": 1}, [1]])
def test_metadata_keeps_its_shape(field, value):
    with pytest.raises(OverrideError, match="must stay"):
        apply_patches(deployment(), [{"op": "add", "path": f"/metadata/{field}", "value": value}])


@pytest.mark.parametrize("key", sorted(keys.MARKS))
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_the_federations_own_marks_are_neither_set_nor_taken_away(field, key):
    path = f"/metadata/{field}/{key.replace('/', '~1')}"
    plain = deployment(metadata={"labels": {"app": "web"}, "annotations": {"a": "b"}})
    marked = deployment(metadata={"labels": {"app": "web", key: "true"}, "annotations": {"a": "b", key: "true"}})
    for obj, patch in (
        (plain, {"op": "add", "path": path, "value": "false"}),
        (plain, {"op": "add", "path": f"/metadata/{field}", "value": {key: "false"}}),
        (plain, {"op": "copy", "path": path, "from": "/metadata/name"}),
        (marked, {"op": "remove", "path": path}),
        (marked, {"op": "replace", "path": path, "value": "false"}),
        (marked, {"op": "replace", "path": f"/metadata/{field}", "value": {}}),
        (marked, {"op": "remove", "path": f"/metadata/{field}"}),
    ):
        with pytest.raises(OverrideError, match="reserved for the federation"):
            apply_patches(obj, [patch])


RIGHTS = {
    "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "RoleBinding": {
        "subjects": [{"kind": "User", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    },
}


def granting(kind, **metadata):
    meta = {"name": "r", "namespace": "a", "labels": {}, **metadata}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta, **RIGHTS[kind]}


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("RoleBinding", "/roleRef/name", "cluster-admin"),
        ("RoleBinding", "/subjects/0/name", "mallory"),
        ("Role", "/rules/0/verbs/-", "*"),
        ("Role", "/aggregationRule", {}),
        ("Role", "/metadata/labels/rbac.authorization.k8s.io~1aggregate-to-edit", "true"),
    ],
)
def test_an_override_grants_no_right_that_its_source_does_not(kind, path, value):
    with pytest.raises(OverrideError, match="grants, and to whom, cannot be overridden"):
        apply_patches(granting(kind), [{"op": "add", "path": path, "value": value}])
    labelled = apply_patches(granting(kind), [{"op": "add", "path": "/metadata/labels/where", "value": "here"}])
    assert labelled["metadata"]["labels"] == {"where": "here"}


def test_an_empty_operation_replaces():
    source = deployment()
    assert apply_patches(source, [{"op": "", "path": "/spec/paused", "value": True}])["spec"]["paused"] is True
    assert source == deployment()
