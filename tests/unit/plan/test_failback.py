"""How replicas come back to clusters that had failed."""

from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.fleet.snapshot import Fleet
from argosy.plan.failover.failback import Failback, failback_of, step, step_size, towards, with_failback
from tests.unit.plan.scheduling import cluster, fleet
from tests.unit.plan.worlds import policy

TAINT = {"key": keys.UNREADY_TAINT, "effect": "NoExecute"}


def test_the_record_survives_and_nonsense_is_an_empty_one() -> None:
    failback = Failback(("a",), {"a": 1, "b": 2})
    annotations = with_failback({"x": "y"}, failback)
    assert failback_of(annotations) == failback
    assert with_failback(annotations, Failback()) == {"x": "y"}
    assert failback_of({keys.FAILBACK: "[1]"}) == Failback()


def test_a_tenth_comes_back_at_a_time_unless_the_policy_says_otherwise() -> None:
    assert [step_size({}, desired) for desired in (0, 1, 10, 12, 19, 20, 100)] == [1, 1, 1, 1, 1, 2, 10]
    assert step_size({keys.FAILBACK_REPLICAS: "4"}, 100) == 4
    for nonsense in ("", "0", "-1", "many", "9" * 30):
        assert step_size({keys.FAILBACK_REPLICAS: nonsense}, 20) == 2


def test_replicas_come_back_a_few_at_a_time() -> None:
    target = {"a": 4, "b": 4}
    assert step({"b": 8}, target, {"a"}, {"b": 8}, 2) == {"a": 2, "b": 8}
    assert step({"a": 2, "b": 8}, target, {"a"}, {"a": 0, "b": 8}, 2) == {"a": 2, "b": 8}, "waits for the first two"
    assert step({"a": 2, "b": 8}, target, {"a"}, {"a": 1, "b": 8}, 2) == {"a": 3, "b": 7}
    assert step({"a": 4, "b": 6}, target, {"a"}, {"a": 4, "b": 6}, 2) == target


def test_a_cluster_that_fails_meanwhile_is_left_at_once() -> None:
    assert step({"a": 2, "b": 6, "c": 2}, {"a": 4, "b": 6}, {"a"}, {"a": 2, "b": 6, "c": 0}, 2) == {"a": 4, "b": 6}


def test_nothing_is_stopped_in_a_cluster_that_cannot_be_seen() -> None:
    assert step({"a": 1, "b": 5, "c": 4}, {"a": 3, "b": 3, "c": 3}, {"a"}, {"a": 1, "c": 4}, 1) == {
        "a": 2,
        "b": 5,
        "c": 4,
    }


def fleet_with(*failed: str) -> Fleet:
    return fleet(*(cluster(name, taints=[TAINT] if name in failed else None) for name in ("a", "b", "c")))


def test_a_cluster_that_is_left_because_it_failed_is_on_record() -> None:
    after = towards({"b": 6}, {"a": 3, "b": 3}, {}, policy=policy(), fleet=fleet_with("a"), available=None)
    assert after.placements == {"b": 6}
    assert failback_of(after.annotations) == Failback(("a",))


def test_a_step_back_leaves_the_rest_of_the_way_on_record() -> None:
    left = with_failback({}, Failback(("a",)))
    given = {"policy": policy(annotations={keys.FAILBACK_REPLICAS: "1"}), "fleet": fleet_with()}
    target: dict[str, int | None] = {"a": 2, "b": 4}
    first = towards(target, {"b": 6}, left, available={"b": 6}, **given)
    assert first.placements == {"a": 1, "b": 6}
    assert failback_of(first.annotations) == Failback(("a",), {"a": 2, "b": 4})
    last = towards(target, {"a": 2, "b": 5}, first.annotations, available={"a": 2, "b": 5}, **given)
    assert last.placements == target
    assert last.annotations == {}


def test_without_word_of_what_is_available_all_come_back_at_once() -> None:
    left = with_failback({}, Failback(("a",)))
    after = towards({"a": 3, "b": 3}, {"b": 6}, left, policy=policy(), fleet=fleet_with(), available=None)
    assert after == ({"a": 3, "b": 3}, {})


def test_what_is_duplicated_comes_back_at_once() -> None:
    left = with_failback({}, Failback(("a",)))
    both = {"a": None, "b": None}
    after = towards(both, {"b": None}, left, policy=policy(), fleet=fleet_with(), available={"b": 1})
    assert after == (both, {})


def test_a_cluster_that_fails_again_is_not_come_back_to() -> None:
    left = with_failback({}, Failback(("a",), {"a": 3, "b": 3}))
    after = towards({"b": 6}, {"a": 1, "b": 6}, left, policy=policy(), fleet=fleet_with("a"), available={"b": 6})
    assert after.placements == {"b": 6}
    assert failback_of(after.annotations) == Failback(("a",))


NAMES = ("a", "b", "c", "d")
divisions = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 30), min_size=1)


@given(divisions, divisions, st.sets(st.sampled_from(NAMES)), st.integers(1, 7), st.data())
def test_coming_back_never_serves_less_than_it_could_and_starts_no_more_than_allowed(
    current, target, returning, most, data
) -> None:
    available = {name: data.draw(st.integers(0, number)) for name, number in current.items()}
    seen = {name: number for name, number in available.items() if data.draw(st.booleans())}
    following = step(current, target, returning, seen, most)
    assert all(following.get(name, 0) >= current[name] for name in current.keys() - seen.keys())
    serving = sum(min(available.get(name, 0), number) for name, number in following.items())
    assert serving >= min(sum(available.values()), sum(target.values()))
    starting = sum(max(n - available.get(name, 0), 0) for name, n in following.items() if name in returning)
    already = sum(current[name] - available[name] for name in current if name in returning)
    assert starting <= max(most, already)


@given(divisions, divisions, st.sets(st.sampled_from(NAMES)), st.integers(1, 7))
def test_coming_back_arrives_when_everything_becomes_available(current, target, returning, most) -> None:
    division = dict(current)
    for _ in range(400):
        following = step(division, target, returning, division, most)
        if following == division:
            break
        division = following
    assert division == target
