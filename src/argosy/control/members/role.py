"""The rights of the control plane in a member that it enters with a service account, as RBAC objects.

The rights follow the type configs: for each kind the verbs that dispatch, collect and cascade use, and besides them those for
probing, leaving and renewing the account's own token. Values only; `join` writes them.

Kubernetes lets nobody grant rights through a role without holding them, except with the verb `escalate` (for bindings: `bind`).
So if roles and bindings are federated kinds, writing them to a member needs those two verbs, and only then are they granted. An
account with `escalate` on cluster roles can also extend its own role when type configs are added; any other can only narrow it.
"""

from collections.abc import Iterable
from typing import Any

from argosy.api import keys
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.fleet.katalyst import CUSTOM_NODE_RESOURCES, asks_for_katalyst
from argosy.kube.references import object_reference

__all__ = [
    "FULL_ACCESS",
    "account",
    "cluster_role",
    "cluster_role_binding",
    "is_ours",
    "own_role",
    "own_role_binding",
    "rules_for",
    "token_secret",
]

Object = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = [{"kind": "ServiceAccount", "name": keys.MEMBER_SERVICE_ACCOUNT, "namespace": keys.SYSTEM_NAMESPACE}]
_READ = ["get", "list", "watch"]
#: What dispatch, collect and cascade do to objects of a federated kind.
_VERBS = [*_READ, "create", "update", "delete"]
#: federated kind -> (verb, the resources it is needed on)
_ESCALATIONS = {
    "roles": ("escalate", ["roles"]),
    "clusterroles": ("escalate", ["clusterroles"]),
    "rolebindings": ("bind", ["clusterroles", "roles"]),
    "clusterrolebindings": ("bind", ["clusterroles"]),
}
_MADE_HERE = {"app.kubernetes.io/managed-by": "argosy"}

#: KubeAdmiral's rights: everything.
FULL_ACCESS: list[Object] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["get"]},
]


def rules_for(cluster: FederatedCluster, configs: Iterable[FederatedTypeConfig]) -> list[Object]:
    """The rules of the member's cluster role. The order of the type configs does not matter."""
    if cluster.metadata.annotations.get(keys.MEMBER_ACCESS) == keys.FULL:
        return FULL_ACCESS
    plurals: dict[str, set[str]] = {}
    for config in configs:
        plurals.setdefault(config.resource.group, set()).add(config.resource.plural)
    rules = [_rule(group, sorted(plurals[group]), _VERBS) for group in sorted(plurals)]
    if "deployments" in plurals.get("apps", ()):
        # ReplicaSets tell which workload pending pods belong to.
        rules.append(_rule("apps", ["replicasets"], ["list"]))
    if plurals.get("apps", set()) & {"statefulsets", "daemonsets"} or "jobs" in plurals.get("batch", ()):
        # Only events tell why pods of these are not created.
        rules.append(_rule("", ["events"], ["list"]))
    for plural in sorted(plurals.get(_RBAC, set()) & _ESCALATIONS.keys()):
        verb, targets = _ESCALATIONS[plural]
        rules.append(_rule(_RBAC, targets, [verb]))
    if asks_for_katalyst(cluster.metadata.annotations):
        rules.append(_rule(CUSTOM_NODE_RESOURCES.group, [CUSTOM_NODE_RESOURCES.plural], _READ))
    rules += [
        _rule("", ["nodes", "pods"], _READ),
        _rule("", ["namespaces"], ["get", "delete"], keys.SYSTEM_NAMESPACE),
        # Its own rights: the API server allows only to narrow them this way, not to extend them.
        _rule(_RBAC, ["clusterroles"], ["get", "update"], keys.MEMBER_CLUSTER_ROLE),
        {"nonResourceURLs": ["/healthz", "/version", "/api", "/api/*", "/apis", "/apis/*"], "verbs": ["get"]},
    ]
    return rules


def _rule(group: str, resources: list[str], verbs: list[str], name: str = "") -> Object:
    rule: Object = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    if name:
        rule["resourceNames"] = [name]
    return rule


def is_ours(role: Object) -> bool:
    """Whether we made the role. A role made by KubeAdmiral or a user is not narrowed."""
    return _MADE_HERE.items() <= (role["metadata"].get("labels") or {}).items()


def account() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": keys.MEMBER_SERVICE_ACCOUNT, "namespace": keys.SYSTEM_NAMESPACE},
        "automountServiceAccountToken": False,
    }


def token_secret() -> Object:
    """A secret for a legacy token, for members that issue no other."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": keys.MEMBER_SERVICE_ACCOUNT,
            "namespace": keys.SYSTEM_NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": keys.MEMBER_SERVICE_ACCOUNT},
        },
    }


def cluster_role(namespace: Object, rules: list[Object]) -> Object:
    """Owned by the system namespace, and deleted with it."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": keys.MEMBER_CLUSTER_ROLE,
            "labels": _MADE_HERE,
            "ownerReferences": [_owner(namespace)],
        },
        "rules": rules,
    }


def cluster_role_binding(namespace: Object) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": keys.MEMBER_CLUSTER_ROLE, "ownerReferences": [_owner(namespace)]},
        "subjects": _ACCOUNT,
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": keys.MEMBER_CLUSTER_ROLE},
    }


def own_role() -> Object:
    """In the system namespace: the account may request its own next token, and no other."""
    rule = _rule("", ["serviceaccounts/token"], ["create"], keys.MEMBER_SERVICE_ACCOUNT)
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": keys.MEMBER_SERVICE_ACCOUNT, "namespace": keys.SYSTEM_NAMESPACE},
        "rules": [rule],
    }


def own_role_binding() -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": keys.MEMBER_SERVICE_ACCOUNT, "namespace": keys.SYSTEM_NAMESPACE},
        "subjects": _ACCOUNT,
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": keys.MEMBER_SERVICE_ACCOUNT},
    }


def _owner(namespace: Object) -> Object:
    metadata = namespace["metadata"]
    return object_reference("v1", "Namespace", metadata["name"], metadata["uid"])
