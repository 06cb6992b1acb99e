"""Membership: what makes a cluster a member, as objects on the control plane: its FederatedCluster and the secret beside it.

Used by `join` (also through `service_account`), `unjoin`, and by `up` for the members it simulates.
"""

import asyncio
import base64
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from argosy.api import keys, resources
from argosy.api.conditions import JOINED, READY, TERMINAL_JOIN_REASONS
from argosy.api.types import FederatedCluster
from argosy.cli.output.failures import Failure
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound, TransportError
from argosy.kube.references import reference_of
from argosy.kube.resource import Resource

__all__ = [
    "SECRETS",
    "USERS_KEYS",
    "adjust",
    "annotate",
    "declare",
    "find",
    "label",
    "leave",
    "put_secret",
    "register",
    "uses_service_account",
    "wait_gone",
    "wait_ready",
]

SECRETS = Resource("", "v1", "secrets", "Secret")
#: In the secret, the user's own credentials; a service account needs none of them.
USERS_KEYS = (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY, keys.SECRET_BOOTSTRAP_TOKEN)
#: On secrets that were made here, so that leaving removes those and no others.
_MADE_HERE = {"app.kubernetes.io/managed-by": "argosy"}
_OWNER = "FederatedCluster"
_POLL = 0.2


async def register(client: Client, name: str, connection: Connection, labels: dict[str, str]) -> bool:
    """Have the control plane come with the connection's own credentials; True when the cluster is new.

    The cluster comes first, so that its secret belongs to it from the start; the controllers wait a moment for that one.
    """
    user = {
        keys.SECRET_CLIENT_CERTIFICATE: connection.client_certificate or None,
        keys.SECRET_CLIENT_KEY: connection.client_key or None,
        keys.SECRET_BOOTSTRAP_TOKEN: connection.token.encode() or None,
    }
    data = {keys.SECRET_CA: connection.ca_data or None, **user}
    found = await find(client, name)
    if found is None:
        manifest = _manifest(name, connection, labels, False)
        cluster = await client.create(resources.FEDERATED_CLUSTERS, manifest, into=FederatedCluster)
        try:
            await put_secret(client, cluster, data, connection.server)
        except BaseException:
            with contextlib.suppress(ApiError, TransportError):
                await client.delete(resources.FEDERATED_CLUSTERS, name, uid=cluster.metadata.uid)
            raise
        return True
    await put_secret(client, found, data, connection.server)
    await adjust(client, found, connection, use_service_account=False)
    await put_secret(client, found, {keys.SECRET_SERVICE_ACCOUNT_TOKEN: None}, connection.server)
    return False


async def declare(
    client: Client, name: str, connection: Connection, labels: dict[str, str]
) -> tuple[FederatedCluster, bool]:
    """The FederatedCluster of a member that is entered with a service account, and whether it is new."""
    manifest = _manifest(name, connection, labels, True)
    try:
        return await client.create(resources.FEDERATED_CLUSTERS, manifest, into=FederatedCluster), True
    except AlreadyExists:
        return await client.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster), False


async def label(client: Client, name: str, labels: dict[str, str]) -> None:
    """Have these labels on a member that is there already, beside those it has."""
    found = await find(client, name)
    if found is not None and not labels.items() <= found.metadata.labels.items():
        await client.patch(resources.FEDERATED_CLUSTERS, name, {"metadata": {"labels": labels}})


async def annotate(client: Client, cluster: FederatedCluster, annotations: dict[str, str]) -> FederatedCluster:
    if annotations.items() <= cluster.metadata.annotations.items():
        return cluster
    change = {"metadata": {"annotations": annotations}}
    return await client.patch(resources.FEDERATED_CLUSTERS, cluster.name, change, into=FederatedCluster)


async def adjust(
    client: Client, cluster: FederatedCluster, connection: Connection, *, use_service_account: bool
) -> None:
    """Where it is and how it is entered, if that changed since."""
    wanted = {
        "apiEndpoint": connection.server,
        "insecure": connection.insecure,
        "useServiceAccount": use_service_account,
    }
    spec = cluster.spec
    present = {
        "apiEndpoint": spec.api_endpoint,
        "insecure": spec.insecure,
        "useServiceAccount": spec.use_service_account,
    }
    change = {key: value for key, value in wanted.items() if present[key] != value}
    if change:
        await client.patch(resources.FEDERATED_CLUSTERS, cluster.name, {"spec": change})


async def uses_service_account(client: Client, name: str) -> bool | None:
    """How a member is entered; None when there is no such member."""
    found = await find(client, name)
    return found.spec.use_service_account if found is not None else None


async def find(client: Client, name: str) -> FederatedCluster | None:
    try:
        return await client.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster)
    except NotFound:
        return None


def _manifest(name: str, connection: Connection, labels: dict[str, str], use_service_account: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"apiEndpoint": connection.server, "secretRef": {"name": name}}
    if connection.insecure:
        spec["insecure"] = True
    if use_service_account:
        spec["useServiceAccount"] = True
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


