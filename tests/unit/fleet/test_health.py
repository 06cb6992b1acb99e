"""Health: the texts users match on, and that a short outage is not shown."""

import msgspec
import pytest

from argosy.api.clusters import ClusterCondition, FederatedCluster
from argosy.fleet.health import (
    Contact,
    Debounce,
    last_contact,
    next_health,
    probe_failed,
    probe_result,
    responding,
    suspected,
    unheard,
    unwatched,
)
from argosy.kube.objects import Metadata

OK, DOWN = probe_result("ok"), probe_result(None)
JOINED = ClusterCondition("Joined", "True", reason="ClusterJoined")
FRESH = msgspec.convert(
    {"metadata": {"name": "m1"}, "status": {"conditions": [msgspec.to_builtins(JOINED)]}}, FederatedCluster
)


def update(cluster, observed, debounce=None, now=0.0, wall_time="t1"):
    return next_health(cluster, observed, debounce, now=now, wall_time=wall_time, threshold=100)


def shown(conditions):
    return {item.type: (item.status, item.reason, item.message) for item in conditions if item.type != "Joined"}


def after(cluster, result):
    return msgspec.structs.replace(
        cluster, status=msgspec.structs.replace(cluster.status, conditions=result.conditions)
    )


READY = after(FRESH, update(FRESH, OK))


@pytest.mark.parametrize(
    ("observed", "ready", "offline"),
    [
        (OK, ("True", "ClusterReady", "Cluster is ready"), ("False", "ClusterReachable", "Cluster is reachable")),
        (
            probe_result("no"),
            ("False", "HealthzNotOK", "/healthz responded without ok"),
            ("False", "ClusterReachable", "Cluster is reachable"),
        ),
        (
            DOWN,
            ("Unknown", "ClusterNotReachable", "Cluster is not reachable"),
            ("True", "ClusterNotReachable", "Cluster is not reachable"),
        ),
        (
            probe_failed(resources="pods: forbidden"),
            ("False", "ClusterResourceCollectionFailed", "Failed to collect cluster resources: pods: forbidden"),
            ("False", "ClusterReachable", "Cluster is reachable"),
        ),
        (
            probe_failed(discovery="timeout"),
            ("False", "ClusterAPIDiscoveryFailed", "Failed to discover cluster API resources: timeout"),
            ("False", "ClusterReachable", "Cluster is reachable"),
        ),
    ],
)
def test_a_fresh_cluster_shows_the_first_observation_at_once(observed, ready, offline):
    result = update(FRESH, observed)
    assert shown(result.conditions) == {"Ready": ready, "Offline": offline}
    assert result.changed
    assert result.conditions[0] == JOINED


def test_the_case_of_ok_does_not_matter():
    assert probe_result("OK") == OK


def test_a_short_outage_is_not_shown():
    down = update(READY, DOWN, Debounce(OK.pair, 0), now=10)
    assert not down.changed
    assert shown(down.conditions) == shown(READY.status.conditions)
    still = update(READY, DOWN, down.debounce, now=109)
    assert not still.changed
    back = update(READY, OK, still.debounce, now=110)
    assert not back.changed
    assert back.debounce == Debounce(OK.pair, 110)


def test_an_outage_that_lasts_is_shown():
    down = update(READY, DOWN, Debounce(OK.pair, 0), now=10)
    lasting = update(READY, DOWN, down.debounce, now=110, wall_time="t2")
    assert lasting.changed
    ready = next(item for item in lasting.conditions if item.type == "Ready")
    assert (ready.status, ready.last_transition_time, ready.last_probe_time) == ("Unknown", "t2", "t2")


def test_flapping_between_failures_starts_the_clock_anew():
    down = update(READY, DOWN, None, now=10)
    other = update(READY, probe_result("no"), down.debounce, now=100)
    assert other.debounce.since == 100
    assert not update(READY, DOWN, other.debounce, now=150).changed


def test_after_a_restart_a_different_observation_waits():
    assert not update(READY, DOWN, None, now=5000).changed


