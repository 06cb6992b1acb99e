"""Decisions that change nothing are not stored, and a record that is behind leads to no other decision, ever."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.fleet.snapshot import Fleet
from argosy.plan.copies.placement import placed
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import Outcome, run_locally
from argosy.plan.scheduling.triggers import Unwritten, as_decided
from argosy.plan.scheduling.wakeups import Concern, Wakeups
from tests.unit.plan.scheduling import RESCHEDULE_DEFAULTS, cluster, fleet, policy, taint
from tests.unit.plan.worlds import DEPLOYMENTS, deployment

EVERYWHERE = policy(schedulingMode="Duplicate", reschedulePolicy=RESCHEDULE_DEFAULTS)
READS_ZONES = policy(clusterSelector={"zone": "x"}, reschedulePolicy=RESCHEDULE_DEFAULTS)
MOVING = {**RESCHEDULE_DEFAULTS, "replicaRescheduling": {"avoidDisruption": False}}
REPELLED, EVICTED = taint("dedicated", effect="NoSchedule"), taint("dedicated", effect="NoExecute")


class Life:
    """An object through changes of the fleet; `forgetful` starts anew before each of them, `diligent` stores each decision."""

    def __init__(self, rule: Any, *, diligent: bool = False) -> None:
        self.rule, self.diligent = rule, diligent
        self.stored: Any = None
        self.unwritten: Unwritten | None = None
        self.writes = 0

    def sees(self, members: Fleet) -> Outcome:
        outcome = run_locally(
            PassInputs(
                source=deployment(),
                type_config=DEPLOYMENTS,
                fleet=members,
                existing=self.stored,
                policy=self.rule,
                unwritten=self.unwritten,
            )
        )
        if outcome.object is not None:
            self.writes += 1
            self.stored = outcome.object
        if outcome.decision is not None:
            self.unwritten = outcome.unwritten
        if self.diligent and self.unwritten is not None:
            annotations = self.stored["metadata"]["annotations"]
            record = as_decided(annotations[keys.SCHEDULING_TRIGGERS], self.unwritten)
            metadata = {**self.stored["metadata"], "annotations": {**annotations, keys.SCHEDULING_TRIGGERS: record}}
            self.stored, self.unwritten = {**self.stored, "metadata": metadata}, None
        return outcome

    def restarted(self) -> None:
        self.unwritten = None

    def concern(self, members: Fleet) -> Concern:
        annotations = self.stored["metadata"]["annotations"]
        return Wakeups(members).concern(self.rule, annotations, self.clusters, self.unwritten)

    @property
    def clusters(self) -> frozenset[str]:
        return frozenset(placed(self.stored["spec"]))


def test_a_taint_that_moves_nothing_is_decided_once_and_not_stored():
    life, tainted = Life(EVERYWHERE), fleet("a", cluster("b", taints=[REPELLED]))
    life.sees(fleet("a", "b"))
    assert life.writes == 1
    assert life.concern(tainted) is Concern.RECORD
    assert life.sees(tainted).decision is not None
    assert (life.writes, life.clusters) == (1, {"a", "b"})
    assert life.concern(tainted) is Concern.NONE
    assert life.sees(tainted).decision is None, "once"
    life.restarted()
    assert life.sees(tainted).decision is not None, "once more, as nobody knows"
    assert life.sees(tainted).decision is None
    life.sees(fleet("a", "b"))
    assert life.writes == 1


def test_the_record_is_renewed_with_the_next_write():
    life, tainted = Life(EVERYWHERE), fleet("a", cluster("b", taints=[REPELLED]))
    life.sees(fleet("a", "b"))
    life.sees(tainted)
    life.sees(fleet("a", cluster("b", taints=[EVICTED])))
    assert (life.writes, life.clusters) == (2, {"a"})
    life.restarted()
    assert life.sees(fleet("a", cluster("b", taints=[EVICTED]))).decision is None


def test_what_is_deferred_is_not_taken_up_by_a_restart_because_the_record_is_behind():
    life, tainted = Life(EVERYWHERE), cluster("b", taints=[REPELLED])
    life.sees(fleet("a", "b"))
    life.sees(fleet("a", tainted))
    assert life.writes == 1
    joined = fleet("a", tainted, "c")
    assert life.concern(joined) is Concern.RECORD
    assert life.sees(joined).deferred == "clusterJoined:false"
    assert life.writes == 2, "now its record says what was decided, and on what"
    assert life.concern(joined) is Concern.NONE
    life.restarted()
    assert life.sees(joined).deferred == "clusterJoined:false"
    assert (life.writes, life.clusters) == (2, {"a", "b"})


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({}, True),
        ({"maxClusters": 1}, True),
        ({"reschedulePolicy": MOVING}, False),
        ({"schedulingMode": "Duplicate", "reschedulePolicy": MOVING}, True),
        ({"schedulingMode": "Duplicate", "maxClusters": 1, "reschedulePolicy": MOVING}, False),
        ({"computePower": {}}, False),
    ],
)
def test_only_what_comes_out_the_same_in_any_case_is_not_on_record(spec, kept):
    life = Life(policy(**{"reschedulePolicy": RESCHEDULE_DEFAULTS, **spec}))
    life.sees(fleet("a", "b"))
    life.sees(fleet("a", cluster("b", taints=[taint("soon", effect="PreferNoSchedule")])))
    assert (life.writes == 1, life.unwritten is not None) == (kept, kept)


def test_a_copy_that_waits_for_a_cluster_to_be_ready_is_decided_on_record():
    life = Life(EVERYWHERE)
    life.sees(fleet("a", "b", cluster("c", ready=False)))
    tainted = cluster("b", taints=[REPELLED])
    life.sees(fleet("a", tainted, cluster("c", ready=False)))
    life.restarted()
    life.sees(fleet("a", tainted, "c"))
    assert life.clusters == {"a", "b"}, "that it is ready now adds nothing, nor does a restart"


members = st.fixed_dictionaries(
    {},
    optional={
        name: st.fixed_dictionaries(
            {
                "labels": st.sampled_from([{"zone": "x"}, {"zone": "y"}]),
                "taints": st.sampled_from([[], [REPELLED], [EVICTED]]),
            }
        )
        for name in ("a", "b", "c")
    },
)


@given(
    st.lists(members, min_size=1, max_size=6),
    st.sampled_from([EVERYWHERE, READS_ZONES, policy(schedulingMode="Duplicate", clusterSelector={"zone": "x"})]),
    st.booleans(),
)
def test_it_is_decided_as_if_every_decision_were_stored(moments, rule, when_asked_only):
    lazy, diligent = Life(rule), Life(rule, diligent=True)
    for moment in moments:
        now = fleet(*(cluster(name, **facts) for name, facts in moment.items()))
        if not when_asked_only or lazy.stored is None or not lazy.clusters or lazy.concern(now) is not Concern.NONE:
            lazy.sees(now)
        diligent.sees(now)
        assert lazy.stored["spec"] == diligent.stored["spec"]
        before = msgspec.json.encode(lazy.stored)
        again = Life(rule)
        again.stored = lazy.stored
        again.sees(now)
        assert msgspec.json.encode(again.stored) == before, "a restart writes nothing"
