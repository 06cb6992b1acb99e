"""Facts of the fleet: which tables a change leaves shared with the snapshot before, and which it makes anew."""

import numpy as np

from argosy.fleet.columns import Amounts
from argosy.fleet.facts import Facts
from argosy.fleet.member import Member, member_of
from argosy.fleet.snapshot import Available
from argosy.fleet.workloads import Workloads
from tests.unit.plan.scheduling import cluster, fleet, taint


def facts_of(*members: Member) -> Facts:
    return Facts({member.name: member for member in members})


def test_a_change_of_what_is_available_leaves_the_same_facts():
    before, after = member_of(cluster("a")), member_of(cluster("a", free="1"))
    facts = facts_of(before)
    assert facts.replaced(before, after) is facts


def test_a_change_leaves_the_tables_that_do_not_read_it():
    before, after = member_of(cluster("a")), member_of(cluster("a", ready=False))
    facts = facts_of(before, member_of(cluster("b")))
    kept = facts.names, facts.taints, facts.hashes, facts.labelled("zone"), facts.allocatable, facts.terminating
    assert facts.ready.all()
    later = facts.replaced(before, after)
    now = later.names, later.taints, later.hashes, later.labelled("zone"), later.allocatable, later.terminating
    assert all(one is other for one, other in zip(kept, now, strict=True))
    assert later.ready.tolist() == [False, True]
    assert later.tainted_or_unready.tolist() == [0]
    assert facts.ready.all()


def test_answers_that_rest_on_all_facts_are_asked_for_anew():
    before, after = member_of(cluster("a")), member_of(cluster("a", taints=[taint("t")]))
    facts = facts_of(before)
    assert facts.answers.recall("who", lambda: "a") == "a"
    assert facts.replaced(before, after).answers.recall("who", lambda: "nobody") == "nobody"


def test_some_of_the_members_follow_a_change_of_one_of_them():
    before, after = member_of(cluster("a")), member_of(cluster("a", taints=[taint("t")]))
    facts = facts_of(before, member_of(cluster("b", joined=False)))
    labels = facts.joined_only().labelled("zone")
    later = facts.replaced(before, after).joined_only()
    assert later.names == ("a",)
    assert later.tainted_or_unready.tolist() == [0]
    assert later.labelled("zone") is labels


def test_who_joins_or_leaves_changes_who_is_joined():
    before, after = member_of(cluster("b", joined=False)), member_of(cluster("b"))
    facts = facts_of(member_of(cluster("a")), before)
    assert facts.joined_only().names == ("a",)
    assert facts.replaced(before, after).joined_only().names == ("a", "b")


def test_where_all_have_joined_nothing_is_made_anew():
    facts = facts_of(member_of(cluster("a")))
    assert facts.joined_only() is facts
    assert facts.discovered_only() is facts


def test_amounts_of_some_members_are_those_of_their_rows():
    members = [member_of(cluster(name, free=free)) for name, free in (("a", "1"), ("b", "2"), ("c", "3"))]
    available = Available({member.name: member for member in members})
    assert available.only(available.stale.nonzero()[0]).amounts.amount("cpu").tolist() == []
    some = available.with_amounts(Amounts([{"cpu": 7}, {"cpu": 8}, {"cpu": 9}])).only(np.array([0, 2]))
    assert list(some.members) == ["a", "c"]
    assert some.amounts.amount("cpu").tolist() == [7, 9]


def test_all_snapshots_with_the_same_facts_share_their_answers():
    members = fleet("a", cluster("b", joined=False))
    answer = members.remembered("who", lambda: object(), "facts")
    for other in (
        members.with_reserved({"cpu": {"a": 1}}),
        members.with_stale("a", True),
        members.with_cluster(cluster("a", free="1")),
        members.with_workloads(Workloads()),
    ):
        assert other.same_facts(members)
        assert other.joined_only().same_facts(members.joined_only())
        assert other.remembered("who", lambda: object(), "facts") is answer
    assert not members.with_cluster(cluster("a", ready=False)).same_facts(members)
