"""A Job's completions and parallelism, divided: all clusters together do the work once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.plan.replicas.completions import job_parts

NAMES = list("abcdef")


def divided(completions, wanted, held=None):
    return {name: tuple(part) for name, part in job_parts(completions, wanted, held or {}).items()}


def test_completions_follow_parallelism():
    assert divided(100, {"a": 5, "b": 3, "c": 2}) == {"a": (5, 50), "b": (3, 30), "c": (2, 20)}


def test_a_cluster_that_would_have_nothing_to_complete_gets_no_job():
    assert divided(3, {"a": 4, "b": 4, "c": 4, "d": 4}) == {"a": (4, 1), "b": (4, 1), "c": (4, 1)}


def test_completions_stay_where_they_are_when_parallelism_changes():
    held = {"a": 50, "b": 30, "c": 20}
    assert divided(100, {"a": 1, "b": 1, "c": 8}, held) == {"a": (1, 50), "b": (1, 30), "c": (8, 20)}


def test_no_cluster_with_completions_is_left_without_parallelism():
    held = {"a": 50, "b": 30, "c": 20}
    assert divided(100, {"a": 6}, held) == {"a": (4, 50), "b": (1, 30), "c": (1, 20)}
    assert divided(100, {"a": 2}, held) == {"a": (1, 50), "b": (1, 30), "c": (1, 20)}


def test_a_paused_job_is_paused_everywhere():
    assert divided(100, {"a": 0}, {"a": 60, "b": 40}) == {"a": (0, 60), "b": (0, 40)}


def test_parallelism_for_clusters_that_come_too_late_goes_to_those_with_work():
    parts = divided(100, {"a": 5, "b": 5, "d": 5}, {"a": 75, "b": 25})
    assert sum(parallelism for parallelism, _ in parts.values()) == 15
    assert {name: completions for name, (_, completions) in parts.items()} == {"a": 75, "b": 25}


def test_what_a_cluster_took_with_it_is_given_to_new_ones():
    parts = divided(100, {"a": 5, "d": 3, "e": 2}, {"a": 50})
    assert {name: completions for name, (_, completions) in parts.items()} == {"a": 50, "d": 30, "e": 20}


def test_what_nobody_new_can_take_is_missing_and_nothing_is_changed_for_it():
    assert divided(100, {"a": 5, "b": 5}, {"a": 40, "b": 30}) == {"a": (5, 40), "b": (5, 30)}


wishes = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 50), min_size=1)


@given(st.integers(1, 2000), wishes)
@settings(max_examples=300, deadline=None)
def test_a_new_job_completes_exactly_what_is_asked(completions, wanted):
    parts = job_parts(completions, wanted, {})
    if not any(wanted.values()):
        assert parts == {}
        return
    assert sum(part.completions for part in parts.values()) == completions
    assert all(part.completions > 0 and part.parallelism > 0 for part in parts.values())
    at_once = sum(part.parallelism for part in parts.values())
    assert at_once == sum(wanted.values()) or at_once >= completions
    assert at_once <= sum(wanted.values())


@given(st.integers(1, 2000), wishes, wishes, st.sets(st.sampled_from(NAMES)))
@settings(max_examples=300, deadline=None)
def test_completions_never_change_in_a_cluster_that_stays(completions, wanted, later, gone):
    first = {name: part.completions for name, part in job_parts(completions, wanted, {}).items()}
    held = {name: number for name, number in first.items() if name not in gone}
    parts = job_parts(completions, {name: n for name, n in later.items() if name not in gone}, held)
    assert all(parts[name].completions == number for name, number in held.items())
    assert sum(part.completions for part in parts.values()) <= completions
    if any(number and name not in held and name not in gone for name, number in later.items()):
        assert sum(part.completions for part in parts.values()) == completions


@given(st.integers(1, 2000), wishes)
@settings(max_examples=300, deadline=None)
def test_dividing_again_changes_nothing(completions, wanted):
    first = job_parts(completions, wanted, {})
    held = {name: part.completions for name, part in first.items()}
    again = job_parts(completions, {name: part.parallelism for name, part in first.items()}, held)
    assert again == first
