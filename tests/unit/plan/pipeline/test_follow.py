"""Placed where its leaders are, and what it needs itself and does not exist is noted."""

import pytest

from argosy.api import keys
from argosy.api.federated import LeaderReference
from argosy.plan.followers.graph import NOBODY, Following
from argosy.plan.followers.needs import waits_for
from argosy.plan.pipeline.follow import follow
from argosy.plan.pipeline.run import run_locally
from tests.unit.plan.pipeline.steps import begun, inputs, taken
from tests.unit.plan.worlds import deployment

WEB = LeaderReference("Deployment", "lead", "apps", "default")
FOLLOWING = Following((WEB,), frozenset({"m2", "m1"}))


def following_clusters(state):
    entries = state.spec.get("placements") or ()
    return [
        each["cluster"]
        for entry in entries
        if entry["controller"] == keys.FOLLOWER_CONTROLLER
        for each in entry["placement"]
    ]


def placed_in(*clusters, leaders=(WEB,)):
    given = inputs(following=Following(leaders, frozenset(clusters)))
    return taken(follow, given)


def test_a_follower_is_placed_and_says_whom_it_follows():
    given = inputs(following=FOLLOWING)
    after = taken(follow, given)
    assert following_clusters(after) == ["m1", "m2"]
    assert after.spec["follows"] == [{"kind": "Deployment", "name": "lead", "group": "apps", "namespace": "default"}]
    assert [note.message for note in after.notes] == ["follows Deployment lead: placed in m1, m2"]
    assert taken(follow, given, after).spec is after.spec, "the same again changes nothing"


def test_it_stays_where_it_is_while_a_leader_is_still_there():
    before = placed_in("m1", "m2", "m3")
    after = follow(inputs(following=Following((), frozenset({"m1"}), frozenset({"m2", "m9"}))), before)
    assert following_clusters(after) == ["m1", "m2"], "it does not come where it was not"


def test_it_stays_everywhere_while_a_leader_is_not_known():
    before = placed_in("m1", "m2")
    after = follow(inputs(following=Following((WEB,), frozenset({"m3"}), unknown=(WEB,))), before)
    assert following_clusters(after) == ["m1", "m2", "m3"]


def test_without_leaders_nothing_is_left_of_it():
    before = placed_in("m1")
    after = follow(inputs(following=NOBODY), before)
    assert "follows" not in after.spec
    assert "placements" not in after.spec
    assert after.notes[-1].message == "follows nobody any more: placed in nowhere"


def test_where_nobody_knows_its_leaders_it_stays_as_it_is():
    before = placed_in("m1")
    assert follow(inputs(), before).spec is before.spec


def test_who_is_to_follow_nobody_does_not():
    alone = deployment(metadata={"annotations": {keys.DISABLE_FOLLOWING: "true"}})
    assert following_clusters(taken(follow, inputs(source=alone, following=FOLLOWING))) == []


def test_a_cluster_that_is_left_is_noted_as_to_be_removed():
    first = run_locally(
        inputs(following=FOLLOWING, policy=None, source=deployment(metadata={"labels": {}}), wanted=True)
    )
    assert first.object is not None
    assert first.object["spec"]["follows"]
    again = run_locally(
        inputs(
            following=Following((WEB,), frozenset({"m1"})),
            policy=None,
            source=deployment(metadata={"labels": {}}),
            existing=first.object,
        )
    )
    assert again.object is not None
    assert again.object["metadata"]["annotations"][keys.TO_BE_REMOVED] == '[{"cluster":"m2","cause":"Followed"}]'


def test_what_is_missing_is_noted_told_once_and_forgotten():
    given = inputs(missing=["Secret default/b", "ConfigMap default/a"])
    after = taken(follow, given)
    assert waits_for(dict(after.annotations)) == ["ConfigMap default/a", "Secret default/b"]
    assert after.notes[-1].message == "waits for ConfigMap default/a, Secret default/b, which do not exist"
    again = follow(given, after)
    assert again.notes == after.notes
    assert keys.WAITS_FOR not in follow(inputs(missing=()), after).annotations
    assert keys.WAITS_FOR in follow(inputs(), after).annotations, "not known is not nothing"


@pytest.mark.parametrize("text", ["[", "{}"])
def test_a_list_of_followers_that_cannot_be_read_is_told_when_it_comes(text):
    source = deployment(metadata={"annotations": {keys.FOLLOWERS: text}})
    given = inputs(source=source)
    assert [note.reason for note in taken(follow, given).notes] == ["FailedInferFollowers"]
    stored = run_locally(given).object
    later = inputs(source=source, existing=stored)
    assert follow(later, begun(later)).notes == ()


def test_where_it_comes_to_the_other_steps_act_before_anything_is_sent():
    """An override policy that is missing: what is wanted there is not known."""
    there = Following((WEB,), frozenset({"m1"}))
    plain, differs = deployment(), deployment(metadata={"labels": {keys.OVERRIDE_POLICY_LABEL: "gone"}})
    for source in (plain, differs):
        del source["metadata"]["labels"][keys.PROPAGATION_POLICY_LABEL]
    stored = run_locally(inputs(source=plain, wanted=True, following=there)).object
    held = run_locally(inputs(source=differs, existing=stored, following=there)).object
    # Whatever was pending was done before the policy was lost.
    held["metadata"]["annotations"][keys.PENDING_CONTROLLERS] = "[]"
    moved = run_locally(inputs(source=differs, existing=held, following=FOLLOWING)).object
    assert moved["metadata"]["annotations"][keys.PENDING_CONTROLLERS] == f'[["{keys.OVERRIDE_CONTROLLER}"]]'