def test_a_probe_is_noted_and_the_transition_time_kept():
    result = update(READY, OK, Debounce(OK.pair, 0), now=30, wall_time="t9")
    ready = next(item for item in result.conditions if item.type == "Ready")
    assert (ready.last_probe_time, ready.last_transition_time) == ("t9", "t1")
    assert not result.changed


def test_a_new_reason_of_the_same_state_is_shown_at_once():
    failing = after(FRESH, update(FRESH, probe_failed(resources="one")))
    result = update(failing, probe_failed(discovery="two"), Debounce(("False", "False"), 0), now=1)
    assert shown(result.conditions)["Ready"][1] == "ClusterAPIDiscoveryFailed"


def test_other_conditions_stay():
    bare = FederatedCluster(metadata=Metadata(name="m"))
    assert [item.type for item in update(bare, OK).conditions] == ["Offline", "Ready"]
    assert [item.type for item in update(READY, OK).conditions] == ["Joined", "Offline", "Ready"]


def told(cluster, contact, wall_time="t9"):
    """Status, since when, and message of Responding; None if there is no such condition."""
    found = [
        item for item in responding(cluster, cluster.status.conditions, contact, wall_time) if item.type == "Responding"
    ]
    return (found[0].status, found[0].last_transition_time, found[0].message) if found else None


def silent(cluster, contact):
    conditions = responding(cluster, cluster.status.conditions, contact, "t5")
    return msgspec.structs.replace(cluster, status=msgspec.structs.replace(cluster.status, conditions=conditions))


def test_a_member_that_was_always_heard_of_has_no_condition_about_it():
    assert told(READY, Contact("t3")) is None


def test_one_failure_is_not_told_and_the_second_is_with_the_time_it_was_heard_of_last():
    first = unheard(Contact("t3"))
    assert told(READY, first) is None
    second = unheard(first, "the endpoint is gone")
    assert told(READY, second) == ("False", "t3", "not heard of since t3: the endpoint is gone")


def test_a_request_that_failed_counts_as_one_failure_however_many_there_were():
    suspicious = suspected(suspected(Contact("t3")))
    assert told(READY, suspicious) is None
    assert told(READY, unheard(suspicious)) == ("False", "t3", "not heard of since t3")


def test_it_is_believed_at_once_when_it_is_heard_of_again():
    cluster = silent(READY, Contact("t3", 2))
    assert told(cluster, Contact("t9")) == ("True", "t9", "The member answers")
    well = silent(cluster, Contact("t6"))
    assert told(well, Contact("t9")) == ("True", "t5", "The member answers"), "no news"
    assert told(well, unheard(Contact("t9"))) == ("True", "t5", "The member answers"), "nor is a single failure"


def test_watches_that_fail_are_silence_and_the_first_time_counts():
    lost = unwatched(Contact("t8"), "t2")
    assert told(READY, lost) == ("False", "t2", "not heard of since t2: it answers, but watches on it fail")
    assert unwatched(lost, "t4").heard == "t2"


@pytest.mark.parametrize(
    ("status", "contact"),
    [
        ({}, Contact("now")),
        ({"conditions": [{"type": "Joined", "status": "True", "lastTransitionTime": "t1"}]}, Contact("t1")),
        ({"lastHeardTime": "t2"}, Contact("t2")),
        (
            {
                "lastHeardTime": "t2",
                "conditions": [{"type": "Responding", "status": "False", "lastTransitionTime": "t1"}],
            },
            Contact("t1", 2),
        ),
    ],
)
def test_after_a_restart_the_stored_status_tells_when_it_was_heard_of(status, contact):
    cluster = msgspec.convert({"metadata": {"name": "m1"}, "status": status}, FederatedCluster)
    assert last_contact(cluster, "now") == contact


def test_what_waits_to_be_published_is_told():
    assert update(READY, DOWN, Debounce(OK.pair, 0), now=10).pending
    assert not update(READY, OK, Debounce(OK.pair, 0), now=10).pending
    assert not update(READY, DOWN, Debounce(DOWN.pair, 0), now=100).pending
