"""What members hold and the control plane does not know, and the other way round."""

from hypothesis import given
from hypothesis import strategies as st

from argosy.plan.copies.orphans import Copy, Missing, Orphan, missing, orphaned
from argosy.plan.explain.snapshot import ObjectKey

WEB, NEW, OLD = (ObjectKey("deployments.apps", "default", name) for name in ("web", "new", "old"))


def test_a_copy_nobody_placed_is_an_orphan() -> None:
    copies = [Copy("b", NEW), Copy("a", NEW), Copy("a", WEB), Copy("b", WEB)]
    assert orphaned(copies, {WEB: {"a"}}) == [
        Orphan(Copy("a", NEW), placed_elsewhere=False),
        Orphan(Copy("b", NEW), placed_elsewhere=False),
        Orphan(Copy("b", WEB), placed_elsewhere=True),
    ]


def test_what_is_placed_and_not_there_is_missing() -> None:
    copies = [Copy("a", WEB)]
    placed = {WEB: ("a", "b"), OLD: ("a", "b"), NEW: ()}
    assert missing(copies, placed, {"a", "b"}) == [Missing(OLD, ("a", "b"), ()), Missing(WEB, ("b",), ("a",))]


def test_a_cluster_that_was_not_looked_at_says_nothing() -> None:
    assert missing([], {OLD: ("a", "b")}, {"a"}) == [Missing(OLD, ("a",), (), ("b",))]
    assert missing([], {OLD: ("a", "b")}, set()) == []


keys = st.sampled_from([WEB, NEW, OLD])
clusters = st.sampled_from("abc")


@given(st.sets(st.tuples(clusters, keys)), st.dictionaries(keys, st.frozensets(clusters)), st.frozensets(clusters))
def test_every_difference_is_told_once(
    held: set[tuple[str, ObjectKey]], placed: dict[ObjectKey, frozenset[str]], looked_at: frozenset[str]
) -> None:
    copies = [Copy(cluster, key) for cluster, key in held if cluster in looked_at]
    orphans = {(each.copy.cluster, each.copy.key) for each in orphaned(copies, placed)}
    gone = {(cluster, each.key) for each in missing(copies, placed, looked_at) for cluster in each.gone}
    wanted = {(cluster, key) for key, where in placed.items() for cluster in where if cluster in looked_at}
    there = {(copy.cluster, copy.key) for copy in copies}
    assert orphans == there - wanted
    assert gone == wanted - there
