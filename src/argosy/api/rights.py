"""Rights: the controllers' rights on the control plane, as RBAC manifests: only the verbs they use.

Two cluster roles: one for the federation's own kinds, which never changes, and one for the kinds of the type configs, which is
made from them. Secrets with members' credentials, leases and the ConfigMaps of shards are granted in the system namespace only;
secrets elsewhere only as long as a type config federates secrets.

Rules for kinds are not aggregated by label: that needs a controller which a federation's control plane does not run.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.api import keys
from argosy.api.typeconfigs import FederatedTypeConfig

__all__ = [
    "CONTROLLERS",
    "GROUP",
    "SERVICE_ACCOUNT",
    "SOURCES",
    "Subject",
    "identities",
    "manifests",
    "source_rules",
    "user",
    "username",
]

Rule = dict[str, Any]
Subject = dict[str, str]

GROUP: Final = "rbac.authorization.k8s.io"
#: The name of the service account, of the roles and of their bindings.
CONTROLLERS: Final = "argosy-controllers"
SOURCES: Final = f"{CONTROLLERS}-sources"
SERVICE_ACCOUNT: Final[Subject] = {"kind": "ServiceAccount", "name": CONTROLLERS, "namespace": keys.SYSTEM_NAMESPACE}

_READ = ["get", "list", "watch"]
_FEDERATED = ["federatedobjects", "clusterfederatedobjects"]
_COLLECTED = ["collectedstatuses", "clustercollectedstatuses"]
_POLICIES = ["propagationpolicies", "clusterpropagationpolicies", "overridepolicies", "clusteroverridepolicies"]
_SCHEDULING = ["schedulingprofiles", "schedulerpluginwebhookconfigurations"]


def user(name: str) -> Subject:
    """A subject that is not a service account, for somebody else who runs the controllers."""
    return {"kind": "User", "name": name, "apiGroup": GROUP}


def username(subject: Subject) -> str:
    """The subject's user name in the API server."""
    if subject["kind"] == "ServiceAccount":
        return f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    return subject["name"]


def identities(subjects: Iterable[Subject]) -> tuple[set[str], set[str]]:
    """The users and the groups that the subjects name."""
    users = {username(each) for each in subjects if each["kind"] != "Group"}
    return users, {each["name"] for each in subjects if each["kind"] == "Group"}


def manifests(configs: Iterable[FederatedTypeConfig] | None, subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """Service account, roles and bindings. Without type configs, any kind may be a source."""
    sources = [_ANY_SOURCE] if configs is None else source_rules(configs)
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(CONTROLLERS, keys.SYSTEM_NAMESPACE)},
        _role("ClusterRole", CONTROLLERS, _own_rules()),
        _binding("ClusterRoleBinding", "ClusterRole", CONTROLLERS, subjects),
        _role("ClusterRole", SOURCES, sources),
        _binding("ClusterRoleBinding", "ClusterRole", SOURCES, subjects),
        _role("Role", CONTROLLERS, _system_rules(), keys.SYSTEM_NAMESPACE),
        _binding("RoleBinding", "Role", CONTROLLERS, subjects, keys.SYSTEM_NAMESPACE),
    ]


def source_rules(configs: Iterable[FederatedTypeConfig]) -> list[Rule]:
    """Read sources, set our finalizer and annotations, write their status. A blocking owner reference to a source needs the
    right to its finalizers, if the API server checks that."""
    read: dict[str, set[str]] = {}
    status: dict[str, set[str]] = {}
    for config in configs:
        source = config.spec.source_type
        read.setdefault(source.group, set()).add(source.plural_name)
        if config.spec.status_aggregation.enabled:
            status.setdefault(source.group, set()).add(f"{source.plural_name}/status")
    rules = []
    for group in sorted(read):
        plurals = sorted(read[group])
        rules.append(_rule([group], plurals, [*_READ, "patch"]))
        rules.append(_rule([group], [f"{plural}/finalizers" for plural in plurals], ["update"]))
        if group in status:
            rules.append(_rule([group], sorted(status[group]), ["patch"]))
    return rules


def _own_rules() -> list[Rule]:
    own = [keys.GROUP]
    return [
        _rule(own, [*_POLICIES, *_SCHEDULING], _READ),
        # Those made from definitions, which come and go.
        _rule(own, ["federatedtypeconfigs"], [*_READ, "create", "patch", "delete"]),
        _rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _READ),
        _rule(own, ["federatedclusters"], [*_READ, "patch"]),
        _rule(own, _FEDERATED, [*_READ, "create", "update", "patch", "delete"]),
        _rule(own, _COLLECTED, [*_READ, "create", "update"]),
        _rule(own, [f"{plural}/status" for plural in ("federatedclusters", *_FEDERATED, *_POLICIES)], ["patch"]),
        _rule(own, [f"{plural}/finalizers" for plural in ("federatedclusters", *_FEDERATED)], ["update"]),
        _rule([""], ["events"], ["create", "patch"]),
        _rule(["scheduling.k8s.io"], ["priorityclasses"], _READ),
        # The annotation of ours pauses the fleet; policies select by the labels of others.
        _rule([""], ["namespaces"], _READ),
    ]


def _system_rules() -> list[Rule]:
    return [
        _rule([""], ["secrets"], [*_READ, "patch"]),
        # In which shards publish their reservations.
        _rule([""], ["configmaps"], [*_READ, "create", "patch"]),
        _rule(["coordination.k8s.io"], ["leases"], ["get", "list", "create", "update"]),
    ]


#: For a control plane of our own, where a new type config should need nothing else.
_ANY_SOURCE: Final[Rule] = {"apiGroups": ["*"], "resources": ["*"], "verbs": [*_READ, "update", "patch"]}


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> Rule:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _role(kind: str, name: str, rules: list[Rule], namespace: str = "") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace), "rules": rules}


def _binding(kind: str, role: str, name: str, subjects: Sequence[Subject], namespace: str = "") -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": _metadata(name, namespace),
        "subjects": list(subjects),
        "roleRef": {"apiGroup": GROUP, "kind": role, "name": name},
    }


def _metadata(name: str, namespace: str = "") -> dict[str, Any]:
    """Our own objects are not to be federated."""
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {**metadata, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}
