"""The step that places an object and divides its replicas."""

import msgspec
import pytest

from argosy.api import keys
from argosy.fleet.snapshot import Fleet
from argosy.plan.copies.placement import placed, with_placement
from argosy.plan.failover.failback import Failback, with_failback
from argosy.plan.pipeline.held import Held, HeldReason
from argosy.plan.pipeline.schedule import NO_POLICY, schedule
from tests.unit.plan.pipeline.steps import begun, inputs, taken
from tests.unit.plan.worlds import cluster, deployment, fleet, policy

UNNAMED = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})
TO_M1 = policy(placement=[{"cluster": "m1"}])


def replicas(state):
    """By cluster, as the overrides of the scheduler say."""
    entries = [each for each in state.spec.get("overrides") or () if each["controller"] == keys.GLOBAL_SCHEDULER]
    return {each["cluster"]: each["patches"][0]["value"] for entry in entries for each in entry["clusters"]}


def again(given, state):
    """The next pass begins with what the last one made, and with nothing told yet."""
    return msgspec.structs.replace(
        begun(given), spec=state.spec, annotations=state.annotations, held_before=state.held, held=None
    )


def test_replicas_are_divided_and_what_it_rests_on_is_on_record():
    after = taken(schedule, inputs())
    assert sum(replicas(after).values()) == 6
    assert placed(after.spec) == ["m1", "m2", "m3"]
    assert keys.SCHEDULING_TRIGGERS in after.annotations
    assert after.decision.placements == replicas(after)
    assert [note.type for note in after.notes] == ["Normal"]
    assert not after.stopped


def test_the_state_it_was_given_is_not_changed():
    given = inputs()
    before = begun(given)
    spec, annotations = dict(before.spec), dict(before.annotations)
    taken(schedule, given, before)
    assert (before.spec, before.annotations, before.notes) == (spec, annotations, ())


def test_where_nothing_changed_nothing_is_decided():
    given = inputs()
    first = taken(schedule, given)
    second = taken(schedule, given, again(given, first))
    assert second.decision is None
    assert second.spec == first.spec
    assert second.notes == ()


def test_what_the_policy_holds_back_is_told():
    given = inputs(policy=policy(reschedulePolicy={"rescheduleWhen": {"policyContentChanged": False}}))
    first = taken(schedule, given)
    other = policy(reschedulePolicy={"rescheduleWhen": {"policyContentChanged": False}}, maxClusters=1)
    second = taken(schedule, inputs(policy=other), again(given, first))
    assert second.deferred == "policyContentChanged:false"
    assert second.spec == first.spec


def test_a_policy_that_only_says_how_replicas_move_leaves_a_cluster_that_evicts_them():
    moving = policy(reschedulePolicy={"replicaRescheduling": {"avoidDisruption": False}})
    first = taken(schedule, inputs(policy=moving))
    evicting = cluster("m1", taints=[{"key": "maintenance", "effect": "NoExecute"}])
    given = inputs(policy=moving, fleet=Fleet.of([evicting, cluster("m2"), cluster("m3")]))
    after = taken(schedule, given, again(given, first))
    assert placed(first.spec) == ["m1", "m2", "m3"]
    assert placed(after.spec) == ["m2", "m3"]
    assert sum(replicas(after).values()) == 6


@pytest.mark.parametrize(
    ("given", "reason", "message"),
    [
        ({"policy": None}, HeldReason.POLICY_MISSING, "PropagationPolicy default/all not found"),
        (
            {"policy": policy(schedulingProfile="p")},
            HeldReason.PROFILE_MISSING,
            "SchedulingProfile p not found",
        ),
    ],
    ids=["policy", "profile"],
)
def test_what_is_named_and_missing_stops_the_pass(given, reason, message):
    after = taken(schedule, inputs(**given))
    assert after.stopped
    assert after.held == Held(reason, message)
    assert [note.message for note in after.notes] == [message]
    told = msgspec.structs.replace(begun(inputs(**given)), held_before=after.held)
    assert taken(schedule, inputs(**given), told).notes == ()


def test_what_fits_nowhere_stays_where_it_is_and_the_pass_goes_on():
    placed_before = taken(schedule, inputs(policy=TO_M1))
    given = inputs(policy=policy(clusterSelector={"zone": "nowhere"}))
    after = taken(schedule, given, again(given, placed_before))
    assert placed(after.spec) == ["m1"]
    assert after.held.reason == HeldReason.UNSCHEDULABLE
    assert not after.stopped


def test_what_was_held_for_want_of_a_cluster_is_tried_again():
    given = inputs(fleet=fleet("m2"), policy=TO_M1)
    held = taken(schedule, given)
    assert held.held.reason == HeldReason.UNSCHEDULABLE
    assert taken(schedule, given, again(given, held)).decision is not None


def test_without_a_policy_what_scheduling_placed_is_taken_back():
    first = taken(schedule, inputs())
    given = inputs(source=UNNAMED, policy=None, wanted=True)
    before = again(given, first)
    before = before.with_spec(with_placement(before.spec, "example.com/other", ["m3"]))
    after = taken(schedule, given, before)
    assert placed(after.spec) == ["m3"]
    assert replicas(after) == {}
    assert keys.SCHEDULING_TRIGGERS not in after.annotations
    assert [note.message for note in after.notes] == [NO_POLICY]


def test_replicas_that_no_other_cluster_takes_stay_in_a_failed_one_and_are_asked_about_again():
    given = inputs(policy=policy(placement=[{"cluster": "m1"}, {"cluster": "m2", "preferences": {"maxReplicas": 2}}]))
    first = taken(schedule, given)
    assert replicas(first) == {"m1": 4, "m2": 2}
    taint = {"key": keys.UNREADY_TAINT, "effect": "NoExecute"}
    failed = msgspec.structs.replace(given, fleet=Fleet.of([cluster("m1", taints=[taint]), cluster("m2")]))
    second = taken(schedule, failed, again(failed, first))
    assert replicas(second) == {"m1": 4, "m2": 2}
    assert taken(schedule, failed, again(failed, second)).decision is not None


def test_replicas_on_their_way_back_take_the_next_step_without_a_decision():
    given = inputs(policy=policy(annotations={keys.FAILBACK_REPLICAS: "1"}, placement=[{"cluster": "m1"}]))
    first = taken(schedule, given)
    returning = msgspec.structs.replace(given, available={"m1": 6})
    before = again(returning, first)
    before = before.with_annotations(with_failback(before.annotations, Failback(("m3",), {"m1": 4, "m3": 2})))
    after = taken(schedule, returning, before)
    assert after.decision is None
    assert replicas(after) == {"m1": 6, "m3": 1}
