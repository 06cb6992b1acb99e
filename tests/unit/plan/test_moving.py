"""One pass after another over a workload that is moved: by a wish, by pods that fit nowhere, by a cluster that fails."""

import datetime
from typing import Any

from argosy.api import keys
from argosy.fleet.snapshot import Fleet
from argosy.plan.copies.placement import to_be_removed
from argosy.plan.failover.failback import failback_of
from argosy.plan.scheduling.unit import AutoMigrationInfo
from tests.unit.plan.worlds import World, cluster, deployment, fleet, policy

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
EQUAL = [{"cluster": name, "preferences": {"weight": 1}} for name in ("m1", "m2", "m3")]
FOLLOWS_WEIGHTS = {
    "rescheduleWhen": {"policyContentChanged": True},
    "replicaRescheduling": {"avoidDisruption": False},
}


def world(annotations: dict[str, str] | None = None, by: dict[str, str] | None = None, **spec: Any) -> World:
    rules = {"placement": EQUAL, "reschedulePolicy": FOLLOWS_WEIGHTS, **spec}
    return World(policy=policy(annotations=by, **rules), source=deployment(metadata={"annotations": annotations or {}}))


def failing(name: str) -> Fleet:
    taint = {"key": keys.UNREADY_TAINT, "effect": "NoExecute"}
    return Fleet.of(cluster(each, taints=[taint] if each == name else None) for each in ("m1", "m2", "m3"))


def test_a_wish_ends_by_itself_and_is_told_once() -> None:
    wish = '{"workloadMigrations":[{"cluster":"m3","validUntil":"2026-01-01T13:00:00Z"}]}'
    moved = world({keys.MIGRATION_CONFIGURATION: wish})
    moved.run(now=NOW)
    assert moved.replicas == {"m1": 3, "m2": 3}
    assert moved.run(now=NOW + HOUR / 2).object is None
    moved.run(now=NOW + HOUR)
    assert moved.replicas == {"m1": 2, "m2": 2, "m3": 2}
    assert moved.annotations[keys.APPLIED_MIGRATION_CONFIGURATION] == "{}"
    assert moved.run(now=NOW + 2 * HOUR).object is None


def test_a_wish_that_cannot_be_read_is_told() -> None:
    told = world({keys.MIGRATION_CONFIGURATION: "nonsense"}).run(now=NOW).notes
    assert [note.reason for note in told if note.type == "Warning"] == ["ParseMigrationConfiguration"]


def test_what_a_member_cannot_run_goes_elsewhere_and_stays_there() -> None:
    moved = World(policy=policy(placement=EQUAL, autoMigration={}))
    moved.run()
    assert moved.annotations[keys.POD_UNSCHEDULABLE_THRESHOLD] == "1m0s"
    told = moved.run(migration=AutoMigrationInfo({"m1": 0}, {"m1": 0, "m2": 2, "m3": 2})).notes
    assert "AutoMigrationInfoUpdated" in [note.reason for note in told]
    assert moved.replicas == {"m2": 3, "m3": 3}
    moved.run(migration=AutoMigrationInfo({}, {"m2": 3, "m3": 3}))
    assert moved.replicas == {"m2": 3, "m3": 3}
    assert moved.run(migration=None).object is None, "not knowing leaves what is stored"
    moved.run(policy=policy(placement=EQUAL), migration=AutoMigrationInfo({"m2": 0}))
    assert keys.AUTO_MIGRATION_INFO not in moved.annotations
    assert keys.POD_UNSCHEDULABLE_THRESHOLD not in moved.annotations


def test_a_failed_cluster_is_left_and_come_back_to_step_by_step() -> None:
    moved = world(by={keys.FAILBACK_REPLICAS: "1"})
    moved.run()
    moved.run(fleet=failing("m3"))
    assert moved.replicas == {"m1": 3, "m2": 3}
    assert to_be_removed(moved.annotations) == ["m3"]
    assert failback_of(moved.annotations).left == ("m3",)
    steps = []
    for _ in range(8):
        moved.run(fleet=fleet(), available=moved.replicas)
        steps.append(moved.replicas)
    assert [each.get("m3", 0) for each in steps[:3]] == [1, 2, 2]
    assert all(6 <= sum(each.values()) <= 7 for each in steps)
    assert steps[-1] == {"m1": 2, "m2": 2, "m3": 2}
    assert keys.FAILBACK not in moved.annotations


def test_coming_back_waits_for_what_is_not_available() -> None:
    moved = world(by={keys.FAILBACK_REPLICAS: "1"})
    moved.run()
    moved.run(fleet=failing("m3"))
    moved.run(fleet=fleet(), available=moved.replicas)
    assert moved.replicas == {"m1": 3, "m2": 3, "m3": 1}
    assert moved.run(available={"m1": 3, "m2": 3, "m3": 0}).object is None


def test_who_tolerates_the_taint_stays() -> None:
    moved = world(tolerations=[{"key": keys.UNREADY_TAINT, "operator": "Exists"}])
    moved.run()
    moved.run(fleet=failing("m3"))
    assert moved.replicas == {"m1": 2, "m2": 2, "m3": 2}


def test_what_is_copied_everywhere_stays_where_it_is() -> None:
    moved = world(schedulingMode="Duplicate")
    moved.run()
    moved.run(fleet=failing("m3"))
    assert sorted(moved.typed.placed) == ["m1", "m2", "m3"]
