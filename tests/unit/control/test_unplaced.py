"""Objects that wait for room are woken once for many changes, and never miss one."""

from argosy.control.scheduling.unplaced import Unplaced


def waiting(*keys: str) -> Unplaced[str]:
    unplaced: Unplaced[str] = Unplaced()
    for key in keys:
        unplaced.begin(key)
        unplaced.add(key)
    return unplaced


def test_many_changes_wake_each_once() -> None:
    unplaced = waiting("a", "b")
    assert unplaced.wake() == ["a", "b"]
    assert unplaced.wake() == []


def test_who_was_decided_again_is_woken_again() -> None:
    unplaced = waiting("a", "b")
    unplaced.wake()
    unplaced.begin("b")
    unplaced.add("b")
    assert unplaced.wake() == ["b"]


def test_a_change_during_a_decision_is_not_missed() -> None:
    unplaced = waiting("a")
    unplaced.wake()
    unplaced.begin("a")
    assert unplaced.wake() == ["a"]


def test_who_is_placed_is_left_alone() -> None:
    unplaced = waiting("a", "b")
    unplaced.discard("a")
    assert "a" not in unplaced
    assert "b" in unplaced
    assert unplaced.wake() == ["b"]
    unplaced.begin("a")
    assert unplaced.wake() == []
