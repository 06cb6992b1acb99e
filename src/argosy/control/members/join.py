"""Joining: what is created in a member so that it belongs to this federation, and removed when it leaves.

The system namespace in the member carries our FederatedCluster's uid: a member of another federation is not taken over, and a
cluster without the namespace is not mistaken for one that has joined. Functions over a member's client, called by the loop
(`clusters`, `access`) and by `argosy join`, which has credentials that the control plane never sees.
"""

import asyncio
import base64
import contextlib
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control.members import role
from argosy.fleet.identity import Mismatch, mismatch, recorded
from argosy.fleet.tokens import SHORTEST
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, ApiError, BadAnswer, Forbidden, MethodNotAllowed, NotFound
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource

__all__ = [
    "NAMESPACES",
    "ROLES",
    "SECRETS",
    "NotTheMember",
    "StillLeaving",
    "Unjoinable",
    "claim",
    "claim_anew",
    "confirm",
    "find",
    "furnish",
    "has_joined",
    "is_of",
    "new_token",
    "release",
]

Object = dict[str, Any]

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_OWN_ROLES = Resource(_RBAC, "v1", "roles", "Role")
_OWN_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")

_TOKEN_WAIT = 30.0
_TOKEN_POLL = 1.0


class Unjoinable(Exception):
    """The cluster is a member already: of another federation, or of this one under another name.

    `owner` is the uid of the FederatedCluster that it belongs to; empty if its namespace names none.
    """

    def __init__(self, owner: str) -> None:
        super().__init__(f"namespace {keys.SYSTEM_NAMESPACE} belongs to another FederatedCluster")
        self.owner = owner