async def put_secret(client: Client, cluster: FederatedCluster, data: Mapping[str, bytes | None], server: str) -> None:
    """Have these keys with these values in the member's secret, which serves that member, at that address; None is one that is
    not to be there.

    A secret that was made here belongs to the cluster and goes with it.
    """
    name = cluster.spec.secret_ref.name
    wanted = {key: base64.b64encode(value).decode() if value else None for key, value in data.items()}
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": keys.SYSTEM_NAMESPACE,
            "labels": _MADE_HERE,
            "annotations": _bound(cluster, server),
            "ownerReferences": [_reference(cluster)],
        },
        "data": {key: value for key, value in wanted.items() if value is not None},
    }
    try:
        found = await client.get(SECRETS, name, keys.SYSTEM_NAMESPACE)
    except NotFound:
        with contextlib.suppress(AlreadyExists):
            await client.create(SECRETS, manifest)
            return
        found = await client.get(SECRETS, name, keys.SYSTEM_NAMESPACE)
    stored = found.get("data") or {}
    change = _handed_over(found, cluster)
    annotations = found["metadata"].get("annotations") or {}
    if not _bound(cluster, server).items() <= annotations.items():
        change["metadata"] = {**change.get("metadata", {}), "annotations": _bound(cluster, server)}
    if any(stored.get(key) != value for key, value in wanted.items()):
        change["data"] = wanted
    if change:
        await client.patch(SECRETS, name, change, keys.SYSTEM_NAMESPACE)


def _bound(cluster: FederatedCluster, server: str) -> dict[str, str]:
    return {keys.BOUND_TO: f"{cluster.name}={server.rstrip('/')}"}


def _reference(cluster: FederatedCluster) -> dict[str, Any]:
    return reference_of(resources.FEDERATED_CLUSTERS, cluster.metadata)


def _handed_over(secret: dict[str, Any], cluster: FederatedCluster) -> dict[str, Any]:
    """What to change so that the secret goes with the cluster; nothing about one that somebody else made."""
    owners = secret["metadata"].get("ownerReferences") or []
    others = [owner for owner in owners if owner.get("kind") != _OWNER]
    wanted = [*others, _reference(cluster)]
    if not _made_here(secret) or owners == wanted:
        return {}
    return {"metadata": {"ownerReferences": wanted}}


def _made_here(secret: dict[str, Any]) -> bool:
    return _MADE_HERE.items() <= (secret["metadata"].get("labels") or {}).items()


async def wait_ready(client: Client, name: str, timeout: float, step: Callable[[str], None]) -> None:
    """Until the controllers say the member has joined and is ready. Raises Failure with what they said last."""
    told = ""
    try:
        async with asyncio.timeout(timeout):
            while True:
                cluster = await client.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster)
                if cluster.joined and cluster.ready:
                    return
                joined = cluster.condition(JOINED)
                if joined is not None and joined.reason in TERMINAL_JOIN_REASONS:
                    raise Failure(f"{name} cannot join: {joined.message}", f"`argosy unjoin {name}` takes it back")
                told = _state(cluster)
                step(f"waiting for {name}: {told}")
                await asyncio.sleep(_POLL)
    except TimeoutError:
        raise Failure(
            f"{name} was not ready within {timeout:g} s: {told}",
            f"it joins by itself once this is mended; `argosy get clusters` shows it, `argosy unjoin {name}` takes it back",
        ) from None


def _state(cluster: FederatedCluster) -> str:
    for type in (JOINED, READY):
        condition = cluster.condition(type)
        if condition is not None and condition.status != "True" and (condition.message or condition.reason):
            return condition.message or condition.reason
    if not cluster.status.conditions:
        return "the controllers have nothing to tell of it yet"
    return "joined, not ready yet" if cluster.joined else "joining"


async def leave(client: Client, name: str, *, cascade: bool) -> FederatedCluster:
    """Ask for the member to be let go; `cascade` also removes what was propagated to it."""
    found = await client.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster)
    await _hand_over_secret(client, found)
    if cascade:
        change = {"metadata": {"annotations": {keys.CASCADING_DELETE: "true"}}}
        await client.patch(resources.FEDERATED_CLUSTERS, name, change)
    await client.delete(resources.FEDERATED_CLUSTERS, name, uid=found.metadata.uid)
    return found


async def _hand_over_secret(client: Client, cluster: FederatedCluster) -> None:
    """Also one that dates from before secrets belonged to their clusters is to go, whether anybody waits for that or not."""
    name = cluster.spec.secret_ref.name
    try:
        change = _handed_over(await client.get(SECRETS, name, keys.SYSTEM_NAMESPACE), cluster)
        if change:
            await client.patch(SECRETS, name, change, keys.SYSTEM_NAMESPACE)
    except (NotFound, Forbidden):  # who may end a membership need not have the right to see its credentials
        return


async def wait_gone(client: Client, cluster: FederatedCluster, timeout: float) -> None:
    """Until the FederatedCluster is gone, and with it its secret, if that was made here."""
    name = cluster.name
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    found = await client.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster)
                except NotFound:
                    break
                if found.metadata.uid != cluster.metadata.uid:
                    return
                await asyncio.sleep(_POLL)
    except TimeoutError:
        raise Failure(
            f"{name} is still leaving after {timeout:g} s",
            f"`kubectl describe fcluster {name}` says what it waits for; it goes on by itself. If the member never comes back,"
            f" `argosy unjoin {name} --force` gives it up",
        ) from None
    try:
        secret = await client.get(SECRETS, cluster.spec.secret_ref.name, keys.SYSTEM_NAMESPACE)
        # Its owner is gone; whoever just joined anew under the name has made the secret his own.
        if _made_here(secret) and not _handed_over(secret, cluster):
            await client.delete(
                SECRETS, secret["metadata"]["name"], keys.SYSTEM_NAMESPACE, uid=secret["metadata"]["uid"]
            )
    except (NotFound, Conflict, Forbidden):
        return
