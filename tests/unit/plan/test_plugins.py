"""The plugins one by one, over a whole fleet at once."""

from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api.policies import ClusterSelectorRequirement, ClusterSelectorTerm, Toleration
from argosy.plan.plugins import (
    api_resources,
    cluster_affinity,
    cluster_ready,
    cluster_resources_balanced_allocation,
    cluster_resources_least_allocated,
    max_cluster,
    priority_sort,
    taint_toleration,
)
from argosy.plan.plugins.replicas import cluster_capacity_weight
from argosy.plan.replicas.weights import available_weights, dynamic_weights, weight_limits
from argosy.plan.scheduling.framework import FrameworkError, Ranked
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import Affinity, PreferredTerm, ResourceRequest
from tests.unit.plan.scheduling import cluster, fleet, taint, unit


def term(key, operator, *values):
    return ClusterSelectorTerm(match_expressions=(ClusterSelectorRequirement(key, operator, values),))


def amounts(**allocatable_and_available):
    allocatable, available = zip(*allocatable_and_available.values(), strict=True)
    names = [name.replace("gpu", "nvidia.com/gpu") for name in allocatable_and_available]
    return {
        "allocatable": dict(zip(names, allocatable, strict=True)),
        "available": dict(zip(names, available, strict=True)),
    }


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", value="other"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", operator="Nonsense", value="v"), False),
    ],
)
def test_tolerations_match_as_in_kubernetes(toleration, tolerated):
    members = fleet(cluster("a", taints=[taint("k", value="v")]))
    assert taint_toleration.feasible(unit(tolerations=(toleration,)), members).tolist() == [tolerated]


def test_a_placed_unit_is_driven_out_by_noexecute_only():
    members = fleet(cluster("a", taints=[taint("s")]), cluster("b", taints=[taint("s"), taint("e", "NoExecute")]))
    placed = unit(current={"a": 1, "b": 1})
    assert taint_toleration.feasible(placed, members).tolist() == [True, False]
    assert "{e: }" in taint_toleration.reason(placed, members, 1)
    assert "{s: }" in taint_toleration.reason(unit(), members, 1)


def test_fewer_untolerated_prefernoschedule_taints_score_higher():
    soft = [taint(key, "PreferNoSchedule") for key in "xy"]
    members = fleet("a", cluster("b", taints=soft[:1]), cluster("c", taints=soft))
    scores = taint_toleration.score(unit(), members)
    assert scores.tolist() == [0, 1, 2]
    assert taint_toleration.normalize(scores).tolist() == [100, 50, 0]
    hard_only = unit(tolerations=(Toleration(operator="Exists", effect="NoSchedule"),))
    assert taint_toleration.score(hard_only, members).tolist() == [0, 1, 2]


def test_unready_clusters_keep_what_they_have():
    members = fleet(cluster("a", ready=False), cluster("b", ready=False), "c")
    assert cluster_ready.feasible(unit(current={"a": None}), members).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("required", "matched"),
    [
        ((term("zone", "In", "x", "y"),), [True, True, False]),
        ((term("zone", "NotIn", "x"),), [False, True, True]),
        ((term("zone", "Exists"),), [True, True, False]),
        ((term("zone", "DoesNotExist"),), [False, False, True]),
        ((term("tier", "Gt", "1"),), [False, True, False]),
        ((term("tier", "Lt", "2"),), [True, False, False]),
        ((term("zone", "In", "x"), term("tier", "In", "2")), [True, True, False]),
        ((), [False, False, False]),
        ((ClusterSelectorTerm(),), [False, False, False]),
        ((term("zone", "Near", "x"),), [False, False, False]),
        ((term("tier", "Gt", "one"),), [False, False, False]),
        ((term("zone", "NotIn", "not a label value!"),), [False, False, False]),
        ((term("not a key!", "Exists"),), [False, False, False]),
    ],
)
def test_required_terms(required, matched):
    members = fleet(
        cluster("a", labels={"zone": "x", "tier": "1"}), cluster("b", labels={"zone": "y", "tier": "2"}), "c"
    )
    assert cluster_affinity.feasible(unit(affinity=Affinity(required=required)), members).tolist() == matched


