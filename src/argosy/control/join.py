"""Joining: what is made in a member so that it belongs to this federation, and undone when it leaves.

The system namespace in the member carries our FederatedCluster's uid: a member that belongs to somebody else is not taken.
Functions over a member's client; the loop that calls them is `clusters`.
"""

import asyncio
import base64
from typing import Any

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, NotFound
from argosy.kube.resource import Resource

__all__ = ["NAMESPACES", "SECRETS", "Unjoinable", "claim", "mint_token", "release"]

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_RBAC = "rbac.authorization.k8s.io"
_ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)

_TOKEN_WAIT = 30.0
_TOKEN_POLL = 1.0


class Unjoinable(Exception):
    """The member already belongs to another federation."""


async def claim(client: Client, cluster: FederatedCluster) -> dict[str, Any]:
    """Make the system namespace ours, or find that it is; raises Unjoinable. Returns the namespace."""
    try:
        namespace = await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    except NotFound:
        manifest = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": keys.SYSTEM_NAMESPACE,
                "annotations": {keys.FEDERATED_CLUSTER_UID: cluster.metadata.uid},
            },
        }
        try:
            return await client.create(NAMESPACES, manifest)
        except AlreadyExists:
            namespace = await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    owner = (namespace["metadata"].get("annotations") or {}).get(keys.FEDERATED_CLUSTER_UID)
    if owner != cluster.metadata.uid:
        raise Unjoinable
    return namespace


async def release(client: Client, cluster: FederatedCluster) -> None:
    """Give the member up. Only a namespace that carries our uid is deleted, and by its own uid."""
    try:
        namespace = await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    except NotFound:
        return
    metadata = namespace["metadata"]
    if (metadata.get("annotations") or {}).get(keys.FEDERATED_CLUSTER_UID) != cluster.metadata.uid:
        return
    try:
        await client.delete(NAMESPACES, keys.SYSTEM_NAMESPACE, uid=metadata["uid"])
    except NotFound:
        return


async def mint_token(client: Client, namespace: dict[str, Any]) -> bytes:
    """A long-lived service-account token with rights on everything; raises TimeoutError where none is issued."""
    owner = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": namespace["metadata"]["name"],
        "uid": namespace["metadata"]["uid"],
    }
    await _ensure(client, _ACCOUNTS, _account())
    await _ensure(client, SECRETS, _token_secret())
    await _ensure_role(client, owner)
    await _ensure_binding(client, owner)
    async with asyncio.timeout(_TOKEN_WAIT):
        while True:
            secret = await client.get(SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
            token = (secret.get("data") or {}).get("token")
            if token:
                return base64.b64decode(token)
            await asyncio.sleep(_TOKEN_POLL)


async def _ensure(client: Client, resource: Resource, manifest: dict[str, Any]) -> None:
    try:
        await client.create(resource, manifest)
    except AlreadyExists:
        return


async def _ensure_role(client: Client, owner: dict[str, Any]) -> None:
    wanted = _role(owner)
    try:
        await client.create(_ROLES, wanted)
    except AlreadyExists:
        found = await client.get(_ROLES, keys.MEMBER_CLUSTER_ROLE)
        if found.get("rules") != wanted["rules"]:
            await client.update(_ROLES, {**found, "rules": wanted["rules"]})


async def _ensure_binding(client: Client, owner: dict[str, Any]) -> None:
    wanted = _binding(owner)
    try:
        await client.create(_BINDINGS, wanted)
        return
    except AlreadyExists:
        found = await client.get(_BINDINGS, keys.MEMBER_CLUSTER_ROLE)
    if found.get("roleRef") != wanted["roleRef"]:  # a role reference cannot be changed
        await client.delete(_BINDINGS, keys.MEMBER_CLUSTER_ROLE, uid=found["metadata"]["uid"])
        await client.create(_BINDINGS, wanted)
    elif found.get("subjects") != wanted["subjects"]:
        await client.update(_BINDINGS, {**found, "subjects": wanted["subjects"]})


def _account() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": keys.MEMBER_SERVICE_ACCOUNT,
            "namespace": keys.SYSTEM_NAMESPACE,
            "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"},
        },
        "automountServiceAccountToken": False,
    }


def _token_secret() -> dict[str, Any]:
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


def _role(owner: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": keys.MEMBER_CLUSTER_ROLE, "ownerReferences": [owner]},
        "rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["get"], "nonResourceURLs": ["*"]},
        ],
    }


def _binding(owner: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": keys.MEMBER_CLUSTER_ROLE, "ownerReferences": [owner]},
        "subjects": [
            {"kind": "ServiceAccount", "name": keys.MEMBER_SERVICE_ACCOUNT, "namespace": keys.SYSTEM_NAMESPACE}
        ],
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": keys.MEMBER_CLUSTER_ROLE},
    }
