"""Which version the store had a while ago."""

from argosy.server.lifecycle.ages import Ages


def test_a_version_is_old_when_its_note_is_and_only_once() -> None:
    ages = Ages(seconds=10)
    assert ages.note(0, 100) == 0
    assert ages.note(9, 105) == 0
    assert ages.note(10, 110) == 100
    assert ages.note(11, 110) == 0
    assert ages.note(25, 120) == 110, "the newest of all that are"
