"""Passes with a profile: its content is part of what a decision rests on, and answers that lacked are asked for again."""

import msgspec
import numpy as np
import pytest

from argosy.api import keys
from argosy.api.profiles import SchedulingProfile
from argosy.plan.pipeline.held import held_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Reply
from argosy.plan.scheduling.profile import RemotePlugin
from tests.unit.plan.worlds import DEPLOYMENTS, cluster, deployment, fleet, policy, stored


def profile(**plugins):
    body = {"metadata": {"name": "p"}, "spec": {"plugins": plugins}}
    return msgspec.convert(body, SchedulingProfile)


def registry(content="1"):
    return IN_TREE.with_remotes([RemotePlugin("hook", ("filter", "score", "select"), content)])


ASKING = profile(filter={"enabled": [{"name": "hook"}]})
PLAIN = profile()
FIRST = registry()
NEVER = {"rescheduleWhen": {"policyContentChanged": False}}


class Passes:
    """One Deployment's, with somebody who answers and counts."""

    def __init__(self):
        self.object = None
        self.asked = 0
        self.answer = lambda ask: Reply(passed=np.ones(len(ask.ranked.rows), dtype=np.bool_))

    def run(self, profile=ASKING, registry=FIRST, members=("m1", "m2"), **spec):
        by = policy(**{"schedulingMode": "Duplicate", "schedulingProfile": "p", **spec})
        steps = run(
            PassInputs(
                source=deployment(),
                existing=self.object,
                type_config=DEPLOYMENTS,
                fleet=fleet(*members),
                policy=by,
                profile=profile,
                registry=registry,
            )
        )
        try:
            ask = next(steps)
            while True:
                self.asked += 1
                ask = steps.send(self.answer(ask))
        except StopIteration as done:
            outcome = done.value
        if outcome.object is not None:
            self.object = stored(outcome, self.object)
        return outcome

    @property
    def placed(self):
        return [c["cluster"] for e in self.object["spec"].get("placements", ()) for c in e["placement"]]

    @property
    def held(self):
        return held_of(self.object["metadata"]["annotations"])


def test_a_pass_over_what_is_right_asks_nobody():
    passes = Passes()
    passes.run()
    assert (passes.asked, passes.placed) == (1, ["m1", "m2"])
    assert passes.run().object is None
    assert passes.asked == 1


@pytest.mark.parametrize(
    "changed", [{"profile": profile(filter={"enabled": [{"name": "hook", "wait": 2}]})}, {"registry": registry("2")}]
)
def test_another_profile_and_another_plugin_in_it_are_asked_anew(changed):
    passes = Passes()
    passes.run()
    passes.answer = lambda ask: Reply(passed=np.array([True, False]))
    passes.run(**changed)
    assert (passes.asked, passes.placed) == (2, ["m1"])


def test_where_changes_of_the_policy_do_not_count_those_of_its_profile_do_not_either():
    passes = Passes()
    passes.run(reschedulePolicy=NEVER)
    outcome = passes.run(reschedulePolicy=NEVER, registry=registry("2"))
    assert (passes.asked, outcome.object) == (1, None)
    assert outcome.deferred == "policyContentChanged:false"


def test_a_policy_without_a_profile_does_not_notice_any():
    passes = Passes()
    passes.run(schedulingProfile="", profile=None)
    assert passes.run(schedulingProfile="", profile=PLAIN, registry=registry("2")).object is None
    assert "profile" not in passes.object["metadata"]["annotations"][keys.SCHEDULING_TRIGGERS]


def test_a_cluster_nobody_could_tell_about_is_asked_about_with_every_pass_until_somebody_does():
    passes = Passes()
    passes.answer = lambda ask: Reply(passed=np.array([True, False]), errors={1: "dunno"})
    passes.run()
    assert passes.placed == ["m1"]
    assert passes.held is None
    assert passes.run(reschedulePolicy=NEVER).object is not None  # the policy is another one
    before = passes.asked
    assert passes.run(reschedulePolicy=NEVER).object is None
    assert passes.asked == before + 1
    passes.answer = lambda ask: Reply(passed=np.array([True, True]))
    passes.run(reschedulePolicy=NEVER)
    assert passes.placed == ["m1", "m2"]
    before = passes.asked
    assert passes.run(reschedulePolicy=NEVER).object is None
    assert passes.asked == before


def test_a_cluster_that_was_refused_with_a_reason_is_not_asked_about_again():
    passes = Passes()
    passes.answer = lambda ask: Reply(passed=np.array([True, False]), reasons={1: "too far away"})
    passes.run()
    assert passes.placed == ["m1"]
    assert passes.run().object is None
    assert passes.asked == 1


def test_nobody_who_answers_takes_nothing_away():
    passes = Passes()
    passes.run()
    passes.answer = lambda ask: Reply(error="not today")
    passes.run(registry=registry("2"))
    assert passes.placed == ["m1", "m2"]
    assert passes.held.reason == "Unschedulable"
    assert passes.held.message == "0/2 clusters are available: 2 not today"
    assert passes.run(registry=registry("2")).object is None
    passes.answer = lambda ask: Reply(passed=np.array([False, True]))
    passes.run(registry=registry("2"))
    assert (passes.placed, passes.held) == (["m2"], None)


def test_a_profile_with_a_mistake_holds_what_is_there_and_says_what_is_wrong():
    passes = Passes()
    passes.run()
    passes.run(profile=profile(score={"enabled": [{"name": "Nobody"}]}))
    assert passes.placed == ["m1", "m2"]
    assert (passes.held.reason, passes.held.message) == (
        "SchedulingProfileInvalid",
        "SchedulingProfile p: there is no score plugin 'Nobody'",
    )
    passes.run()
    assert passes.held is None
    assert cluster("m1").name in passes.placed
