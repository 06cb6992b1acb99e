"""How much may be taken away at once."""

from argosy.plan.brake.limits import Limits, exceeded, is_mass_deletion

LIMITS = Limits()
THERE = {"m1": 10, "m2": 10, "m3": 10}


def test_a_share_of_the_fleet_is_too_much_from_three_objects_on():
    assert not exceeded(LIMITS, {"m1": 3, "m2": 3, "m3": 3}, 9, THERE)
    assert exceeded(LIMITS, {"m1": 3, "m2": 3, "m3": 4}, 9, THERE)
    assert not exceeded(LIMITS, {"m1": 1, "m2": 1}, 2, {"m1": 2, "m2": 2})


def test_a_share_of_one_cluster_is_too_much():
    assert not exceeded(LIMITS, {"m1": 3}, 3, THERE)
    assert exceeded(LIMITS, {"m1": 4}, 4, THERE)


def test_two_objects_that_empty_more_than_one_cluster_are_too_much():
    assert exceeded(LIMITS, {"m1": 2, "m2": 2}, 2, {"m1": 2, "m2": 2, "m3": 30})
    assert not exceeded(LIMITS, {"m1": 2}, 2, {"m1": 2, "m2": 2, "m3": 30})
    assert not exceeded(LIMITS, {"m1": 1, "m2": 1}, 1, {"m1": 1, "m2": 1, "m3": 30})


def test_with_a_share_of_everything_nothing_is_held():
    never = Limits(share=1.0)
    assert never.never
    assert not exceeded(never, {"m1": 9}, 9, THERE)


def test_a_deletion_of_most_sources_is_one_from_twenty_on():
    assert is_mass_deletion(LIMITS, 20, 39)
    assert not is_mass_deletion(LIMITS, 20, 40)
    assert not is_mass_deletion(LIMITS, 19, 19)
