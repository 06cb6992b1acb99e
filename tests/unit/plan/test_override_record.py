"""The record of which rule made which patch, and the differences it explains."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.plan.copies.patches import OverrideError
from argosy.plan.explain.differences import Difference, differences
from argosy.plan.overriders.record import Made, decode, encode
from tests.unit.plan.worlds import DEPLOYMENTS, World, deployment, named, override_policy

SEQUENCES = st.lists(
    st.builds(
        Made, st.sampled_from(["OverridePolicy a", "ClusterOverridePolicy b"]), st.integers(0, 9), st.integers(1, 5)
    ),
    min_size=1,
    max_size=4,
).map(tuple)


def entry(made):
    return [{"cluster": name, "patches": [{}] * sum(each.patches for each in made[name])} for name in sorted(made)]


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), SEQUENCES, max_size=12))
def test_what_was_recorded_is_read(made):
    text = encode(made)
    assert bool(text) == bool(made)
    assert decode({keys.OVERRIDES: text}, entry(made)) == made


def test_a_large_fleet_has_a_short_record():
    rules = [(Made("OverridePolicy a", 0, 2), Made("OverridePolicy a", 1 + number % 3, 1)) for number in range(500)]
    made = {f"c{number:03}": rules[number] for number in range(500)}
    assert len(encode(made)) <= 4096
    assert decode({keys.OVERRIDES: encode(made)}, entry(made)) == made
    every = {f"c{number:03}": (Made("OverridePolicy a", number, 1),) for number in range(500)}
    assert len(encode(every)) < 100
    found = decode({keys.OVERRIDES: encode(every)}, entry(every))
    assert found["c001"] == (Made("OverridePolicy a", -1, 1),)
    assert str(found["c001"][0]) == "OverridePolicy a"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"policies":[],"rules":[],"clusters":[[7,1]]}', '{"policies":["a"]}'])
def test_a_record_that_does_not_fit_claims_nothing(text):
    found = decode({keys.OVERRIDES: text}, [{"cluster": "m1", "patches": [{}]}])
    assert found.get("m1", ()) in ((), (Made("a", -1, 1),))


IMAGE = "spec.template.spec.containers[web].image"


def federated(*rules, base=(), source=None, fleet_wide="base"):
    labels = {keys.OVERRIDE_POLICY_LABEL: "differ", keys.CLUSTER_OVERRIDE_POLICY_LABEL: fleet_wide}
    source = source or deployment(metadata={"labels": labels})
    policies = named(override_policy(*rules), override_policy(*base, name="base", namespace=""))
    world = World(source=source, override_policies=policies)
    world.run()
    return msgspec.convert(world.object, FederatedObject)


def tag(value, **target):
    overriders = {"image": [{"operations": [{"imageComponent": "Tag", "value": value}]}]}
    return {"overriders": overriders, **({"targetClusters": target} if target else {})}


def test_each_field_that_differs_names_the_last_rule_that_changed_it():
    added = {"overriders": {"annotations": [{"operator": "addIfAbsent", "value": {"a": "1"}}]}}
    made = federated(tag("3", clusters=["m2"]), base=[tag("2"), added])
    assert differences(made, DEPLOYMENTS, "m1") == [
        Difference("metadata.annotations.a", "ClusterOverridePolicy base, overrideRules[1]", value="1"),
        Difference("spec.replicas", "the scheduler", 6, 3),
        Difference(IMAGE, "ClusterOverridePolicy base, overrideRules[0]", "nginx:1", "nginx:2"),
    ]
    assert differences(made, DEPLOYMENTS, "m2")[2] == Difference(
        IMAGE, "OverridePolicy differ, overrideRules[0]", "nginx:1", "nginx:3"
    )


def test_items_of_lists_go_by_name_and_what_is_taken_back_is_no_difference():
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    add = {"overriders": {"envs": [{"containerName": "web", "operator": "addIfAbsent", "value": variables}]}}
    drop = {"overriders": {"envs": [{"containerName": "web", "operator": "delete", "value": [{"name": "A"}]}]}}
    found = differences(federated(add, drop, tag("1")), DEPLOYMENTS, "m1")
    assert [(each.path, each.value) for each in found if "containers" in each.path] == [
        ("spec.template.spec.containers[web].env", [{"name": "B", "value": "2"}])
    ]


def test_a_null_is_as_good_as_nothing():
    nothing = {"overriders": {"envs": [{"containerName": "web", "operator": "delete", "value": [{"name": "A"}]}]}}
    assert [each.path for each in differences(federated(nothing), DEPLOYMENTS, "m1")] == ["spec.replicas"]


def test_values_of_a_secret_are_not_told():
    made = msgspec.structs.replace(federated(tag("2")), spec=_secret())
    assert differences(made, DEPLOYMENTS, "m1") == [Difference("data.key", "OverridePolicy differ", secret=True)]


def _secret():
    patches = [{"cluster": "m1", "patches": [{"op": "replace", "path": "/data/key", "value": "bmV3"}]}]
    template = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "b2xk"}}
    overrides = [{"controller": keys.OVERRIDE_CONTROLLER, "clusters": patches}]
    spec = {"metadata": {}, "spec": {"template": template, "overrides": overrides}}
    return msgspec.convert(spec, FederatedObject).spec


def test_patches_that_cannot_be_applied_are_an_error():
    made = federated(tag("2"))
    broken = msgspec.structs.replace(made.spec, template={**made.spec.template, "spec": {}})
    with pytest.raises(OverrideError):
        differences(msgspec.structs.replace(made, spec=broken), DEPLOYMENTS, "m1")
