"""A disruption budget that is divided with its workloads: what may be away, in each cluster and in all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.federated import LeaderReference
from argosy.plan.copies.patches import apply_patches
from argosy.plan.copies.placement import overrides_for
from argosy.plan.followers.graph import Following
from argosy.plan.pipeline.budget import divide_budget
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.replicas.budget import MAX_UNAVAILABLE, MIN_AVAILABLE, Pods, budget_of, disruptions

COUNTS = st.dictionaries(st.sampled_from([f"m{number}" for number in range(8)]), st.integers(0, 40), max_size=8)
WORKLOADS = st.lists(st.builds(Pods, COUNTS, st.booleans()), min_size=1, max_size=4)
FIELDS = st.sampled_from([MIN_AVAILABLE, MAX_UNAVAILABLE])


def web(**clusters):
    return Pods(clusters, divided=True)


def test_a_minimum_of_eight_of_ten_lets_two_clusters_of_three_be_drained():
    budget = budget_of(MIN_AVAILABLE, 8, [web(m1=4, m2=3, m3=3)])
    assert budget.shares == {"m1": 3, "m2": 2, "m3": 3}
    assert budget.blocked == ["m3"]


def test_every_cluster_may_lose_one_where_there_are_enough():
    budget = budget_of(MIN_AVAILABLE, 7, [web(m1=8, m2=1, m3=1)])
    assert budget.shares == {"m1": 7, "m2": 0, "m3": 0}
    assert budget.blocked == []


@pytest.mark.parametrize(("number", "shares"), [(0, (0, 0)), (1, (1, 0)), (2, (1, 1)), (5, (3, 2)), (99, (6, 4))])
def test_a_maximum_is_divided_as_it_is(number, shares):
    assert budget_of(MAX_UNAVAILABLE, number, [web(m1=6, m2=4)]).shares == dict(zip(("m1", "m2"), shares, strict=True))


def test_what_asks_for_more_than_there_is_lets_nothing_go():
    budget = budget_of(MIN_AVAILABLE, 12, [web(m1=6, m2=4)])
    assert budget.shares == {"m1": 8, "m2": 6}
    assert budget.blocked == []  # that is not due to the division


def test_a_budget_over_several_workloads():
    copied = Pods({"m1": 2, "m2": 2}, divided=False)
    budget = budget_of(MIN_AVAILABLE, 8, [web(m1=6, m2=4), copied])
    assert budget.together == 4  # of 12, as their owner counts them
    assert budget.disruptions == {"m1": 2, "m2": 2}
    assert budget.shares == {"m1": 6, "m2": 4}


def test_what_is_copied_everywhere_keeps_its_budget_everywhere():
    assert budget_of(MIN_AVAILABLE, 1, [Pods({"m1": 2, "m2": 2}, divided=False)]) is None
    assert budget_of(MIN_AVAILABLE, 1, [web(m1=0)]) is None
    assert budget_of(MIN_AVAILABLE, 1, []) is None


@given(FIELDS, st.integers(0, 200), WORKLOADS, st.dictionaries(st.sampled_from(["m0", "m1", "m2"]), st.integers(0, 9)))
def test_never_more_is_away_than_the_budget_allows(field, number, workloads, surge):
    budget = budget_of(field, number, workloads)
    if budget is None:
        return
    pods = {name: sum(each.clusters.get(name, 0) for each in workloads) for name in budget.shares}
    together = sum(each.together for each in workloads)
    assert set(budget.shares) == {name for each in workloads for name, count in each.clusters.items() if count}
    assert all(0 <= budget.disruptions[name] <= count for name, count in pods.items())
    allowed = min(number, together) if field == MAX_UNAVAILABLE else max(together - number, 0)
    assert sum(budget.disruptions.values()) <= allowed == budget.together
    if field == MAX_UNAVAILABLE:
        assert budget.shares == budget.disruptions
        return
    assert sum(budget.shares.values()) >= number
    # Also with pods that are there for a while, as in a roll-out.
    more = {name: surge.get(name, 0) for name in pods}
    evicted = sum(max(0, pods[name] + more[name] - budget.shares[name]) for name in pods)
    assert evicted <= max(0, together + sum(more.values()) - number)


@given(st.integers(0, 200), st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 50), min_size=1))
def test_as_much_as_possible_is_given_and_one_to_each_first(allowed, pods):
    given = disruptions(allowed, pods)
    assert sum(given.values()) == min(allowed, sum(pods.values()))
    assert all(0 <= given[name] <= count for name, count in pods.items())
    if allowed >= len(pods):
        assert all(given.values())
    assert given == disruptions(allowed, dict(reversed(pods.items())))


# Through the pass.


def protecting(**spec):
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}
    return {"template": body}


def passed(spec, following, annotations=None):
    inputs = PassInputs(source=spec["template"], type_config=None, fleet=None, following=following)
    return divide_budget(inputs, State(None, {}, spec, annotations or {}))


def sent(state, cluster="m1"):
    return apply_patches(state.spec["template"], overrides_for(state.spec, cluster, []))["spec"]


DIVIDED = Following(selected=(web(m1=6, m2=4),))
LOST = (LeaderReference(group="apps", kind="Deployment", name="web"),)


@pytest.mark.parametrize("spec", [{"minAvailable": 8}, {"maxUnavailable": 1}, {"minAvailable": "80%"}])
def test_a_budget_whose_pods_come_to_be_uncountable_is_the_same_everywhere(spec):
    before = passed(protecting(minAvailable=8), DIVIDED)
    assert sent(before) == {"minAvailable": 5}
    after = passed({**before.spec, **protecting(**spec)}, Following(selected=None), before.annotations)
    assert sent(after) == spec
    assert keys.BUDGET not in after.annotations


@pytest.mark.parametrize(
    "following", [None, Following(selected=None, unknown=LOST), Following(selected=(), unknown=LOST)]
)
def test_its_shares_stay_while_its_workloads_are_unknown_unless_it_asks_for_something_else(following):
    before = passed(protecting(minAvailable=8), DIVIDED)
    assert sent(passed(before.spec, following, before.annotations)) == {"minAvailable": 5}
    other = {**before.spec, **protecting(maxUnavailable=1)}
    assert sent(passed(other, following, before.annotations)) == {"maxUnavailable": 1}
