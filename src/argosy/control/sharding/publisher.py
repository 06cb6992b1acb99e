"""Publisher: publishes this shard's reservations for the other shards (`peers`), and its uses of policies without a namespace.

Reservations are written on change, at most once per period, and repeated from time to time while there are any; uses with them,
or a while after they changed. Without the right to write, only this is lost. `run` until cancelled.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from argosy.api import keys
from argosy.api.shards import Shard
from argosy.control.sharding.peers import CONFIG_MAPS, DATA, USES, Amounts, PeerReservations, name_of
from argosy.control.timings import Timings
from argosy.kube import clock
from argosy.kube.client import Client, Patch
from argosy.kube.errors import AlreadyExists, ApiError, NotFound, TransportError

__all__ = ["ReservationPublisher", "encoded_uses"]

log = logging.getLogger(__name__)

#: Uses are for people: reservations have to fit beside them, into the one MiB of a ConfigMap.
_MOST_BYTES_OF_USES = 2**18


def encoded_uses(uses: Amounts) -> bytes:
    """Those of the policies that are used most, if all take too much room."""
    encoded = msgspec.json.encode(uses, order="deterministic")
    if len(encoded) <= _MOST_BYTES_OF_USES:
        return encoded
    room, told = _MOST_BYTES_OF_USES, {}
    for policy, kinds in sorted(uses.items(), key=lambda each: (-sum(each[1].values()), each[0])):
        room -= len(msgspec.json.encode({policy: kinds}))
        if room < 0:
            break
        told[policy] = kinds
    return msgspec.json.encode(told, order="deterministic")


class ReservationPublisher:
    def __init__(
        self,
        client: Client,
        shard: Shard,
        own: Callable[[], Amounts],
        uses: Callable[[], Amounts],
        peers: PeerReservations,
        timings: Timings,
        clock: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._client = client
        self._shard = shard
        self._own = own
        self._uses = uses
        self._peers = peers
        self._timings = timings
        self._clock = clock
        self._name = name_of(shard)
        #: None until it is known what an earlier process has published.
        self._published: bytes | None = None
        self._published_uses = b"{}"
        self._published_at = 0.0
        self._trouble = ""
        self._beat = 0

    async def run(self) -> None:
        period, longest = self._timings.reservations_shown, self._timings.reservations_kept / 3
        pause = waited = period
        while True:
            self._peers.expire()
            if waited >= pause:
                waited = 0.0
                try:
                    await self._publish()
                    pause = period
                    self._tell_trouble("")
                except (ApiError, TransportError) as error:
                    pause = min(2 * pause, longest)
                    self._tell_trouble(str(error))
            await asyncio.sleep(period)
            waited += period

    def _tell_trouble(self, trouble: str) -> None:
        """Logs a failure once, and its end."""
        if trouble and not self._trouble:
            log.warning("reservations are not published to other shards: %s", trouble)
        elif self._trouble and not trouble:
            log.info("reservations are published to other shards again")
        self._trouble = trouble

    async def _publish(self) -> None:
        if self._published is None:
            self._published = self._peers.published_before()
            if self._published is None:
                return
            self._published_uses = self._peers.uses_published_before()
        content = msgspec.json.encode(self._own(), order="deterministic")
        now = self._clock()
        fresh = content == b"{}" or now - self._published_at < self._timings.reservations_kept / 3
        uses = encoded_uses(self._uses())
        told = uses == self._published_uses or now - self._published_at < self._timings.policy_counts
        if content == self._published and fresh and told:
            return
        self._beat += 1
        body = {
            "metadata": {
                "name": self._name,
                "labels": {keys.RESERVED_LABEL: str(self._shard.count)},
                "annotations": {keys.NO_FEDERATED_RESOURCE: "true"},
            },
            "data": {DATA: content.decode(), USES: uses.decode(), "beat": str(self._beat)},
        }
        try:
            await self._client.patch(CONFIG_MAPS, self._name, body, keys.SYSTEM_NAMESPACE, kind=Patch.MERGE, into=bytes)
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await self._client.create(CONFIG_MAPS, body, keys.SYSTEM_NAMESPACE, into=bytes)
        self._published, self._published_uses, self._published_at = content, uses, now