@pytest.mark.parametrize(
    ("field", "matched"),
    [
        (ClusterSelectorRequirement("metadata.name", "In", ("a",)), [True, False]),
        (ClusterSelectorRequirement("metadata.name", "NotIn", ("a",)), [False, True]),
        (ClusterSelectorRequirement("metadata.name", "In", ("a", "b")), [False, False]),
        (ClusterSelectorRequirement("metadata.name", "Exists"), [False, False]),
        (ClusterSelectorRequirement("spec.other", "In", ("a",)), [False, False]),
    ],
)
def test_required_fields(field, matched):
    wanted = unit(affinity=Affinity(required=(ClusterSelectorTerm(match_fields=(field,)),)))
    assert cluster_affinity.feasible(wanted, fleet("a", "b")).tolist() == matched


def test_preferred_terms_add_their_weights():
    members = fleet(cluster("a", labels={"zone": "x"}), cluster("b", labels={"zone": "x", "ssd": "yes"}), "c")
    preferred = (
        PreferredTerm(2, term("zone", "In", "x")),
        PreferredTerm(8, term("ssd", "Exists")),
        PreferredTerm(5, ClusterSelectorTerm()),
        PreferredTerm(5, term("zone", "Wrong")),
    )
    scores = cluster_affinity.score(unit(affinity=Affinity(preferred=preferred)), members)
    assert scores.tolist() == [2, 10, 0]
    assert cluster_affinity.SCORE.normalize(scores).tolist() == [20, 100, 0]
    assert cluster_affinity.SCORE.normalize(scores * 0).tolist() == [0, 0, 0]
    assert cluster_affinity.SCORE.normalize(np.array([2**62, 2**61, 0])).tolist() == [100, 50, 0]


def test_balanced_allocation_prefers_even_use():
    members = fleet(
        cluster("even", resources=amounts(cpu=("10", "5"), memory=("10", "5"))),
        cluster("full", resources=amounts(cpu=("10", "0"), memory=("10", "5"))),
        cluster("none", resources=amounts(memory=("10", "5"))),
        cluster("uneven", resources=amounts(cpu=("10", "2"), memory=("10", "10"))),
    )
    assert cluster_resources_balanced_allocation.score(unit(), members).tolist() == [100, 0, 0, 60]


def test_least_allocated_counts_a_gpu_four_times():
    wanted = unit(request=ResourceRequest(scalars={"nvidia.com/gpu": 2}))
    members = fleet(
        cluster("gpus", resources=amounts(cpu=("10", "5"), memory=("10", "5"), gpu=("4", "4"))),
        cluster("none", resources=amounts(cpu=("10", "10"), memory=("10", "10"))),
    )
    assert cluster_resources_least_allocated.score(wanted, members).tolist() == [50, 33]


def test_resource_scores_survive_absurd_amounts():
    members = fleet(cluster("a", resources=amounts(cpu=("10", "5"), memory=("2Ei", "1Ei"))))
    assert cluster_resources_least_allocated.score(unit(), members).tolist() == [50]
    assert cluster_resources_balanced_allocation.score(unit(), members).tolist() == [100]


def names_selected(plugin, unit, scores):
    members = fleet(*scores)
    ranked = Ranked(members.rows_of(scores), np.array(list(scores.values()), dtype=np.int64))
    return members.names_of(plugin.select(unit, members, ranked).rows)


def test_priority_sort_orders_by_score_then_name():
    scores = {"c": 1, "b": 2, "a": 1}
    assert names_selected(priority_sort, unit(), scores) == ["b", "a", "c"]
    assert names_selected(priority_sort, unit(priorities={"c": 1}), scores) == ["c", "a", "b"]


def test_max_cluster_keeps_the_incoming_order_among_equals():
    scores = dict.fromkeys("zyxwvutsrqponm", 1)
    assert names_selected(max_cluster, unit(max_clusters=13), scores) == list("zyxwvutsrqpon")
    with pytest.raises(FrameworkError):
        names_selected(max_cluster, unit(max_clusters=-1), scores)


# Weights.


def dynamic(allocatable, available):
    return dynamic_weights(np.array(allocatable, dtype=np.int64), np.array(available, dtype=np.int64)).tolist()


def test_free_capacity_decides_capped_by_total_capacity():
    assert weight_limits(np.array([100, 100, 100])).tolist() == [467, 467, 467]
    assert dynamic([100, 100, 100], [80, 20, 10]) == [631, 246, 123]
    assert dynamic([64, 32, 16], [10, 30, -4]) == [385, 615, 0]


def test_without_free_capacity_all_weigh_the_same():
    assert dynamic([5, 5, 5], [0, 0, 0]) == [333, 333, 333]
    assert dynamic([0, 0], [0, 0]) == [500, 500]
    assert dynamic([], []) == []
    assert available_weights(np.array([5, 0]), np.array([0, 0])).tolist() == [500, 500]


