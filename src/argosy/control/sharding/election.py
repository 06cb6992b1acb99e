"""Election of a shard: two layouts of shards are never active at the same time.

A shard's lease keeps a second process away from the same shard, but not from another layout: shard 1/3 owns namespaces of shard
0/2, and a process without shards owns everything. So a process that has got its lease checks all leases of controllers before
it starts: if one of another layout may still be held, it releases its own and waits. Each process takes its lease first and
then checks, so of two that start at the same moment at least one sees the other, and none starts beside an active one. To
change the number of shards, stop the old processes and start the new ones, in any order: the new ones start when the last of
the old ones has released its lease or let it expire.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from argosy.api import keys
from argosy.api.shards import Shard, lease_name, shard_of_lease
from argosy.kube import chance, clock
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, Conflict, NotFound, TransportError
from argosy.kube.lease import LEASES, RETRY, LeaderElector, LeaseLost, Sightings

__all__ = ["OtherLayoutActive", "ShardElection"]

log = logging.getLogger(__name__)


class OtherLayoutActive(Exception):
    """A process of another layout may be active."""


class ShardElection:
    def __init__(
        self, client: Client, shard: Shard, *, retry: float = RETRY, clock: Callable[[], float] = clock.elapsed
    ):
        self.lease = lease_name(shard)
        self._client = client
        self._count = shard.count
        self._retry = retry
        self._sightings = Sightings(clock)
        self._rivals = ""
        self._elector: LeaderElector | None = None
        #: Attempts of earlier electors to renew a lease that failed.
        self._failures = 0

    @property
    def waiting(self) -> str:
        """What is being waited for, as a text."""
        holder = self._elector.holder if self._elector is not None else ""
        return self._rivals or f"the lease, held by {holder or 'nobody yet'}"

    @property
    def held(self) -> bool:
        return self._elector is not None and self._elector.held()

    @property
    def failures(self) -> int:
        """Attempts to take or renew the lease that failed, not because somebody else holds it."""
        return self._failures + (self._elector.failures if self._elector is not None else 0)

    async def run(
        self, elector_of: Callable[[], LeaderElector], lead: Callable[[LeaderElector], Awaitable[None]]
    ) -> None:
        """Lead whenever we hold the shard's lease and no other layout is active, until `lead` ends by itself."""
        while True:
            self._failures = self.failures
            self._elector = elector = elector_of()
            await self._settled()
            try:
                return await elector.run(partial(self._lead, elector, lead))
            except (LeaseLost, OtherLayoutActive) as why:
                log.warning("%s; trying again", why)
                # Random, so that two that saw each other do not retry in step.
                await asyncio.sleep(self._retry * chance.random())

    async def _lead(self, elector: LeaderElector, lead: Callable[[LeaderElector], Awaitable[None]]) -> None:
        await self._begin()
        await lead(elector)

    async def _settled(self) -> None:
        """Return once no other layout seems to be active: a process that only waits must not hold a lease."""
        while True:
            try:
                others = [_described(lease) for lease in await self._others() if self._sightings.free_in(lease) > 0]
            except (ApiError, TransportError) as error:
                others = [f"an answer about the leases ({error})"]
            rivals = ", ".join(others)
            if rivals and rivals != self._rivals:
                log.info("waiting for %s, which uses another shard layout", rivals)
            self._rivals = rivals
            if not rivals:
                return
            await asyncio.sleep(self._retry)

    async def _begin(self) -> None:
        """Check again with the lease held. Raises OtherLayoutActive if another layout may be active after all."""
        try:
            for lease in await self._others():
                if self._sightings.free_in(lease) > 0:
                    raise OtherLayoutActive(f"{_described(lease)} uses another shard layout")
                await self._retire(lease)
        except (ApiError, TransportError) as error:
            raise OtherLayoutActive(f"the leases of other shard layouts cannot be read: {error}") from error

    async def _others(self) -> list[dict[str, Any]]:
        """The leases of other layouts that are held."""
        listed = await self._client.list(LEASES, keys.SYSTEM_NAMESPACE)
        return [lease for lease in listed.items if self._is_taken(lease)]

    def _is_taken(self, lease: dict[str, Any]) -> bool:
        shard = shard_of_lease(lease["metadata"]["name"])
        return shard is not None and shard.count != self._count and bool(_holder(lease))

    async def _retire(self, lease: dict[str, Any]) -> None:
        """Releases the lease of a dead process; otherwise every new process would have to wait until it expires."""
        spec = {**lease["spec"], "holderIdentity": ""}
        try:
            await self._client.update(LEASES, {**lease, "spec": spec}, keys.SYSTEM_NAMESPACE)
        except NotFound:
            return
        except Conflict:
            raise OtherLayoutActive(f"{_described(lease)} came back") from None


def _holder(lease: dict[str, Any]) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _described(lease: dict[str, Any]) -> str:
    return f"{_holder(lease)} with the lease {lease['metadata']['name']}"
