"""RBAC decisions and impersonation on small hand-made roles."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.auth import rbac as rbac_module
from argosy.server.auth.bootstrap import bootstrap_objects, reconciled
from argosy.server.auth.identity import Attributes, User
from argosy.server.auth.impersonation import Impersonation, ImpersonationDenied
from argosy.server.auth.rbac import Rbac, Rule, rules_of

ALICE = User("alice", ("dev", "system:authenticated"))
ROOT = User("root", ("system:masters",))


def role(kind: str, name: str, *rules: dict, namespace: str = "") -> dict:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def binding(kind: str, name: str, role_kind: str, role_name: str, *subjects: dict, namespace: str = "") -> dict:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": role_kind, "name": role_name},
        "subjects": list(subjects),
    }


def rbac_of(*objects: dict) -> Rbac:
    rbac = Rbac()
    for obj in objects:
        rbac.observe(obj["kind"], orjson.dumps(obj))
    return rbac


READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
USER_ALICE = {"kind": "User", "name": "alice"}


def asks(verb: str, resource: str, *, user: User = ALICE, **more: str) -> Attributes:
    return Attributes(user, verb, resource=resource, **more)


def test_a_role_binding_grants_only_in_its_namespace():
    rbac = rbac_of(
        role("Role", "reader", READ_PODS, namespace="team"),
        binding("RoleBinding", "readers", "Role", "reader", USER_ALICE, namespace="team"),
    )
    assert rbac.authorize(asks("get", "pods", namespace="team")).allowed
    assert not rbac.authorize(asks("get", "pods", namespace="other")).allowed
    assert not rbac.authorize(asks("list", "pods")).allowed
    assert not rbac.authorize(asks("delete", "pods", namespace="team")).allowed


def test_groups_service_accounts_and_subresources():
    rbac = rbac_of(
        role("ClusterRole", "scaler", {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*/scale", "deployments"]}),
        binding(
            "ClusterRoleBinding",
            "b",
            "ClusterRole",
            "scaler",
            {"kind": "Group", "name": "dev"},
            {"kind": "ServiceAccount", "name": "bot", "namespace": "ci"},
        ),
    )
    bot = User("system:serviceaccount:ci:bot")
    for user in (ALICE, bot):
        assert rbac.authorize(asks("update", "deployments", user=user, group="apps", subresource="scale")).allowed
        assert rbac.authorize(asks("update", "replicasets", user=user, group="apps", subresource="scale")).allowed
        assert not rbac.authorize(asks("update", "deployments", user=user, group="apps", subresource="status")).allowed
    assert "RBAC: allowed by ClusterRoleBinding" in rbac.authorize(asks("get", "deployments", group="apps")).reason


def test_resource_names_and_urls():
    rbac = rbac_of(
        role(
            "ClusterRole",
            "r",
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
        ),
        binding("ClusterRoleBinding", "b", "ClusterRole", "r", USER_ALICE),
    )
    assert rbac.authorize(asks("get", "secrets", name="mine")).allowed
    assert not rbac.authorize(asks("get", "secrets", name="other")).allowed
    assert rbac.authorize(Attributes(ALICE, "get", path="/logs/a/b")).allowed
    assert not rbac.authorize(Attributes(ALICE, "get", path="/metricsx")).allowed


def test_a_deleted_binding_or_role_stops_granting():
    grant = binding("ClusterRoleBinding", "b", "ClusterRole", "reader", USER_ALICE)
    rbac = rbac_of(role("ClusterRole", "reader", READ_PODS), grant)
    assert rbac.authorize(asks("get", "pods")).allowed
    rbac.observe("ClusterRoleBinding", orjson.dumps(grant), deleted=True)
    assert not rbac.authorize(asks("get", "pods")).allowed


def test_what_is_missing_is_told_permission_by_permission():
    rbac = rbac_of(
        role("ClusterRole", "reader", READ_PODS),
        binding("ClusterRoleBinding", "b", "ClusterRole", "reader", USER_ALICE),
    )
    wanted = role("ClusterRole", "greedy", {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods"]})
    assert rbac.missing(ALICE, "", rules_of(wanted)) == [Rule(("delete",), ("",), ("pods",))]
    assert rbac.missing(ROOT, "", rules_of(wanted)) == []


def test_a_binding_to_a_role_that_is_not_there_is_told():
    rbac = rbac_of(
        binding("ClusterRoleBinding", "b", "ClusterRole", "gone", USER_ALICE),
        binding("RoleBinding", "b", "Role", "gone", USER_ALICE, namespace="team"),
    )
    assert rbac.lost(ALICE, "team") == [("ClusterRole", "gone"), ("Role", "gone")]
    decision = rbac.authorize(asks("get", "pods"))
    assert not decision.allowed
    assert decision.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'


def listing(user: User) -> Attributes:
    return asks("list", "configmaps", user=user)


def test_impersonation_needs_permission_for_each_part():
    rbac = rbac_of(
        role("ClusterRole", "imp", {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}),
        binding("ClusterRoleBinding", "b", "ClusterRole", "imp", USER_ALICE),
    )
    impersonation = Impersonation(rbac)
    assert impersonation.user(ALICE, {}, listing) == ALICE
    assert impersonation.user(ALICE, {"impersonate-user": "bob"}, listing) == User("bob", ("system:authenticated",))
    with pytest.raises(ImpersonationDenied) as denied:
        impersonation.user(ALICE, {"impersonate-user": "bob", "impersonate-group": "system:masters"}, listing)
    assert denied.value.attributes.resource == "groups"


def test_constrained_impersonation_needs_a_right_to_the_request_too():
    rules = (
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"]},
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["configmaps"]},
    )
    rbac = rbac_of(
        role("ClusterRole", "imp", *rules), binding("ClusterRoleBinding", "b", "ClusterRole", "imp", USER_ALICE)
    )
    bob = {"impersonate-user": "bob"}
    assert Impersonation(rbac).user(ALICE, bob, listing).name == "bob"
    with pytest.raises(ImpersonationDenied) as denied:
        Impersonation(rbac).user(ALICE, bob, lambda user: asks("get", "configmaps", user=user))
    assert denied.value.attributes.verb == "impersonate-on:user-info:get"


def test_bootstrap_roles_are_kubernetes_own():
    by_name = {(o["kind"], o["metadata"]["name"]): o for o in bootstrap_objects()}
    assert by_name["ClusterRole", "cluster-admin"]["rules"][0]["verbs"] == ["*"]
    assert "aggregationRule" in by_name["ClusterRole", "view"]
    assert ("ClusterRoleBinding", "system:discovery") in by_name


def test_reconciling_a_bootstrap_role_only_adds():
    wanted = role("ClusterRole", "x", READ_PODS)
    own_rule = {"verbs": ["watch"], "apiGroups": [""], "resources": ["pods"]}
    assert reconciled(wanted, role("ClusterRole", "x", own_rule))["rules"] == [own_rule, READ_PODS]
    assert reconciled(wanted, role("ClusterRole", "x", READ_PODS, own_rule)) is None


def test_rules_of_billions_of_permissions_are_refused_at_once():
    rbac = rbac_of(
        role("ClusterRole", "reader", READ_PODS),
        binding("ClusterRoleBinding", "b", "ClusterRole", "reader", USER_ALICE),
    )
    many = tuple(str(number) for number in range(2000))
    huge = Rule(many, many, many, many)
    assert rbac.missing(ALICE, "", [huge] * 1000) == [huge] * 1000
    assert rbac.missing(ALICE, "", [Rule(("get",), ("",), ("pods",))] * 1000) == []


def test_what_rules_name_counts_when_they_are_compared():
    resources = [f"r{number}" for number in range(20_000)]
    everywhere = {"verbs": ["get"], "apiGroups": [""], "resources": resources}
    rbac = rbac_of(
        role("ClusterRole", "wide", everywhere), binding("ClusterRoleBinding", "b", "ClusterRole", "wide", USER_ALICE)
    )
    wanted = rules_of(role("ClusterRole", "same", everywhere))
    assert rbac.missing(ALICE, "", wanted) == []
    assert rbac.missing(ALICE, "", wanted * 1000) != []


def test_who_has_a_role_holds_what_is_in_it_however_much_that_is():
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{number}"]} for number in range(2000)]
    rbac = rbac_of(
        role("ClusterRole", "long", *rules), binding("ClusterRoleBinding", "b", "ClusterRole", "long", USER_ALICE)
    )
    held = rbac.role_rules("ClusterRole", "", "long")
    assert held is not None
    assert rbac.missing(ALICE, "", held) == []


def test_a_role_that_is_bound_many_times_is_looked_at_once(monkeypatch):
    rbac = rbac_of(
        role("Role", "reader", READ_PODS, namespace="team"),
        *(binding("RoleBinding", f"b{n}", "Role", "reader", USER_ALICE, namespace="team") for n in range(100)),
    )
    looked = []
    monkeypatch.setattr(rbac_module, "_allow", lambda rules, asked: looked.append(rules))
    assert not rbac.authorize(asks("delete", "pods", namespace="team")).allowed
    assert len(looked) == 1
    assert len(list(rbac.rules_for(ALICE, "team"))) == 1


def test_a_role_that_names_too_much_is_held_without_its_repetitions():
    verbs = ["get", *["list"] * 100_000, "get"]
    rbac = rbac_of(
        role("ClusterRole", "many", {**READ_PODS, "verbs": verbs}),
        role("ClusterRole", "twice", {**READ_PODS, "verbs": ["get", "get"]}),
        binding("ClusterRoleBinding", "b", "ClusterRole", "many", USER_ALICE),
    )
    assert list(rbac.rules_for(ALICE, "")) == [Rule(("get", "list"), ("",), ("pods",))]
    assert rbac.authorize(asks("list", "pods")).allowed
    assert rbac.role_rules("ClusterRole", "", "twice") == (Rule(("get", "get"), ("",), ("pods",)),)


def test_what_is_held_in_parts_is_held():
    parts = (
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/log"]},
        {"verbs": ["list"], "apiGroups": ["*"], "resources": ["pods"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]},
        {"verbs": ["*"], "nonResourceURLs": ["/logs/*"]},
    )
    rbac = rbac_of(
        role("ClusterRole", "parts", *parts), binding("ClusterRoleBinding", "b", "ClusterRole", "parts", USER_ALICE)
    )

    def lacks(**rule: list[str]) -> list[Rule]:
        return rbac.missing(ALICE, "", rules_of({"rules": [rule]}))

    assert lacks(verbs=["get", "list"], apiGroups=[""], resources=["pods"]) == []
    assert lacks(verbs=["get", "list"], apiGroups=[""], resources=["pods", "pods/log"]) == [
        Rule(("list",), ("",), ("pods/log",))
    ]
    assert lacks(verbs=["get"], apiGroups=[""], resources=["secrets"], resourceNames=["mine", "other"]) == [
        Rule(("get",), ("",), ("secrets",), ("other",))
    ]
    assert lacks(verbs=["get"], apiGroups=[""], resources=["secrets"]) == [Rule(("get",), ("",), ("secrets",))]
    assert lacks(verbs=["get", "put"], nonResourceURLs=["/logs/a", "/logs"]) == [
        Rule(("get",), urls=("/logs",)),
        Rule(("put",), urls=("/logs",)),
    ]


def words(*of: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(of), min_size=1, max_size=3)


VERBS = words("get", "list", "*")
RULES = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": VERBS,
            "apiGroups": words("", "apps", "*"),
            "resources": words("pods", "pods/log", "*/log", "*"),
            "resourceNames": st.one_of(st.just([]), words("a", "b")),
        }
    ),
    st.fixed_dictionaries({"verbs": VERBS, "nonResourceURLs": words("/logs", "/logs/a", "/logs/*", "*")}),
)


@given(held=st.lists(RULES, max_size=4), wanted=st.lists(RULES, max_size=3))
def test_what_is_missing_is_what_would_be_denied(held, wanted):
    rbac = rbac_of(role("ClusterRole", "r", *held), binding("ClusterRoleBinding", "b", "ClusterRole", "r", USER_ALICE))

    def denied(verb: str, **asked: str) -> bool:
        resource, _, subresource = asked.pop("resource", "").partition("/")
        return not rbac.authorize(Attributes(ALICE, verb, resource=resource, subresource=subresource, **asked)).allowed

    expected = [
        (verb, group, resource, name)
        for rule in wanted
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for name in rule.get("resourceNames") or [""]
        if denied(verb, group=group, resource=resource, name=name)
    ] + [
        (verb, url)
        for rule in wanted
        for verb in rule["verbs"]
        for url in rule.get("nonResourceURLs", ())
        if denied(verb, path=url)
    ]
    told = [
        (verb, *rule.groups, *rule.resources, *(rule.names or [""] * len(rule.groups)), *rule.urls)
        for rule in rbac.missing(ALICE, "", rules_of({"rules": wanted}))
        for verb in rule.verbs
    ]
    assert sorted(told) == sorted(expected)
