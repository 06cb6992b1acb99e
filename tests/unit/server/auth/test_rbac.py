"""RBAC decisions, escalation and impersonation on small hand-made roles."""

import pytest

from argosy.server.auth.bootstrap import bootstrap_objects, reconciled
from argosy.server.auth.escalation import refusal
from argosy.server.auth.impersonation import ImpersonationDenied, impersonated
from argosy.server.auth.rbac import Rbac
from argosy.server.identity import Attributes, User

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
        rbac.observe(obj["kind"], None, obj)
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
    rbac.observe("ClusterRoleBinding", grant, None)
    assert not rbac.authorize(asks("get", "pods")).allowed


def test_nobody_grants_what_they_do_not_hold():
    rbac = rbac_of(
        role("ClusterRole", "reader", READ_PODS),
        binding("ClusterRoleBinding", "b", "ClusterRole", "reader", USER_ALICE),
    )
    harmless = role("ClusterRole", "copy", READ_PODS)
    assert refusal(rbac, ALICE, "ClusterRole", harmless, None) is None
    greedy = role("ClusterRole", "greedy", {"verbs": ["delete"], "apiGroups": [""], "resources": ["pods", "secrets"]})
    assert refusal(rbac, ALICE, "ClusterRole", greedy, None) == (
        'user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["delete"]}'
    )
    assert refusal(rbac, ROOT, "ClusterRole", greedy, None) is None
    assert refusal(rbac, ALICE, "ClusterRole", greedy, greedy) is None, "an unchanged role grants nothing new"


def test_binding_a_role_needs_its_permissions():
    rbac = rbac_of(role("ClusterRole", "reader", READ_PODS))
    wanted = binding("ClusterRoleBinding", "mine", "ClusterRole", "reader", USER_ALICE)
    assert "not currently held" in str(refusal(rbac, ALICE, "ClusterRoleBinding", wanted, None))


def test_impersonation_needs_permission_for_each_part():
    rbac = rbac_of(
        role("ClusterRole", "imp", {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}),
        binding("ClusterRoleBinding", "b", "ClusterRole", "imp", USER_ALICE),
    )
    assert impersonated(ALICE, {}, rbac) == ALICE
    assert impersonated(ALICE, {"impersonate-user": "bob"}, rbac) == User("bob", ("system:authenticated",))
    with pytest.raises(ImpersonationDenied) as denied:
        impersonated(ALICE, {"impersonate-user": "bob", "impersonate-group": "system:masters"}, rbac)
    assert denied.value.attributes.resource == "groups"


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
