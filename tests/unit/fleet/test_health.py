"""Health: the texts users match on, and that a short outage is not shown."""

import msgspec
import pytest

from argosy.api.clusters import ClusterCondition, FederatedCluster
from argosy.fleet.health import Debounce, next_health, probe_failed, probe_result
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
