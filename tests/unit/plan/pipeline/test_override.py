"""The step that applies override policies."""

from argosy.api import keys
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.placement import entry_of, overrides_by_cluster, with_placement
from argosy.plan.overriders import record
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.override import override
from tests.unit.plan.pipeline.steps import begun, inputs, taken
from tests.unit.plan.worlds import deployment, named, override_policy

SOURCE = deployment(metadata={"labels": {keys.OVERRIDE_POLICY_LABEL: "differ"}})
ADDED = {"op": "add", "path": "/spec/paused", "value": True}
IN_M1 = {
    "targetClusters": {"clusters": ["m1"]},
    "overriders": {"jsonpatch": [{"operator": "add", "path": "/spec/paused", "value": True}]},
}


def given(*rules, **more):
    return inputs(source=SOURCE, override_policies=named(override_policy(*rules)), **more)


def placed_in(given_inputs, *clusters):
    state = begun(given_inputs)
    return state.with_spec(with_placement(state.spec, keys.GLOBAL_SCHEDULER, clusters))


def patches_of(state):
    return overrides_by_cluster(state.spec.get("overrides") or (), ())


def test_patches_are_for_the_clusters_it_is_placed_in():
    wanted = given(IN_M1)
    after = taken(override, wanted, placed_in(wanted, "m1", "m2"))
    assert patches_of(after) == {"m1": [ADDED]}
    assert [(note.type, note.message) for note in after.notes] == [("Normal", "overrides of differ applied")]
    assert patches_of(taken(override, wanted, placed_in(wanted, "m2"))) == {}


def test_a_second_time_there_is_nothing_to_tell():
    wanted = given(IN_M1)
    first = taken(override, wanted, placed_in(wanted, "m1"))
    again = taken(override, wanted, placed_in(wanted, "m1").with_spec(first.spec))
    assert again.spec == first.spec
    assert again.notes == ()


def test_without_a_policy_the_patches_of_the_last_one_go():
    wanted = given(IN_M1)
    first = taken(override, wanted, placed_in(wanted, "m1"))
    after = taken(override, inputs(), placed_in(inputs(), "m1").with_spec(first.spec))
    assert patches_of(after) == {}
    assert not after.stopped


def test_a_policy_that_is_not_there_stops_the_pass():
    after = taken(override, inputs(source=SOURCE))
    assert after.stopped
    assert after.held.reason == HeldReason.OVERRIDE_POLICY_MISSING
    assert after.held.message == "OverridePolicy default/differ not found: what is wanted is not known in any cluster"


BAD_IN_M1 = {"targetClusters": {"clusters": ["m1"]}, "overriders": {"image": [{}]}}
EVERYWHERE = {"overriders": {"jsonpatch": [{"operator": "add", "path": "/spec/paused", "value": True}]}}


def test_a_rule_that_cannot_be_applied_holds_its_cluster_and_no_other():
    wanted = given(EVERYWHERE, BAD_IN_M1)
    after = taken(override, wanted, placed_in(wanted, "m1", "m2"))
    assert not after.stopped
    assert after.held is None
    assert patches_of(after) == {"m2": [ADDED]}
    held = held_copies(after.annotations)
    assert held.why("m2") == ""
    assert held.why("m1").startswith("OverridePolicy differ, overrideRules[1], cluster m1: image: ")
    assert [(note.type, note.reason) for note in after.notes] == [
        ("Warning", "ParseOverridePolicyFailed"),
        ("Normal", "OverridePolicyApplied"),
    ]


def test_a_held_cluster_keeps_the_patches_its_copy_has():
    good, bad = given(EVERYWHERE), given(EVERYWHERE, BAD_IN_M1)
    first = taken(override, good, placed_in(good, "m1", "m2"))
    before = placed_in(bad, "m1", "m2").with_spec(first.spec).with_annotations(first.annotations)
    after = taken(override, bad, before)
    assert patches_of(after) == {"m1": [ADDED], "m2": [ADDED]}
    stored = entry_of(after.spec, "overrides", keys.OVERRIDE_CONTROLLER)["clusters"]
    assert set(record.decode(after.annotations, stored)) == {"m1", "m2"}
    again = taken(override, bad, before.with_spec(after.spec).with_annotations(after.annotations))
    assert (again.spec, again.annotations, again.notes) == (after.spec, after.annotations, ())


def test_what_can_be_applied_again_is_held_no_more():
    bad, good = given(BAD_IN_M1), given(IN_M1)
    first = taken(override, bad, placed_in(bad, "m1"))
    before = placed_in(good, "m1").with_spec(first.spec).with_annotations(first.annotations)
    after = taken(override, good, before)
    assert not held_copies(after.annotations)
    assert patches_of(after) == {"m1": [ADDED]}


def test_a_cluster_that_is_left_is_not_held():
    bad = given(BAD_IN_M1)
    first = taken(override, bad, placed_in(bad, "m1"))
    after = taken(override, bad, placed_in(bad, "m2").with_annotations(first.annotations))
    assert not held_copies(after.annotations)
