"""Giving up a member that does not come back: it leaves without being reached, and what is in it stays there.

The controllers try to release the member first, as ever. Only if they report that they failed is it given up, so a member that
answers leaves the ordinary way.
"""

import asyncio
import contextlib
from collections import Counter

from argosy.api import keys, resources
from argosy.api.conditions import RELEASED
from argosy.api.types import FederatedCluster, FederatedObject
from argosy.cli.client import membership
from argosy.cli.output.failures import Failure
from argosy.kube import timestamps
from argosy.kube.client import Client
from argosy.kube.errors import Conflict, Forbidden, NotFound
from argosy.kube.objects import decode
from argosy.plan.copies.placement import may_hold_copies

__all__ = ["copies_in", "give_up"]

_OURS = frozenset({keys.CASCADING_DELETE_FINALIZER, keys.CLUSTER_FINALIZER})
#: A member that is away for a moment only is released meanwhile.
_PATIENCE = 10.0
_POLL = 0.5


async def copies_in(client: Client, cluster: str) -> Counter[str]:
    """By kind, how many objects may have a copy there, as far as the federated objects know."""
    found: Counter[str] = Counter()
    for namespaced in (True, False):
        async for page in client.pages(resources.federated_objects(namespaced)):
            for raw in page.items:
                federated = decode(raw, FederatedObject)
                if cluster in may_hold_copies(federated):
                    found[str(federated.spec.template.get("kind"))] += 1
    return found


async def give_up(client: Client, cluster: FederatedCluster, timeout: float) -> str | None:
    """Let a leaving member go within the time. Returns why it could not be released; None if it was. Raises Failure."""
    time = asyncio.get_running_loop().time
    last_try, known = time() + _PATIENCE, None
    try:
        async with asyncio.timeout(timeout):
            await _ask(client, cluster.name)
            while True:
                found = await membership.find(client, cluster.name)
                if found is None or found.metadata.uid != cluster.metadata.uid:
                    return None
                if known is None and time() >= last_try:
                    # The member may be back since the first attempt: the last one counts.
                    known = _attempt(found)
                    await _ask(client, cluster.name)
                elif known is not None and _attempt(found) not in ("", known) and await _let_go(client, found):
                    released = found.condition(RELEASED)
                    return released.message if released is not None else ""
                await asyncio.sleep(_POLL)
    except TimeoutError:
        raise Failure(
            f"{cluster.name} was not given up within {timeout:g} s: no attempt to release it has failed",
            "it answers and is still leaving, or the controllers do not run; run this again, perhaps with a longer --timeout",
        ) from None


async def _ask(client: Client, name: str) -> None:
    """The controllers try to release the member now, however often they failed."""
    asked = {"metadata": {"annotations": {keys.GIVE_UP_ASKED: timestamps.now()}}}
    with contextlib.suppress(NotFound):
        await client.patch(resources.FEDERATED_CLUSTERS, name, asked)


def _attempt(cluster: FederatedCluster) -> str:
    """When releasing the member failed last; empty if it did not."""
    released = cluster.condition(RELEASED)
    return (released.last_probe_time or "") if released is not None and released.status == "False" else ""


async def _let_go(client: Client, cluster: FederatedCluster) -> bool:
    """Remove our finalizers and the account's token. False if the cluster changed meanwhile."""
    if cluster.spec.use_service_account:
        token = {"data": {keys.SECRET_SERVICE_ACCOUNT_TOKEN: None}}
        with contextlib.suppress(NotFound, Forbidden):
            await client.patch(membership.SECRETS, cluster.spec.secret_ref.name, token, keys.SYSTEM_NAMESPACE)
    others = [each for each in cluster.metadata.finalizers if each not in _OURS]
    metadata = {"finalizers": others or None, "resourceVersion": cluster.metadata.resource_version}
    try:
        await client.patch(resources.FEDERATED_CLUSTERS, cluster.name, {"metadata": metadata})
    except Conflict:
        return False
    except NotFound:
        return True
    return True
