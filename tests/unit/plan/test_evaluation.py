"""What objects share of the way clusters look to them is what each would have found for itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.katalyst import RECLAIMED_MILLICPU
from argosy.fleet.snapshot import Fleet
from argosy.plan.explain.record import encode, record_of
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import ResourceRequest
from tests.unit.plan.any_worlds import worlds
from tests.unit.plan.scheduling import cluster, fleet, taint, unit

reservations = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9000), max_size=3)


@given(st.lists(st.tuples(worlds(), reservations), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_who_comes_later_is_told_the_same_as_who_comes_alone(neighbours):
    members = neighbours[0][0][1]
    common = Fleet.of(members)
    for (wanted, _), taken in neighbours:
        reserved = {"cpu": {name: amount for name, amount in taken.items() if name in common}}
        together = schedule(wanted, common.with_reserved(reserved))
        alone = schedule(wanted, Fleet.of(members).with_reserved(reserved))
        assert encode(record_of(together)) == encode(record_of(alone))
        assert together.placements == alone.placements
        assert together.rejected == alone.rejected


def test_objects_of_one_kind_share_it():
    members = fleet("a", "b", cluster("c", taints=[taint("x")]))
    first, second = schedule(unit(3, name="one"), members), schedule(unit(9, name="two"), members)
    assert first.evaluation is second.evaluation
    assert first.placements != second.placements


def test_reasons_differ_with_where_an_object_runs():
    """The same cluster is refused to both, each for its own reason."""
    members = fleet("a", cluster("b", taints=[taint("new"), taint("old", "NoExecute")]))
    new, old = schedule(unit(3), members), schedule(unit(3, current={"b": 3}), members)
    assert "new" in new.rejected["b"][1]
    assert "old" in old.rejected["b"][1]


def test_where_katalyst_left_each_object_has_its_own_answer():
    """What runs in a cluster that no longer has the resources stays there; nothing new goes there."""
    amounts = {"cpu": "10", "memory": "64Gi", RECLAIMED_MILLICPU: "1000"}
    members = fleet("a", cluster("b", resources={"allocatable": amounts, "available": amounts}))
    asks = ResourceRequest(scalars={RECLAIMED_MILLICPU: 1})
    new = schedule(unit(name="new", request=asks), members)
    old = schedule(unit(name="old", request=asks, current={"a": None, "b": None}), members)
    assert (new.placements, old.placements) == ({"b": None}, {"a": None, "b": None})


def test_what_is_available_changes_scores_and_not_refusals():
    members = fleet(cluster("a", cpu="100"), cluster("b", cpu="100"), cluster("c", taints=[taint("x")]))
    before = schedule(unit(), members)
    after = schedule(unit(), members.with_reserved({"cpu": {"a": 90_000}}))
    assert before.evaluation.filter_run is after.evaluation.filter_run
    assert before.scores != after.scores
