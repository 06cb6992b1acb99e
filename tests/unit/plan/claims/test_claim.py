"""Which of the policies that select an object gets it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.plan.claims import claim as claim_module
from argosy.plan.claims.claim import Selectors, complaints
from argosy.plan.pipeline.policy import PolicyRef
from tests.unit.plan.claims.claims import selecting, subject

NAMESPACES = {"shop": {"team": "red"}, "office": {"team": "blue"}}
ALL = {"apiVersion": "*", "kind": "*"}


def claim(policies, of=None, namespaces=NAMESPACES):
    return Selectors(policies).claim(of or subject(), namespaces)


def winner(*policies, of=None):
    found = claim(policies, of)
    return found.ref if found is not None else None


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        (ALL, True),
        ({"kind": "Deployment"}, True),
        ({"kind": "StatefulSet"}, False),
        ({"apiVersion": "apps/v1"}, True),
        ({"apiVersion": "apps/v1beta1", "kind": "Deployment"}, True),
        ({"apiVersion": "apps/*"}, True),
        ({"apiVersion": "v1"}, False),
        ({"apiVersion": "v1", "kind": "Deployment"}, False),
        ({"name": "web"}, True),
        ({"name": "db"}, False),
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "blue"}}}, False),
        ({"kind": "Deployment", "name": "web", "labelSelector": {"matchLabels": {"app": "db"}}}, False),
    ],
)
def test_all_that_a_selector_states_must_match(selector, matches):
    of = subject(labels={"app": "web"})
    assert (winner(selecting("all", selector), of=of) == PolicyRef("all")) is matches


def test_one_matching_selector_is_enough():
    assert winner(selecting("all", {"kind": "Secret"}, {"kind": "Deployment"})) == PolicyRef("all")


def test_a_policy_without_selectors_selects_nothing():
    assert winner(selecting("all")) is None


def test_a_namespaced_policy_selects_in_its_namespace_and_nothing_without_one():
    policy = selecting("all", ALL, namespace="shop")
    assert winner(policy) == PolicyRef("all", "shop")
    assert winner(policy, of=subject(namespace="office")) is None
    assert winner(policy, of=subject("PriorityClass", group="scheduling.k8s.io", namespace="")) is None


def test_a_cluster_scoped_policy_selects_objects_without_a_namespace_too():
    of = subject("PriorityClass", group="scheduling.k8s.io", namespace="")
    assert winner(selecting("all", ALL), of=of) == PolicyRef("all")
    assert winner(selecting("all", {"namespaceSelector": {"matchLabels": {"team": "red"}}}), of=of) is None


def test_a_namespace_that_is_not_known_matches_no_selector_of_namespaces():
    policy = selecting("all", {"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}})
    assert claim([policy], namespaces={}) is None
    assert claim([policy]).ref == PolicyRef("all")


def test_the_label_wins_and_the_others_are_known():
    labelled = subject(labels={keys.PROPAGATION_POLICY_LABEL: "mine"})
    found = claim([selecting("all", ALL, priority=9)], labelled)
    assert (found.ref, found.by_label, found.others) == (PolicyRef("mine", "shop"), True, (PolicyRef("all"),))


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (
            selecting("a", {"kind": "Deployment"}, priority=1),
            selecting("b", ALL, priority=2),
            "its priority 2 is higher than 1 of ClusterPropagationPolicy a",
        ),
        (
            selecting("a", {"name": "web"}),
            selecting("b", ALL, namespace="shop"),
            "a policy of the namespace goes before ClusterPropagationPolicy a",
        ),
        (
            selecting("a", {"kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}),
            selecting("b", {"name": "web"}),
            "it selects by name, ClusterPropagationPolicy a by labels and kind",
        ),
        (
            selecting("a", {"apiVersion": "apps/v1", "kind": "Deployment"}),
            selecting("b", {"labelSelector": {"matchLabels": {"app": "web"}}}),
            "it selects by labels, ClusterPropagationPolicy a by kind and API group",
        ),
        (
            selecting("a", {"apiVersion": "apps/v1"}),
            selecting("b", {"kind": "Deployment"}),
            "it selects by kind, ClusterPropagationPolicy a by API group",
        ),
        (
            selecting("a", ALL),
            selecting("b", {"apiVersion": "apps/v1"}),
            "it selects by API group, ClusterPropagationPolicy a by wildcard",
        ),
        (
            selecting("b", {"kind": "Deployment"}),
            selecting("a", {"kind": "Deployment"}),
            "its name comes before that of ClusterPropagationPolicy b, which selects the same with the same priority",
        ),
    ],
)
def test_of_two_that_select_it_the_second_here_wins(first, second, why):
    of = subject(labels={"app": "web"})
    found = claim([first, second], of)
    assert found.ref == PolicyRef(second.metadata.name, second.metadata.namespace)
    assert (found.why, len(found.others)) == (why, 1)


def test_a_policy_is_as_specific_as_its_best_matching_selector():
    assert winner(selecting("b", ALL, {"name": "web"}), selecting("a", {"kind": "Deployment"})) == PolicyRef("b")


def test_an_invalid_selector_selects_nothing_and_is_told_of():
    bad = {"labelSelector": {"matchLabels": {"not a key": "x"}}}
    policy = selecting("all", bad, {"kind": "Secret"})
    assert winner(policy) is None
    assert winner(policy, of=subject("Secret", group="")) == PolicyRef("all")
    told = complaints(policy, {("", "Secret")})
    assert [text.partition(":")[0] for text in told] == ["spec.resourceSelectors[0] selects nothing"]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (selecting("all", ALL, {"apiVersion": "apps/v1", "kind": "Deployment"}, {"kind": "Widget"}), None),
        (selecting("all", {"apiVersion": "example.com/v1", "kind": "Widget"}), "Widget is not federated"),
        (selecting("all", {"apiVersion": "v1", "kind": "Namespace"}), "namespaces are never selected"),
        (selecting("all", {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "Any"}), "own objects are never"),
        (selecting("all", {"apiVersion": "rbac.authorization.k8s.io/v1"}, namespace="shop"), "gives no rights"),
    ],
)
def test_what_a_policy_names_in_vain_is_told(policy, why):
    told = complaints(policy, {("apps", "Deployment")})
    assert told == [] if why is None else (len(told) == 1 and why in told[0])


def test_a_policy_that_changed_selects_as_it_says_now():
    selectors = Selectors([selecting("all", ALL)])
    selectors.put(selecting("all", {"kind": "Secret"}))
    assert selectors.claim(subject(), {}) is None
    assert selectors.selects_kind("", "Secret")
    assert not selectors.selects_kind("apps", "Deployment")
    selectors.drop(PolicyRef("all"))
    assert selectors.claim(subject("Secret", group=""), {}) is None
    assert len(selectors) == 0


def test_an_object_is_compared_with_policies_of_its_namespace_and_kind_alone(monkeypatch):
    others = [selecting(f"p{n}", {"kind": "Secret"}, namespace="shop") for n in range(50)]
    others += [selecting(f"p{n}", ALL, namespace=f"team-{n}") for n in range(50)]
    selectors = Selectors([*others, selecting("mine", {"kind": "Deployment"}, namespace="shop")])
    compared = []
    selects = claim_module._Selector.selects
    monkeypatch.setattr(
        claim_module._Selector, "selects", lambda self, *given: compared.append(self) or selects(self, *given)
    )
    assert selectors.claim(subject(), NAMESPACES).ref == PolicyRef("mine", "shop")
    assert len(compared) == 1


SELECTOR = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["*", "apps/v1", "v1"]),
        "kind": st.sampled_from(["*", "Deployment", "Secret"]),
        "name": st.sampled_from(["web", "db"]),
        "labelSelector": st.sampled_from([{}, {"matchLabels": {"app": "web"}}]),
        "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"team": "red"}}]),
    },
)
POLICIES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["", "shop", "office"]),
        st.integers(-1, 1),
        st.lists(SELECTOR, max_size=3),
    ),
    max_size=6,
    unique_by=lambda each: each[:2],
)
SUBJECTS = st.builds(
    lambda kind, name, namespace, labels: subject(kind[1], name, kind[0], namespace, labels=labels),
    st.sampled_from([("apps", "Deployment"), ("", "Secret")]),
    st.sampled_from(["web", "db"]),
    st.sampled_from(["shop", "office"]),
    st.sampled_from([{}, {"app": "web"}]),
)


@given(POLICIES, SUBJECTS, st.randoms())
def test_the_order_of_policies_and_changes_does_not_matter(drawn, of, chance: random.Random):
    policies = [selecting(name, *each, namespace=ns, priority=n) for name, ns, n, each in drawn]
    expected = Selectors(policies).claim(of, NAMESPACES)
    shuffled = chance.sample(policies, len(policies))
    changed = Selectors(selecting(each.metadata.name, ALL, namespace=each.metadata.namespace) for each in shuffled)
    for each in shuffled:
        changed.put(each)
    assert changed.claim(of, NAMESPACES) == expected


@given(POLICIES, SUBJECTS)
def test_without_the_winner_the_next_one_gets_it(drawn, of):
    policies = [selecting(name, *each, namespace=ns, priority=n) for name, ns, n, each in drawn]
    found = claim(policies, of)
    if found is not None:
        rest = claim(
            [each for each in policies if PolicyRef(each.metadata.name, each.metadata.namespace) != found.ref], of
        )
        assert (rest.ref, *rest.others) == found.others if rest is not None else not found.others


def test_the_labels_of_a_namespace_have_a_say_where_a_selector_that_matches_asks_for_them():
    red = {"kind": "Deployment", "namespaceSelector": {"matchLabels": {"team": "red"}}}
    selectors = Selectors([selecting("red", red), selecting("all", {"kind": "Secret"})])
    assert selectors.needs_namespace(subject())
    assert not selectors.needs_namespace(subject("Secret", group=""))
    assert not selectors.needs_namespace(subject(labels={keys.PROPAGATION_POLICY_LABEL: "own"}))
    assert not selectors.needs_namespace(subject("Deployment", namespace=""))
    assert not Selectors([selecting("all", {"kind": "Deployment"})]).needs_namespace(subject())
