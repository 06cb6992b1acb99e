"""Enrolment: with an administrator's credentials at hand, prepare a member so that the control plane comes as a service account.

Whatever those credentials are (a certificate, a token, a cloud provider's plugin), they are used from here, once, and do not
leave this machine: the control plane gets the account's token alone.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from argosy.api import keys, resources
from argosy.api.conditions import CLUSTER_UNJOINABLE
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.cli import membership
from argosy.cli.connection import client_of
from argosy.cli.failures import Failure
from argosy.control import join, memberrole
from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.errors import ApiError, Forbidden, NotFound, TransportError, Unauthorized

__all__ = ["enrol", "refresh_role"]

_POLL = 0.5
_RIGHTS = (
    "the kubeconfig's user must be an administrator of the member; --keep-credentials has the control plane work there as"
    " that user instead, with no more than his rights"
)


async def enrol(
    hub: Client,
    name: str,
    connection: Connection,
    labels: dict[str, str],
    *,
    full_access: bool,
    patience: float,
    step: Callable[[str], None],
) -> bool:
    """Make the member's service account and hand its token to the control plane; True when the cluster is new.

    A cluster that is new and could not be prepared is taken back.
    """
    async with _visiting(name, connection) as member:
        step(f"asking {name}")
        with _in_member(name):
            await member.version()
        annotations = {keys.MEMBER_ACCESS: keys.FULL} if full_access else {}
        cluster, new = await membership.declare(hub, name, connection, labels, annotations)
        try:
            step(f"making a service account in {name}")
            token = await _prepare(hub, member, cluster, patience)
        except BaseException:
            if new:
                await _take_back(hub, member, cluster)
            raise
    secret = cluster.spec.secret_ref.name
    ca = connection.ca_data or None
    await membership.put_secret(hub, secret, {keys.SECRET_CA: ca, keys.SECRET_SERVICE_ACCOUNT_TOKEN: token})
    await membership.adjust(hub, cluster, connection, use_service_account=True)
    # Last, so that at no time there is nothing to come in with.
    await membership.put_secret(hub, secret, dict.fromkeys(membership.USERS_KEYS))
    return new


async def refresh_role(hub: Client, name: str, connection: Connection, *, full_access: bool) -> None:
    """Bring the account's rights in the member up to what the type configs ask for now."""
    try:
        cluster = await hub.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster)
    except NotFound:
        raise Failure(f"there is no member {name!r}", "`argosy get clusters` lists them") from None
    if not cluster.spec.use_service_account:
        raise Failure(
            f"{name} did not join with a service account: the control plane has the rights of the credentials in its secret",
            f"`argosy join {name} --use-service-account --kubeconfig …` changes that",
        )
    if full_access:
        cluster = await membership.annotate(hub, cluster, {keys.MEMBER_ACCESS: keys.FULL})
    async with _visiting(name, connection) as member:
        rules = await _rules(hub, cluster)
        with _in_member(name):
            await join.furnish(member, await join.claim(member, cluster), rules)


async def _prepare(hub: Client, member: Client, cluster: FederatedCluster, patience: float) -> bytes:
    rules = await _rules(hub, cluster)
    with _in_member(cluster.name):
        namespace = await _claimed(member, cluster, patience)
        await join.furnish(member, namespace, rules)
        return await join.new_token(member, Timings().token_lifetime)


async def _rules(hub: Client, cluster: FederatedCluster) -> list[dict[str, Any]]:
    configs = await hub.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)
    return memberrole.rules_for(cluster, configs.items)


async def _claimed(member: Client, cluster: FederatedCluster, patience: float) -> dict[str, Any]:
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            return await join.claim(member, cluster)
        except join.StillLeaving:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_POLL)


async def _take_back(hub: Client, member: Client, cluster: FederatedCluster) -> None:
    """As far as that goes: what failed before may fail again."""
    with contextlib.suppress(ApiError, TransportError):
        await join.release(member, cluster)
    with contextlib.suppress(ApiError, TransportError):
        await hub.delete(resources.FEDERATED_CLUSTERS, cluster.name, uid=cluster.metadata.uid)


@contextlib.asynccontextmanager
async def _visiting(name: str, connection: Connection) -> AsyncIterator[Client]:
    client = client_of(connection)
    try:
        yield client
    finally:
        await client.close()


@contextlib.contextmanager
def _in_member(name: str) -> Iterator[None]:
    """What goes wrong here is the member's matter, not the control plane's."""
    try:
        yield
    except join.Unjoinable:
        raise Failure(
            f"{name} cannot join: {CLUSTER_UNJOINABLE[1]}",
            f"its namespace {keys.SYSTEM_NAMESPACE} is another federation's, or left over from one; it goes when it is unjoined"
            " there, or, if nobody uses it any more, by deleting that namespace in the member",
        ) from None
    except join.StillLeaving as error:
        raise Failure(f"{name} cannot join yet: {error}", "try again when it is gone") from None
    except Unauthorized:
        raise Failure(
            f"{name} does not accept the kubeconfig's credentials", "--kubeconfig and --context choose others"
        ) from None
    except Forbidden as error:
        raise Failure(f"in {name}: {error.message}", _RIGHTS) from None
    except TimeoutError:
        raise Failure(f"{name} issued no token for the service account", "is its controller manager running?") from None
    except TransportError as error:
        raise Failure(
            f"{name} does not answer: {error}",
            "check its --kubeconfig and --context; if only the control plane can reach it, use --keep-credentials",
        ) from None
