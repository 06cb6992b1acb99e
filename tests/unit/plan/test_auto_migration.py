"""Auto migration: what pods that wait for a node say about their cluster."""

import datetime

from hypothesis import given
from hypothesis import strategies as st

from argosy.fleet.pods.replicasets import Pods
from argosy.plan.failover.auto_migration import (
    Estimate,
    estimate,
    info_of,
    migration_info,
    relevant,
    text_of,
    threshold_of,
)
from argosy.plan.scheduling.unit import AutoMigrationInfo

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


def pods(scheduled: int, *waiting: int) -> Pods:
    """So many with a node, and the others waiting for so many seconds each."""
    since = [(NOW - datetime.timedelta(seconds=each)).strftime("%Y-%m-%dT%H:%M:%SZ") for each in waiting]
    return Pods(scheduled + len(since), scheduled, {str(number): each for number, each in enumerate(since)})


def seen(desired: int, found: Pods | None, replicas: int = 1, ready: int = 0) -> Estimate:
    return estimate(desired, replicas, ready, found, NOW, MINUTE)


def test_a_member_whose_replicas_are_all_ready_has_no_limit_whatever_its_pods_say() -> None:
    assert seen(5, pods(1, 300), replicas=4, ready=4) == Estimate(4)


def test_pods_that_waited_too_long_are_what_a_member_cannot_run() -> None:
    assert seen(5, pods(3, 61, 60)) == Estimate(3, 3, waiting=2)
    assert seen(5, pods(0, *[90] * 5)) == Estimate(0, 0, waiting=5)


def test_pods_that_may_still_wait_say_when_to_look_again() -> None:
    assert seen(5, pods(3, 50, 20)) == Estimate(3, None, datetime.timedelta(seconds=10), 2)
    assert seen(5, pods(3, 90, 45)) == Estimate(3, 4, datetime.timedelta(seconds=15), 2)


def test_pods_that_are_not_made_yet_count_as_run() -> None:
    assert seen(5, pods(1, 90)) == Estimate(1, 4, waiting=1)
    assert seen(5, None) == Estimate(0)


def test_pods_beyond_the_wanted_ones_are_not_missed() -> None:
    assert seen(3, pods(3, 90)) == Estimate(3, waiting=1), "a pod more than wanted, for a roll-out, may wait"


def test_a_pod_that_does_not_say_since_when_it_waits_has_just_begun() -> None:
    assert seen(1, Pods(1, 0, {"p": ""})) == Estimate(0, None, MINUTE, 1)


FULL_A = AutoMigrationInfo({"a": 2}, {"a": 2, "b": 4})


def test_what_is_seen_is_what_scheduling_is_told() -> None:
    estimates = {"b": Estimate(4), "a": Estimate(2, 2)}
    assert migration_info(estimates, AutoMigrationInfo(), ()) == FULL_A


def test_a_cluster_that_cannot_be_seen_keeps_what_was_known_of_it() -> None:
    assert migration_info({"a": None, "b": Estimate(4)}, FULL_A, ()) == FULL_A
    assert migration_info({"c": None}, AutoMigrationInfo(), ()) == AutoMigrationInfo()


def test_an_estimate_stays_while_the_cluster_has_no_room_for_one_more() -> None:
    after = {"a": Estimate(2), "b": Estimate(6)}
    assert migration_info(after, FULL_A, {"a"}).estimated_capacity == {"a": 2}
    assert migration_info(after, FULL_A, ()).estimated_capacity == {}, "there is room again"
    assert migration_info({"b": Estimate(8)}, FULL_A, {"a"}).estimated_capacity == {"a": 2}, "left, and still full"


def test_an_estimate_that_proved_too_small_grows_or_goes() -> None:
    assert migration_info({"a": Estimate(3)}, FULL_A, {"a"}).estimated_capacity == {}
    assert migration_info({"a": Estimate(3, 3)}, FULL_A, {"a"}).estimated_capacity == {"a": 3}


def test_an_estimate_of_a_full_cluster_outlives_a_copy_that_is_older_than_its_pods() -> None:
    gone = seen(4, pods(2), replicas=4, ready=2)
    assert migration_info({"a": gone}, FULL_A, {"a"}).estimated_capacity == {"a": 2}, "all that waited are gone"
    going = seen(4, pods(2, 90), replicas=4, ready=2)
    assert going.capacity == 3
    assert migration_info({"a": going}, FULL_A, {"a"}).estimated_capacity == {"a": 2}, "one of them is left"
    assert migration_info({"a": going}, FULL_A, ()).estimated_capacity == {"a": 3}, "there is room again, and one waits"


def test_texts_are_short_and_nonsense_is_empty() -> None:
    assert text_of(FULL_A) == '{"estimatedCapacity":{"a":2},"scheduledReplicas":{"a":2,"b":4}}'
    assert info_of(text_of(FULL_A)) == FULL_A
    assert text_of(AutoMigrationInfo()) == "{}"
    assert info_of("nonsense") == info_of(None) == AutoMigrationInfo()
    assert threshold_of("1m0s") == MINUTE
    assert threshold_of("soon") is threshold_of(None) is None


def test_where_pods_have_a_node_matters_to_bin_packing_alone() -> None:
    moved = text_of(AutoMigrationInfo({"a": 2}, {"a": 2, "b": 5}))
    assert relevant(moved, "Spread") == relevant(text_of(FULL_A), "Spread")
    assert relevant(moved, "Binpack") != relevant(text_of(FULL_A), "Binpack")
    assert relevant('{"scheduledReplicas":{"a":1}}', "Spread") == relevant(None, "Spread") == ""


@given(st.integers(0, 20), st.integers(0, 20), st.lists(st.integers(0, 200), max_size=20))
def test_a_capacity_is_below_what_is_wanted_and_never_negative(desired, scheduled, waiting) -> None:
    found = seen(desired, pods(scheduled, *waiting))
    assert found.capacity is None or 0 <= found.capacity < desired
    if found.capacity is not None:
        assert found.capacity >= min(desired, scheduled + sum(each < 60 for each in waiting)) or scheduled > desired
