"""An object that a policy selects: placed as one that names it, with the claim on record, and held when nobody selects it."""

import pytest

from argosy.api import keys
from argosy.plan.copies.placement import placed
from argosy.plan.followers.standing import leads
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.pipeline.template import names_the_policies
from tests.unit.plan.worlds import World, deployment, policy

PLAIN = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})
OPTED_OUT = deployment(
    metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}, "annotations": {keys.NO_SELECTION: "true"}}
)
ALL = PolicyRef("all", "default")
FLEET_WIDE = PolicyRef("everything")


def selected(ref=ALL):
    """A world in which a policy has selected the Deployment."""
    world = World(source=PLAIN, selected=ref, policy=policy(ref.name, ref.namespace))
    world.run()
    return world


def test_nothing_is_made_of_what_nobody_selects():
    assert World(source=PLAIN, policy=None).run().object is None


@pytest.mark.parametrize(
    ("ref", "label", "by"),
    [
        (ALL, keys.PROPAGATION_POLICY_LABEL, "PropagationPolicy/all"),
        (FLEET_WIDE, keys.CLUSTER_PROPAGATION_POLICY_LABEL, "ClusterPropagationPolicy/everything"),
    ],
)
def test_it_is_placed_and_the_claim_is_on_record(ref, label, by):
    world = selected(ref)
    assert placed(world.object["spec"]) == ["m1", "m2", "m3"]
    assert {key: value for key, value in world.typed.metadata.labels.items() if key in keys.POLICY_LABELS} == {
        label: ref.name
    }
    assert world.annotations[keys.SELECTED_BY] == by
    assert (
        "labels" not in world.object["spec"]["template"]["metadata"]
        or label not in (world.object["spec"]["template"]["metadata"]["labels"])
    )
    assert names_the_policies(PLAIN, world.typed)
    assert leads(world.typed)
    assert world.run().object is None


@pytest.mark.parametrize(("found", "reason"), [(policy(), HeldReason.NOT_SELECTED), (None, HeldReason.POLICY_MISSING)])
def test_it_is_held_once_nobody_selects_it(found, reason):
    world = selected()
    before = world.object["spec"]
    outcome = world.run(selected=None, policy=found)
    assert outcome.held.reason == reason
    assert keys.NO_SELECTION in outcome.held.message
    assert [note.type for note in outcome.notes] == ["Warning"]
    assert world.object["spec"] == before
    assert world.annotations[keys.SELECTED_BY] == "PropagationPolicy/all"
    assert world.run().object is None


def test_it_goes_on_once_it_is_selected_again():
    world = selected()
    world.run(selected=None)
    world.run(selected=ALL)
    assert keys.HELD not in world.annotations
    assert world.run().object is None


def test_another_policy_takes_over():
    world = selected()
    world.run(selected=None)
    world.run(selected=FLEET_WIDE, policy=policy("everything", "", placement=[{"cluster": "m1"}]))
    assert keys.HELD not in world.annotations
    assert world.annotations[keys.SELECTED_BY] == "ClusterPropagationPolicy/everything"
    assert keys.PROPAGATION_POLICY_LABEL not in world.typed.metadata.labels
    assert placed(world.object["spec"]) == ["m1"]


def test_a_label_takes_over_and_removing_it_removes_the_copies():
    world = selected()
    world.run(selected=None, source=deployment())
    assert keys.HELD not in world.annotations
    assert keys.SELECTED_BY not in world.annotations
    world.run(source=PLAIN, policy=None)
    assert placed(world.object["spec"]) == []


def test_the_annotation_lets_go():
    world = selected()
    world.run(selected=None, source=OPTED_OUT, policy=None)
    assert placed(world.object["spec"]) == []
    assert keys.SELECTED_BY not in world.annotations
    assert keys.PROPAGATION_POLICY_LABEL not in world.typed.metadata.labels
    assert world.run().object is None


def test_a_label_removed_while_a_policy_selects_it_hands_it_over():
    world = World()
    world.run()
    spec = world.object["spec"]
    world.run(source=PLAIN, selected=ALL)
    assert world.annotations[keys.SELECTED_BY] == "PropagationPolicy/all"
    assert placed(world.object["spec"]) == placed(spec)


def test_which_objects_a_policy_selects_reschedules_nothing():
    world = selected()
    narrow = policy(resourceSelectors=[{"kind": "Deployment"}], priority=7)
    assert world.run(policy=narrow).object is None
