"""Explanations: short at any fleet size, and complete in what they count."""

from argosy.plan.explain import lines, placement_text
from argosy.plan.record import account_of, record_of
from argosy.plan.schedule import schedule
from tests.unit.plan.scheduling import cluster, fleet, unit


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
