"""Joining with a service account: an administrator's credentials prepare the member, and the control plane comes as the account.

Whatever those credentials are (a certificate, a token, a cloud provider's plugin), they are used from here, once, and do not
leave this machine: the control plane gets the account's token alone.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from argosy.api import keys, resources
from argosy.api.conditions import CLUSTER_UNJOINABLE
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.cli.client import membership
from argosy.cli.client.connection import client_of
from argosy.cli.output.failures import Failure
from argosy.control.members import join, role
from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.errors import ApiError, Forbidden, NotFound, TransportError, Unauthorized

__all__ = ["confirm", "enrol", "reclaim", "refresh_role"]

#: How the member's namespace is come by: `join.claim` or `join.claim_anew`.
Claim = Callable[[Client, FederatedCluster], Awaitable[dict[str, Any]]]

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
    claim: Claim,
    patience: float,
    step: Callable[[str], None],
) -> bool:
    """Make the member's service account and hand its token to the control plane; True when the cluster is new.

    A cluster that is new and could not be prepared is taken back. Of a member nothing changes unless `claim` takes the cluster.
    """
    async with _visiting(name, connection) as member:
        step(f"asking {name}")
        with _in_member(name):
            await member.version()
        cluster, new = await membership.declare(hub, name, connection, labels)
        try:
            step(f"making a service account in {name}")
            async with _claiming(hub, name):
                namespace = await _claimed(member, cluster, claim, patience)
            if full_access:
                cluster = await membership.annotate(hub, cluster, {keys.MEMBER_ACCESS: keys.FULL})
            token = await _prepare(hub, member, cluster, namespace)
        except BaseException:
            if new:
                await _take_back(hub, member, cluster)
            raise
    ca = connection.ca_data or None
    account = {keys.SECRET_CA: ca, keys.SECRET_SERVICE_ACCOUNT_TOKEN: token}
    await membership.put_secret(hub, cluster, account, connection.server)
    await membership.adjust(hub, cluster, connection, use_service_account=True)
    # Last, so that at no time there is nothing to come in with.
    await membership.put_secret(hub, cluster, dict.fromkeys(membership.USERS_KEYS), connection.server)
    await _record(hub, cluster, namespace)
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
    async with _visiting(name, connection) as member:
        async with _claiming(hub, name):
            namespace = await join.claim(member, cluster)
        if full_access:
            cluster = await membership.annotate(hub, cluster, {keys.MEMBER_ACCESS: keys.FULL})
        rules = await _rules(hub, cluster)
        with _in_member(name):
            await join.furnish(member, namespace, rules)


async def confirm(hub: Client, name: str, connection: Connection) -> None:
    """See that the connection leads to the member, if there is one of this name. Raises Failure when it does not.

    One that only the control plane can reach is left to the controllers, which look themselves before they use it.
    """
    cluster = await membership.find(hub, name)
    if cluster is None or not join.has_joined(cluster):
        return
    async with _visiting(name, connection) as member, _claiming(hub, name):
        with contextlib.suppress(TransportError):
            await join.claim(member, cluster)


async def reclaim(hub: Client, name: str, connection: Connection) -> None:
    """Have the cluster carry the member's mark, whatever cluster had it before."""
    cluster = await membership.find(hub, name)
    if cluster is None:
        return
    async with _visiting(name, connection) as member, _claiming(hub, name):
        namespace = await join.claim_anew(member, cluster)
    await _record(hub, cluster, namespace)


async def _record(hub: Client, cluster: FederatedCluster, namespace: dict[str, Any]) -> None:
    """Which cluster the member is from now on. After the way into it: controllers that look for it find it there."""
    await membership.annotate(hub, cluster, {keys.MEMBER_UID: namespace["metadata"]["uid"]})


async def _prepare(hub: Client, member: Client, cluster: FederatedCluster, namespace: dict[str, Any]) -> bytes:
    rules = await _rules(hub, cluster)
    with _in_member(cluster.name):
        await join.furnish(member, namespace, rules)
        return await join.new_token(member, Timings().token_lifetime)


async def _rules(hub: Client, cluster: FederatedCluster) -> list[dict[str, Any]]:
    configs = await hub.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)
    return role.rules_for(cluster, configs.items)


@contextlib.asynccontextmanager
async def _claiming(hub: Client, name: str) -> AsyncIterator[None]:
    """As `_in_member`; the control plane knows who has the cluster already."""
    try:
        with _in_member(name):
            yield
    except join.Unjoinable as error:
        raise await _taken_already(hub, name, error.owner) from None


async def _taken_already(hub: Client, name: str, owner: str) -> Failure:
    """For a cluster that is a member already. Nothing in it is to be deleted as long as somebody may manage it."""
    known = (await hub.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster)).items
    other = next((each.name for each in known if each.metadata.uid == owner), None)
    if other is not None:
        return Failure(
            f"{name} cannot join: the kubeconfig's cluster is a member already, as {other}",
            f"go on with that name (`argosy join {other} …`), or `argosy unjoin {other}` first; --kubeconfig and --context"
            " choose another cluster",
        )
    return Failure(
        f"{name} cannot join: {CLUSTER_UNJOINABLE[1]}",
        "unjoin it there first (`argosy --kubeconfig <of that control plane> unjoin …`); if that federation gave it up or is no"
        ' more, see "A member that never comes back" in docs/members.md',
    )


async def _claimed(member: Client, cluster: FederatedCluster, claim: Claim, patience: float) -> dict[str, Any]:
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            return await claim(member, cluster)
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
    except join.NotTheMember as error:
        raise Failure(
            f"the kubeconfig's cluster is not the {name} that joined: {error.mismatch.why}",
            "--kubeconfig and --context choose others; if this one is to be the member from now on, because it was rebuilt or"
            f" somebody deleted the namespace there, add --reclaim, or `argosy unjoin {name}` first",
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
