"""Membership: what makes a cluster a member, as objects on the control plane: its FederatedCluster and the secret beside it.

Used by `join`, `unjoin`, and by `up` for the members it simulates.
"""

import asyncio
import base64
from collections.abc import Callable
from typing import Any

from argosy.api import keys, resources
from argosy.api.conditions import JOINED, READY, TERMINAL_JOIN_REASONS
from argosy.api.types import FederatedCluster
from argosy.cli.failures import Failure
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.errors import AlreadyExists, Conflict, NotFound
from argosy.kube.resource import Resource

__all__ = ["SECRETS", "leave", "register", "wait_gone", "wait_ready"]

SECRETS = Resource("", "v1", "secrets", "Secret")
#: On secrets that were made here, so that leaving removes those and no others.
_MADE_HERE = {"app.kubernetes.io/managed-by": "argosy"}
_POLL = 0.2


async def register(
    client: Client,
    name: str,
    connection: Connection,
    labels: dict[str, str],
    *,
    use_service_account: bool = False,
) -> bool:
    """Make or correct the secret and the FederatedCluster; True when the cluster is new."""
    await _put_secret(client, name, secret_data(connection))
    spec: dict[str, Any] = {"apiEndpoint": connection.server, "secretRef": {"name": name}}
    if connection.insecure:
        spec["insecure"] = True
    if use_service_account:
        spec["useServiceAccount"] = True
    manifest = {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }
    try:
        await client.create(resources.FEDERATED_CLUSTERS, manifest)
    except AlreadyExists:
        found = await client.get(resources.FEDERATED_CLUSTERS, name)
        if found["spec"].get("apiEndpoint") != connection.server:
            change = {"spec": {"apiEndpoint": connection.server}}
            await client.patch(resources.FEDERATED_CLUSTERS, name, change)
        return False
    return True


def secret_data(connection: Connection) -> dict[str, str]:
    data = {
        keys.SECRET_CA: connection.ca_data,
        keys.SECRET_CLIENT_CERTIFICATE: connection.client_certificate,
        keys.SECRET_CLIENT_KEY: connection.client_key,
        keys.SECRET_BOOTSTRAP_TOKEN: connection.token.encode(),
    }
    return {key: base64.b64encode(value).decode() for key, value in data.items() if value}


async def _put_secret(client: Client, name: str, data: dict[str, str]) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": keys.SYSTEM_NAMESPACE, "labels": _MADE_HERE},
        "data": data,
    }
    try:
        await client.create(SECRETS, manifest)
    except AlreadyExists:
        found = await client.get(SECRETS, name, keys.SYSTEM_NAMESPACE)
        stored = found.get("data") or {}
        if any(stored.get(key) != value for key, value in data.items()):
            await client.patch(SECRETS, name, {"data": data}, keys.SYSTEM_NAMESPACE)


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
    if cascade:
        change = {"metadata": {"annotations": {keys.CASCADING_DELETE: "true"}}}
        await client.patch(resources.FEDERATED_CLUSTERS, name, change)
    await client.delete(resources.FEDERATED_CLUSTERS, name, uid=found.metadata.uid)
    return found


async def wait_gone(client: Client, cluster: FederatedCluster, timeout: float) -> None:
    """Until the FederatedCluster is gone; then the secret, if it was made here."""
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
            f"`kubectl describe fcluster {name}` says what it waits for; it goes on by itself",
        ) from None
    try:
        secret = await client.get(SECRETS, cluster.spec.secret_ref.name, keys.SYSTEM_NAMESPACE)
        if _MADE_HERE.items() <= (secret["metadata"].get("labels") or {}).items():
            await client.delete(
                SECRETS, secret["metadata"]["name"], keys.SYSTEM_NAMESPACE, uid=secret["metadata"]["uid"]
            )
    except (NotFound, Conflict):
        return