def test_weights_sum_to_1000_with_the_remainder_at_the_first_of_the_largest():
    assert dynamic([1] * 3, [1] * 3) == [334, 333, 333]
    assert dynamic([1] * 7, [1] * 7) == [142, *[143] * 6]


def slow_weights(allocatable, available):
    """As the rule is written, one cluster at a time."""

    def rounded(number):
        whole = floor(number)
        return whole + 1 if number - whole >= 0.5 else whole

    count, free, held = len(available), [max(amount, 0) for amount in available], sum(allocatable)
    equal = [rounded(1000 / count)] * count
    if not sum(free):
        return equal
    limits = [rounded(amount / held * 1000 * 1.4) for amount in allocatable] if held else equal
    capped = [min(rounded(amount / sum(free) * 1000), most) for amount, most in zip(free, limits, strict=True)]
    if not sum(capped):
        return equal
    weights = [rounded(weight / sum(capped) * 1000) for weight in capped]
    weights[weights.index(max(weights))] += 1000 - sum(weights)
    return weights


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(-50, 5000)), min_size=1, max_size=40))
@settings(deadline=None)
def test_weights_are_rounded_half_away_from_zero(clusters):
    allocatable, available = map(list, zip(*clusters, strict=True))
    assert dynamic(allocatable, available) == slow_weights(allocatable, available)


def test_a_resource_must_be_reported_to_be_followed():
    members = fleet("a", cluster("b", resources=amounts(special=("1", "1"))))
    both = np.arange(2)
    gpus = cluster_capacity_weight.amounts(members, both, "nvidia.com/gpu")
    assert [column.tolist() for column in gpus] == [[0, 0], [0, 0]]
    with pytest.raises(FrameworkError, match="no special resource"):
        cluster_capacity_weight.amounts(members, both, "special")


def test_a_started_core_counts_as_one():
    members = fleet(cluster("a", cpu="1500m", free="1m"))
    cores = cluster_capacity_weight.amounts(members, np.arange(1), "cpu")
    assert [column.tolist() for column in cores] == [[2], [1]]


def test_gpu_units_follow_gpus():
    members = fleet(
        cluster("a", resources=amounts(cpu=("100", "100"), gpu=("1", "1"))),
        cluster("b", resources=amounts(cpu=("1", "1"), gpu=("3", "3"))),
    )
    wanted = unit(8, request=ResourceRequest(scalars={"nvidia.com/gpu": 1}))
    assert cluster_capacity_weight.divide(wanted, members, np.arange(2)).replicas.tolist() == [2, 6]


def test_a_duplicated_object_counts_as_the_whole_number_in_each_cluster():
    placed = unit(6, current={"a": None, "b": None})
    division = cluster_capacity_weight.divide(placed, fleet("a", "b", "c"), np.array([2, 0, 1]))
    assert division.replicas.tolist() == [0, 4, 2]


def test_a_few_clusters_are_kept_though_others_score_better_where_disruption_is_avoided():
    members = fleet(cluster("a", cpu="100"), cluster("b", cpu="100", free="20"), cluster("c", cpu="100", free="10"))
    best = schedule(unit(4, max_clusters=1), members)
    assert best.placements == {"a": 4}
    running = {"b": 3, "c": 1}
    assert schedule(unit(9, current=running, max_clusters=2), members).placements.keys() == {"b", "c"}
    assert schedule(unit(9, current=running, max_clusters=1), members).placements == {"b": 9}
    moving = unit(9, current=running, max_clusters=2, avoid_disruption=False)
    assert schedule(moving, members).placements.keys() == {"a", "b"}
    left = schedule(unit(9, current=running, max_clusters=1), members)
    assert left.division.steps[1:] == (
        "1 replicas run in clusters that were not chosen: they leave",
        "3 replicas run, 9 are wanted: 6 start, none moves",
    )


def test_what_runs_in_a_cluster_that_has_not_told_its_apis_yet_stays_there():
    """It has just joined again: what is not known is no reason to leave."""
    other = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
    members = fleet(
        cluster("new", ready=False, apis=[]), cluster("old", ready=False, apis=[other]), cluster("ready", apis=[])
    )
    there = unit(current={"new": None, "old": None, "ready": None})
    assert api_resources.feasible(there, members).tolist() == [True, False, False]
    assert api_resources.feasible(unit(), members).tolist() == [False, False, False]
