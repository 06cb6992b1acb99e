"""Failed clusters, and workloads that leave them."""

import datetime
import json
from typing import Any

from argosy.api import keys
from argosy.api.clusters import ClusterCondition, ClusterSpec, ClusterStatus, FederatedCluster, Taint
from argosy.kube.objects import Metadata
from argosy.plan.failover.failover import Rules, evacuated, rank, unready_of, verdict
from argosy.plan.failover.pacing import Pacing, are_too_many, most_that_leave, of_shard
from tests.unit.plan.worlds import World, policy

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
RULES = Rules(failover_after=60, failback_after=300)
OURS = Taint(keys.UNREADY_TAINT, "NoExecute", time_added="2026-01-01T12:00:00Z")
THEIRS = Taint("dedicated", "NoSchedule", "gpu")


def cluster(
    ready: str = "True",
    seconds: int = 0,
    taints: tuple[Taint, ...] = (),
    annotations: dict[str, str] | None = None,
    joined: str = "True",
) -> FederatedCluster:
    since = (NOW - datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = (ClusterCondition("Joined", joined), ClusterCondition("Ready", ready, since, since))
    return FederatedCluster(
        Metadata(name="c", annotations=annotations or {}), ClusterSpec(taints=taints), ClusterStatus(conditions)
    )


def test_a_cluster_that_is_unready_for_long_is_tainted_and_keeps_the_taints_of_others() -> None:
    assert verdict(cluster("Unknown", 60, (THEIRS,)), RULES, NOW, watched=9999, doubt=False).taints == (THEIRS, OURS)
    assert verdict(cluster("False", 61), RULES, NOW, watched=9999, doubt=False).taints == (OURS,)


def test_before_that_it_is_looked_at_again_in_time() -> None:
    found = verdict(cluster("Unknown", 45), RULES, NOW, watched=9999, doubt=False)
    assert (found.taints, found.look_again) == (None, 15)


def test_a_cluster_that_is_ready_for_long_is_freed() -> None:
    assert verdict(cluster("True", 299, (OURS,)), RULES, NOW, watched=9999, doubt=False).look_again == 1
    assert verdict(cluster("True", 300, (THEIRS, OURS)), RULES, NOW, watched=9999, doubt=False).taints == (THEIRS,)


def test_nothing_is_done_to_what_is_as_it_should_be() -> None:
    for settled in (cluster("True", 999), cluster("Unknown", 999, (OURS,)), cluster("Unknown", 999, joined="False")):
        assert verdict(settled, RULES, NOW, watched=9999, doubt=False).taints is None
        assert verdict(settled, RULES, NOW, watched=9999, doubt=False).look_again is None


def test_failover_is_off_unless_somebody_asks_for_it() -> None:
    assert verdict(cluster("Unknown", 9999), Rules(), NOW, watched=9999, doubt=False).taints is None
    asked = cluster("Unknown", 30, annotations={keys.FAILOVER_AFTER: "30s"})
    assert verdict(asked, Rules(), NOW, watched=9999, doubt=False).taints == (OURS,)
    refused = cluster("Unknown", 9999, annotations={keys.FAILOVER_AFTER: "never"})
    assert verdict(refused, RULES, NOW, watched=9999, doubt=False).taints is None
    nonsense = cluster("Unknown", 59, annotations={keys.FAILOVER_AFTER: "soon"})
    assert verdict(nonsense, RULES, NOW, watched=9999, doubt=False).look_again == 1


def test_time_in_which_nobody_looked_does_not_count() -> None:
    assert verdict(cluster("Unknown", 3600), RULES, NOW, watched=0.0, doubt=False).look_again == 60
    assert verdict(cluster("Unknown", 3600), RULES, NOW, watched=60.0, doubt=False).taints == (OURS,)
    assert verdict(cluster("True", 300, (OURS,)), RULES, NOW, watched=0.0, doubt=False).taints == (), (
        "in its favour it does"
    )


def test_with_doubt_nobody_is_tainted_and_who_recovered_is_freed() -> None:
    assert verdict(cluster("Unknown", 9999), RULES, NOW, watched=9999, doubt=True).taints is None
    assert verdict(cluster("True", 9999, (OURS,)), RULES, NOW, watched=9999, doubt=True).taints == ()


def test_doubt_begins_with_more_than_half_of_the_joined_clusters_or_a_share_of_ones_own() -> None:
    up, down, stranger = cluster("True"), cluster("Unknown"), cluster("Unknown", joined="False")

    def doubtful(*clusters: FederatedCluster, share: float = 0.5) -> bool:
        return are_too_many(Pacing(unready=share), *unready_of(clusters))

    assert not doubtful()
    assert not doubtful(up, down, stranger)
    assert doubtful(up, down, down)
    assert doubtful(down)
    assert not doubtful(up, down, down, share=0.7)
    assert not doubtful(down, share=1)
    assert doubtful(up, up, down, share=0.3)


def test_divided_replicas_leave_a_failed_cluster_as_far_as_others_take_them() -> None:
    current = {"a": 5, "b": 5, "c": 5}
    assert evacuated(current, {"b": 8, "c": 7}, {"a"}, 15) == ({"b": 8, "c": 7}, False)
    assert evacuated(current, {"b": 6, "c": 6}, {"a"}, 15) == ({"a": 3, "b": 6, "c": 6}, True)
    assert evacuated(current, {"b": 5, "c": 5}, {"a"}, 15) == ({"a": 5, "b": 5, "c": 5}, True)
    left = evacuated(current, {"b": 5, "c": 5}, set(), 15)
    assert left == ({"b": 5, "c": 5}, False), "who did not fail was left for other reasons"


def test_a_duplicated_copy_leaves_a_failed_cluster_only_for_another_one() -> None:
    current = {"a": None, "b": None}
    assert evacuated(current, {"b": None}, {"a"}, 0) == ({"a": None, "b": None}, True)
    assert evacuated(current, {"b": None, "c": None}, {"a"}, 0) == ({"b": None, "c": None}, False)


def test_who_matters_most_goes_first_and_nobody_before_a_users_own_change() -> None:
    ranks = [rank(priority) for priority in (2_000_001_000, 1_000_000_000, 7, 0, -1, -(10**12))]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)
    assert min(ranks) == rank(10**12) == 1


def test_the_number_that_leaves_in_any_case_is_divided_among_shards() -> None:
    assert [most_that_leave(of_shard(Pacing(least=10), shards), 0) for shards in (1, 2, 3, 64)] == [10, 5, 3, 1]
    assert of_shard(Pacing(share=0.5), 2).share == 0.5


def test_what_may_not_leave_yet_is_not_divided_anew_meanwhile() -> None:
    """Also if its last decision, on the failure, is to be made again."""
    moves = {"rescheduleWhen": {}, "replicaRescheduling": {"avoidDisruption": False}}

    def rule(**weights: int) -> Any:
        placement = [{"cluster": name, "preferences": {"weight": weight}} for name, weight in weights.items()]
        return policy(placement=placement, reschedulePolicy=moves)

    world = World(policy=rule(m1=1, m2=1, m3=1))
    world.run()
    assert world.replicas == {"m1": 2, "m2": 2, "m3": 2}
    assert world.object is not None
    annotations = world.object["metadata"]["annotations"]
    record = {**json.loads(annotations[keys.SCHEDULING_TRIGGERS]), "unanswered": True}
    annotations[keys.SCHEDULING_TRIGGERS] = json.dumps(record)
    world.run(policy=rule(m1=4, m2=1, m3=1), bound={"m3"})
    assert world.replicas == {"m1": 2, "m2": 2, "m3": 2}
