"""The step that applies override policies."""

from argosy.api import keys
from argosy.plan.copies.placement import overrides_by_cluster, with_placement
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
    assert after.held.message == "OverridePolicy default/differ not found"


def test_a_rule_that_cannot_be_carried_out_stops_the_pass_and_leaves_what_is_there():
    wanted = given({"overriders": {"image": [{}]}})
    before = placed_in(wanted, "m1")
    after = taken(override, wanted, before)
    assert after.stopped
    assert after.held.reason == HeldReason.OVERRIDES_INVALID
    assert after.spec is before.spec
