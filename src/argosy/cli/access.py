"""The controllers' own identity on the control plane, and the rights it needs there: no more than these.

They read every kind that may be federated and keep finalizers, annotations and status on sources; what they create and
delete is their own group's objects and events alone.
"""

from typing import Any

from argosy.api import keys
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists
from argosy.kube.resource import Resource

__all__ = ["CONTROLLERS", "grant"]

CONTROLLERS = "system:argosy:controllers"
_GROUP = "rbac.authorization.k8s.io"
_ROLES = Resource(_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
_BINDINGS = Resource(_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_RULES = [
    {"apiGroups": [keys.GROUP], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "update", "patch"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
]


async def grant(client: Client) -> None:
    """Create the role and its binding, and bring the rules up to this version."""
    try:
        await client.create(_ROLES, _role())
    except AlreadyExists:
        found = await client.get(_ROLES, CONTROLLERS)
        if found.get("rules") != _RULES:
            await client.update(_ROLES, {**found, "rules": _RULES})
    try:
        await client.create(_BINDINGS, _binding())
    except AlreadyExists:
        return


def _role() -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": CONTROLLERS},
        "rules": _RULES,
    }


def _binding() -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": CONTROLLERS},
        "subjects": [{"kind": "User", "name": CONTROLLERS, "apiGroup": _GROUP}],
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": CONTROLLERS},
    }
