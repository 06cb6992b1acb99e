"""A kind that came to the fleet only now: who is waited for, and for how long."""

import datetime

import pytest

from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run_locally
from argosy.plan.plugins import DEFAULT_PROFILE
from argosy.plan.scheduling.arriving import Arrival, arrival_of, awaited, message
from tests.unit.plan.scheduling import cluster, fleet, policy, taint, unit
from tests.unit.plan.test_divide import STATEFUL_SETS, stateful_set

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STATEFUL = {
    "group": "apps",
    "version": "v1",
    "kind": "StatefulSet",
    "pluralName": "statefulsets",
    "scope": "Namespaced",
}
ARRIVAL = Arrival(NOW + datetime.timedelta(seconds=5))


def ago(seconds):
    return NOW - datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("seen", "defined", "left"),
    [
        (None, None, None),
        (2, None, 3),
        (None, 1, 4),
        (4, 1, 4),
        (1, 400, 4),
        (400, 1, 4),
        (5, 400, None),
        # Clocks differ; by more than a little they are not believed.
        (None, -2, 7),
        (None, -400, None),
    ],
)
def test_it_is_waited_for_only_lately_and_never_for_long(seen, defined, left):
    times = [None if each is None else ago(each) for each in (seen, defined)]
    found = arrival_of(*times, None, now=NOW, patience=5.0)
    assert found == (None if left is None else Arrival(NOW + datetime.timedelta(seconds=left)))


def members(*serving, **changed):
    names = ("m1", "m2", "m3", "m4")
    return fleet(
        *(cluster(name, apis=[STATEFUL] if name in serving else [], **changed.get(name, {})) for name in names)
    )


def found(clusters, expected=None, **fields):
    asked = unit(6, kind="StatefulSet", **fields)
    return awaited(asked, clusters, DEFAULT_PROFILE.filters, expected)


def test_only_clusters_that_lack_nothing_else_are_waited_for():
    assert found(members("m1", m2={"taints": [taint("a")]}, m3={"ready": False})) == ["m4"]
    assert found(members("m1"), cluster_names=frozenset({"m1", "m3"})) == ["m3"]
    assert found(members("m1", "m2", "m3", "m4")) == []


def test_only_clusters_that_get_the_definition_are_waited_for():
    assert found(members("m1"), frozenset({"m1", "m2"})) == ["m2"]


def test_the_message_names_the_clusters_and_the_end():
    asked = unit(6, kind="StatefulSet")
    told = message(asked, ["m2", "m3"], ARRIVAL)
    assert told.startswith("waits until 2026-01-01T00:00:05Z at the latest for m2, m3 to serve apps/v1 StatefulSet")
    assert " and 3 more to serve" in message(asked, [f"m{number}" for number in range(8)], ARRIVAL)


def ran(clusters, stored=None, arrival=ARRIVAL):
    return run_locally(
        PassInputs(
            source=stateful_set(6),
            existing=stored,
            type_config=STATEFUL_SETS,
            fleet=clusters,
            policy=policy(),
            now=NOW,
            arrival=arrival,
        )
    )


def test_the_first_placement_waits_and_says_so():
    outcome = ran(members("m1"))
    assert outcome.held is not None
    assert outcome.held.reason == "WaitingForKind"
    assert outcome.until == ARRIVAL.until
    assert "placements" not in outcome.object["spec"]
    assert not outcome.notes
    again = ran(members("m1"), outcome.object)
    assert again.object is None
    assert again.until == ARRIVAL.until


def test_it_goes_on_when_all_are_there_or_the_time_is_over():
    waiting = ran(members("m1")).object
    together = ran(members("m1", "m2", "m3", "m4"), waiting)
    assert len(together.decision.placements) > 1
    alone = ran(members("m1"), waiting, None)
    assert set(alone.decision.placements) == {"m1"}
    assert alone.held is together.held is None


def test_what_is_placed_does_not_wait():
    placed = ran(members("m1"), None, None).object
    assert ran(members("m1", m1={"labels": {"a": "b"}}), placed).held is None


def test_where_nobody_serves_it_there_is_nothing_to_wait_for():
    outcome = ran(members())
    assert outcome.held is not None
    assert outcome.held.reason == "Unschedulable"
    assert outcome.until is None