class NotTheMember(Exception):
    """The cluster joined, but the one that answers lacks the member's namespace: another cluster, or it was deleted there."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(f"the cluster is not the one that joined: {mismatch}")
        self.mismatch = mismatch


class StillLeaving(Exception):
    """The objects of an earlier membership are still being deleted in the member."""

    def __init__(self) -> None:
        super().__init__(f"namespace {keys.SYSTEM_NAMESPACE} of an earlier membership is still being deleted")


async def claim(client: Client, cluster: FederatedCluster) -> Object:
    """Create the system namespace, or check that it is ours. Returns the namespace.

    Raises Unjoinable, StillLeaving, or NotTheMember for a cluster that has joined and should have it.
    """
    if not has_joined(cluster):
        return await claim_anew(client, cluster)
    namespace = await find(client)
    held = _held(namespace, cluster) if namespace is not None else {}
    different = _different(held or None, cluster)
    if different is not None:
        raise NotTheMember(different)
    return held


async def claim_anew(client: Client, cluster: FederatedCluster) -> Object:
    """As `claim`, also for a cluster that replaces the one that joined."""
    namespace = await find(client)
    if namespace is None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": keys.SYSTEM_NAMESPACE,
                "annotations": {keys.FEDERATED_CLUSTER_UID: cluster.metadata.uid},
            },
        }
        try:
            namespace = await client.create(NAMESPACES, manifest)
        except AlreadyExists:
            namespace = await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    return _held(namespace, cluster)


def _held(namespace: Object, cluster: FederatedCluster) -> Object:
    if namespace["metadata"].get("deletionTimestamp"):
        raise StillLeaving
    if not is_of(namespace, cluster):
        raise Unjoinable(_owner(namespace))
    uid_of(namespace)  # its identity from now on
    return namespace


async def confirm(client: Client, cluster: FederatedCluster) -> None:
    """Return if the recorded member answers. Raises NotTheMember."""
    different = _different(await find(client), cluster)
    if different is not None:
        raise NotTheMember(different)


def _different(namespace: Object | None, cluster: FederatedCluster) -> Mismatch | None:
    metadata = msgspec.convert(namespace["metadata"], Metadata) if namespace is not None else None
    return mismatch(recorded(cluster), metadata)


def has_joined(cluster: FederatedCluster) -> bool:
    """Whether there is a member, with our namespace and perhaps our copies, that must not be confused with another."""
    return cluster.joined or cluster.status.join_performed


async def find(client: Client) -> Object | None:
    """The system namespace of the cluster that answers."""
    try:
        return await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    except NotFound:
        return None


async def cluster_id(client: Client) -> str:
    """What tells a cluster from others, also when our namespace is gone. Empty if it may not be read.

    Raises NotFound if it is no cluster that answers: each has this namespace.
    """
    try:
        namespace = await client.get(NAMESPACES, "kube-system")
    except Forbidden:
        return ""
    return str(namespace["metadata"].get("uid") or "")


def is_of(namespace: Object, cluster: FederatedCluster) -> bool:
    """Whether this system namespace belongs to the member that joined."""
    return _owner(namespace) == cluster.metadata.uid


def _owner(namespace: Object) -> str:
    return str((namespace["metadata"].get("annotations") or {}).get(keys.FEDERATED_CLUSTER_UID) or "")


async def release(client: Client, cluster: FederatedCluster) -> Mismatch | None:
    """Release the member: account, roles and bindings are deleted with the namespace.

    Only the namespace of the recorded member is deleted, by its own uid. Returns why the cluster that answers is another one.
    """
    namespace = await find(client)
    different = _different(namespace, cluster)
    if namespace is None or different is not None:
        return different
    with contextlib.suppress(NotFound):
        await client.delete(NAMESPACES, keys.SYSTEM_NAMESPACE, uid=uid_of(namespace))
    return None


async def furnish(client: Client, namespace: Object, rules: list[Object]) -> None:
    """Create or update the service account and its rights."""
    await _ensure(client, _ACCOUNTS, role.account())
    await ensure_role(client, namespace, rules)
    await _ensure_binding(client, _BINDINGS, role.cluster_role_binding(namespace))
    await _ensure_rules(client, _OWN_ROLES, role.own_role())
    await _ensure_binding(client, _OWN_BINDINGS, role.own_role_binding())


async def ensure_role(client: Client, namespace: Object, rules: list[Object]) -> None:
    await _ensure_rules(client, ROLES, role.cluster_role(namespace, rules))


async def new_token(client: Client, lifetime: float) -> bytes:
    """A token of the service account that expires; if the member issues none, one from a legacy token secret.

    Raises NotFound when the account is missing, TimeoutError when a legacy secret is not filled.
    """
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": max(int(lifetime), SHORTEST)},
    }
    try:
        answer = await client.create(
            _ACCOUNTS, body, keys.SYSTEM_NAMESPACE, name=keys.MEMBER_SERVICE_ACCOUNT, subresource="token"
        )
        return _issued(answer)
    except (NotFound, MethodNotAllowed) as error:
        if _names_account(error):
            raise
    return await _legacy_token(client)


def _issued(answer: Object) -> bytes:
    status = answer.get("status")
    token = status.get("token") if isinstance(status, dict) else None
    if not token or not isinstance(token, str):
        raise BadAnswer("the request for a token was answered without one")
    return token.encode()


def uid_of(namespace: Object) -> str:
    """The uid tells a namespace from a later one of the same name."""
    uid = namespace["metadata"].get("uid")
    if not uid:
        raise BadAnswer(f"namespace {keys.SYSTEM_NAMESPACE} has no uid")
    return str(uid)


async def _legacy_token(client: Client) -> bytes:
    await _ensure(client, SECRETS, role.token_secret())
    async with asyncio.timeout(_TOKEN_WAIT):
        while True:
            secret = await client.get(SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
            data = secret.get("data")
            token = data.get("token") if isinstance(data, dict) else None
            if token:
                try:
                    return base64.b64decode(token)
                except (ValueError, TypeError):
                    raise BadAnswer("the secret of the service account holds no token") from None
            await asyncio.sleep(_TOKEN_POLL)


def _names_account(error: ApiError) -> bool:
    """Whether the account was not found, rather than the token subresource."""
    details = error.status.get("details") or {}
    return bool(details.get("kind") == "serviceaccounts" and details.get("name"))


async def _ensure(client: Client, resource: Resource, manifest: Object) -> None:
    try:
        await client.create(resource, manifest)
    except AlreadyExists:
        return


async def _ensure_rules(client: Client, resource: Resource, wanted: Object) -> None:
    metadata = wanted["metadata"]
    try:
        await client.create(resource, wanted)
        return
    except AlreadyExists:
        found = await client.get(resource, metadata["name"], metadata.get("namespace"))
    labels = {**(found["metadata"].get("labels") or {}), **metadata.get("labels", {})}
    if found.get("rules") == wanted["rules"] and labels == (found["metadata"].get("labels") or {}):
        return
    changed: Object = {**found, "metadata": {**found["metadata"]}, "rules": wanted["rules"]}
    if labels:
        changed["metadata"]["labels"] = labels
    await client.update(resource, changed)


async def _ensure_binding(client: Client, resource: Resource, wanted: Object) -> None:
    name, namespace = wanted["metadata"]["name"], wanted["metadata"].get("namespace")
    try:
        await client.create(resource, wanted)
        return
    except AlreadyExists:
        found = await client.get(resource, name, namespace)
    if found.get("roleRef") != wanted["roleRef"]:  # roleRef is immutable
        await client.delete(resource, name, namespace, uid=found["metadata"].get("uid"))
        await client.create(resource, wanted)
    elif found.get("subjects") != wanted["subjects"]:
        await client.update(resource, {**found, "subjects": wanted["subjects"]})
