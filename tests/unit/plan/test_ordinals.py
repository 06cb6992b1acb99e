"""Ordinals: each in one cluster, and in the same one as long as that cluster may run it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas.ordinals import Range, ranges

NAMES = list("abcdef")


def divided(total, wanted, held=None, *, first=0, room=None, most_clusters=None):
    parts = ranges(Range(first, total), held or {}, wanted, room or {}, most_clusters=most_clusters)
    return {name: tuple(part) for name, part in parts.items()}


def test_a_new_one_is_divided_in_the_order_of_names():
    assert divided(9, {"b": 4, "a": 3, "c": 2}) == {"a": (0, 3), "b": (3, 4), "c": (7, 2)}


def test_the_sources_own_start_is_where_ordinals_begin():
    assert divided(4, {"a": 2, "b": 2}, first=10) == {"a": (10, 2), "b": (12, 2)}


def test_growth_extends_the_last_range():
    held = {"a": Range(0, 5), "b": Range(5, 5)}
    assert divided(12, {"a": 6, "b": 6}, held) == {"a": (0, 5), "b": (5, 7)}


def test_growth_opens_a_new_range_where_one_is_wanted():
    held = {"a": Range(0, 5), "b": Range(5, 5)}
    assert divided(12, {"a": 5, "b": 5, "c": 2}, held) == {"a": (0, 5), "b": (5, 5), "c": (10, 2)}


def test_shrinking_takes_the_highest_ordinals_whatever_the_planner_would_do():
    held = {"a": Range(0, 5), "b": Range(5, 5)}
    assert divided(6, {"a": 3, "b": 3}, held) == {"a": (0, 5), "b": (5, 1)}
    assert divided(4, {"a": 2, "b": 2}, held) == {"a": (0, 4)}


def test_a_planner_that_would_rebalance_moves_nothing():
    held = {"a": Range(0, 9), "b": Range(9, 1)}
    assert divided(10, {"a": 5, "b": 5}, held) == {"a": (0, 9), "b": (9, 1)}


def test_what_a_cluster_leaves_behind_is_taken_over_by_a_new_one():
    held = {"a": Range(0, 3), "c": Range(6, 3)}
    assert divided(9, {"a": 3, "c": 3, "d": 3}, held) == {"a": (0, 3), "c": (6, 3), "d": (3, 3)}


def test_what_a_cluster_leaves_behind_is_taken_over_by_its_neighbours():
    held = {"a": Range(0, 3), "c": Range(6, 3)}
    assert divided(9, {"a": 5, "c": 4}, held) == {"a": (0, 5), "c": (5, 4)}


def test_a_cluster_without_room_leaves_ordinals_to_the_others():
    held = {"a": Range(0, 3), "b": Range(3, 3)}
    assert divided(9, {"a": 4, "b": 5, "c": 0}, held, room={"b": 4}) == {"a": (0, 3), "b": (3, 4), "c": (7, 2)}


def test_no_more_clusters_are_opened_than_the_policy_allows():
    held = {"a": Range(0, 3), "b": Range(3, 3)}
    assert divided(9, {"c": 5, "d": 4}, held, most_clusters=2) == {"a": (0, 3), "b": (3, 6)}


def test_ordinals_that_nobody_may_run_are_missing_and_nothing_else():
    assert divided(9, {"a": 9}, room={"a": 4}) == {"a": (0, 4)}


#: Made once: making strategies takes longer than drawing from them.
SOME = st.lists(st.sampled_from(NAMES), unique=True, min_size=1)
WISHES = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), min_size=1)
ROOMS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 12))


@st.composite
def worlds(draw):
    """What is asked now, what was divided before among clusters some of which are gone, and any planner's wish."""
    held, at = {}, 0
    for name in draw(SOME):
        size = draw(st.integers(0, 6))
        if size:
            held[name] = Range(at, size)
        at += size
    staying = {name: part for name, part in held.items() if draw(st.booleans())}
    return Range(draw(st.integers(0, 3)), draw(st.integers(0, 40))), staying, draw(WISHES), draw(ROOMS)


def owners(parts):
    return {ordinal: name for name, part in parts.items() for ordinal in range(part.start, part.end)}


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_every_ordinal_is_in_one_cluster_and_none_changes_it(world):
    asked, held, wanted, room = world
    parts = ranges(asked, held, wanted, room)
    now = owners(parts)
    assert len(now) == sum(part.replicas for part in parts.values())
    assert set(now) <= set(range(asked.start, asked.end))
    before = owners(held)
    assert all(now[ordinal] == name for ordinal, name in before.items() if asked.start <= ordinal < asked.end)
    assert all(part.replicas > 0 for part in parts.values())


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_nobody_grows_beyond_its_room(world):
    asked, held, wanted, room = world
    for name, part in ranges(asked, held, wanted, room).items():
        assert part.replicas <= max(room.get(name, part.replicas), held.get(name, Range(0, 0)).replicas)


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_ordinals_are_missing_only_for_want_of_room(world):
    asked, held, wanted, _ = world
    assert set(owners(ranges(asked, held, wanted, {}))) == set(range(asked.start, asked.end))


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_dividing_again_changes_nothing(world):
    asked, held, wanted, room = world
    parts = ranges(asked, held, wanted, room)
    assert ranges(asked, parts, wanted, room) == parts


@given(worlds(), st.integers(0, 40))
@settings(max_examples=200, deadline=None)
def test_growing_and_shrinking_keep_every_ordinal_that_stays(world, total):
    asked, held, wanted, _ = world
    before = ranges(asked, held, wanted, {})
    after = owners(ranges(Range(asked.start, total), before, wanted, {}))
    assert all(after[ordinal] == name for ordinal, name in owners(before).items() if ordinal < asked.start + total)
