"""Reading who runs: the shards whose leases nobody holds, for `argosy status`."""

from argosy.api import keys
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.lease import LEASES
from argosy.plan.explain.unattended import Unattended, unattended

__all__ = ["read_unattended"]


async def read_unattended(client: Client) -> tuple[Unattended, ...]:
    """Empty also for somebody who may not read leases of the system namespace."""
    try:
        listed = await client.list(LEASES, keys.SYSTEM_NAMESPACE)
    except (Forbidden, NotFound):
        return ()
    return unattended(listed.items, clock.now())
