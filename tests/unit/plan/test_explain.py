"""Explanations: short at any fleet size, and complete in what they count."""

import msgspec
import pytest

from argosy.plan.explain.record import account_of, record_of
from argosy.plan.explain.summary import REMEDIES, lines, placement_text, why
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.schedule import DEFAULT, schedule
from tests.unit.plan.scheduling import cluster, fleet, taint, unit


def explain(decision):
    return account_of(record_of(decision), decision.fleet.names)


def test_refused_clusters_are_grouped_by_reason():
    members = fleet("a", *(cluster(f"down-{number}", ready=False) for number in range(9)))
    explanation = explain(schedule(unit(2), members))
    (refusal,) = explanation.refused
    assert (refusal.plugin, refusal.count, len(refusal.clusters)) == ("ClusterReady", 9, 9)
    assert lines(explanation) == [
        "a: 2",
        "9 refused by ClusterReady: cluster(s) were unready (down-0, down-1, down-2, down-3, down-4, …)",
        "weights follow free cpu",
        "0 replicas run, 2 are wanted: 2 start, none moves",
    ]


def test_a_kept_placement_says_why():
    explanation = explain(schedule(unit(2, current={"a": 2}), fleet(cluster("a", terminating=True))))
    assert lines(explanation)[:2] == [
        "a: 2",
        "kept as it was: 0/1 clusters are available: 1 cluster(s) were terminating",
    ]


def test_what_was_passed_over_and_what_is_missing_is_told():
    decision = schedule(unit(9, max_clusters=2, max_replicas={"a": 4, "b": 0}), fleet("a", "b", "c"))
    told = lines(explain(decision))
    assert any(line.startswith("not selected: c") for line in told)
    assert "selected without replicas: b" in told
    assert any(line.startswith("5 replicas found no cluster") for line in told)


def test_a_placement_reads_as_names_and_numbers():
    assert placement_text({"b": 2, "a": 1}) == "a: 1, b: 2"
    assert placement_text({"b": None, "a": None}) == "a, b"
    assert placement_text({}) == "placed nowhere"


# One cluster.

MEMBERS = (
    "a",
    cluster("busy", cpu="10", free="1"),
    cluster("down", ready=False),
    cluster("tainted", taints=[taint("gpu", value="only")]),
)


def test_where_it_runs_the_rank_and_the_score_are_told():
    account = explain(schedule(unit(4, max_clusters=1), fleet(*MEMBERS)))
    answer = why(account, "a")
    assert (answer.placed, answer.replicas, answer.rank) == (True, 4, 1)
    assert (
        answer.because
        == f"it passed all filters and was selected as number 1 of 1 with score {sum(answer.scores.values())}"
    )
    assert answer.change == ()


@pytest.mark.parametrize(
    ("name", "because", "change"),
    [
        ("down", "ClusterReady refused it: cluster(s) were unready", "the cluster must become ready"),
        ("tainted", "TaintToleration refused it: cluster(s) had taint {gpu: only}", "a toleration of that taint"),
        ("busy", "it passed all filters with score", "a larger maxClusters in the policy: 1 clusters"),
        ("nowhere", "it was not one of the clusters that were considered", "once it has joined"),
    ],
)
def test_where_it_does_not_run_the_first_reason_and_a_remedy_are_told(name, because, change):
    answer = why(explain(schedule(unit(4, max_clusters=1), fleet(*MEMBERS))), name)
    assert not answer.placed
    assert answer.because.startswith(because)
    assert answer.change[0].startswith(change)


def test_a_selected_cluster_without_replicas_is_told_so():
    answer = why(explain(schedule(unit(4, max_replicas={"busy": 0}), fleet(*MEMBERS))), "busy")
    assert not answer.placed
    assert answer.rank == 2
    assert "left it without any (weights follow free cpu; " in answer.because


def test_what_is_kept_says_that_nothing_better_was_found():
    account = explain(schedule(unit(2, current={"a": 2}), fleet(cluster("a", terminating=True))))
    assert "nothing better was found: 0/1 clusters are available" in why(account, "a").because
    sticky = explain(schedule(unit(2, sticky=True, current={"a": 2}), fleet("a", "b")))
    assert why(sticky, "a").because == "it was there before, and clusters once chosen are kept"
    assert why(sticky, "b").change == ("disableRescheduling off in the policy's reschedulePolicy",)


def test_a_decision_that_could_not_be_made_is_told_as_such():
    account = explain(schedule(unit(2, max_clusters=-1), fleet("a")))
    assert why(account, "a").because == "no decision could be made: max cluster is less than 0"


def test_without_scores_the_clusters_passed_over_are_told():
    profile = msgspec.structs.replace(DEFAULT, scores=())
    account = explain(schedule(unit(2, max_clusters=1), fleet("a", "b"), profile))
    assert why(account, "b").because == "it passed all filters with score 0, but 1 others were preferred"


def test_a_record_without_names_says_that_it_is_too_old():
    decision = schedule(unit(2), fleet("a", cluster("b", ready=False)))
    account = account_of(record_of(decision), None)
    assert "can no longer be matched to names" in why(account, "a").because
    assert lines(account)[0] == "1 refused by ClusterReady: cluster(s) were unready"


def test_every_filter_says_what_would_have_to_change():
    assert {plugin.name for plugin in IN_TREE.filters.values()} == REMEDIES.keys()
