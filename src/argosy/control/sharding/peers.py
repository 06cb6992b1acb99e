"""Peers: what other shards have reserved, so that a burst over many namespaces does not pile up on one cluster.

Each shard works out its own reservations (`scheduling.reservations`) and shows the sums in a ConfigMap of the system
namespace: when they changed, no more often than once a period, and from time to time while there are any. One that has fallen
silent is not counted for long: what it was waiting for runs by then, or will not. A control plane that does not let us write
or watch them costs this and nothing else.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping

import msgspec

from argosy.api import keys
from argosy.api.shards import Shard
from argosy.control.timings import Timings
from argosy.kube.client import Client, Patch
from argosy.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource

__all__ = ["Amounts", "PeerReservations", "added"]

log = logging.getLogger(__name__)

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
Amounts = Mapping[str, Mapping[str, int]]
"""By resource and cluster."""

_DATA = "reserved"
#: No amount is larger.
_MOST = 2**60


class _Shown(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}


class PeerReservations:
    """`run` and `informer.run` until cancelled. `totals` is the sum of the others', and `version` grows with each change."""

    def __init__(
        self,
        client: Client,
        shard: Shard,
        own: Callable[[], Amounts],
        timings: Timings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._shard = shard
        self._own = own
        self._timings = timings
        self._clock = clock
        self._name = f"argosy-reserved-{shard.index}"
        #: None until it is known what a process before us has shown.
        self._shown: bytes | None = None
        self._shown_at = 0.0
        self._trouble = ""
        self._beat = 0
        self._heard: dict[str, tuple[float, Amounts]] = {}
        self.totals: Amounts = {}
        self.version = 0
        #: Called where another shard has less reserved than before.
        self.released: Callable[[], None] = lambda: None
        self.informer: Informer[_Shown] = Informer(
            client,
            CONFIG_MAPS,
            _Shown,
            namespace=keys.SYSTEM_NAMESPACE,
            label_selector=f"{keys.RESERVED_LABEL}={shard.count}",
            liveness=timings.watch_liveness,
        )
        self.informer.add_handler(self._changed)

    async def run(self) -> None:
        period, longest = self._timings.reservations_shown, self._timings.reservations_kept / 3
        pause = waited = period
        while True:
            self._count()
            if waited >= pause:
                waited = 0.0
                try:
                    await self._show()
                    pause = period
                    self._tell_trouble("")
                except (ApiError, TransportError) as error:
                    pause = min(2 * pause, longest)
                    self._tell_trouble(str(error))
            await asyncio.sleep(period)
            waited += period

    def _tell_trouble(self, trouble: str) -> None:
        """Once, and when it is over."""
        if trouble and not self._trouble:
            log.warning("other shards are not told what is reserved: %s", trouble)
        elif self._trouble and not trouble:
            log.info("other shards are told again what is reserved")
        self._trouble = trouble

    # Ours.

    async def _show(self) -> None:
        if self._shown is None:
            if not self.informer.has_synced:
                return
            before = self.informer.get(f"{keys.SYSTEM_NAMESPACE}/{self._name}")
            self._shown = before.data.get(_DATA, "").encode() if before is not None else b"{}"
        content = msgspec.json.encode(self._own(), order="deterministic")
        now = self._clock()
        fresh = content == b"{}" or now - self._shown_at < self._timings.reservations_kept / 3
        if content == self._shown and fresh:
            return
        self._beat += 1
        body = {
            "metadata": {
                "name": self._name,
                "labels": {keys.RESERVED_LABEL: str(self._shard.count)},
                "annotations": {keys.NO_FEDERATED_RESOURCE: "true"},
            },
            "data": {_DATA: content.decode(), "beat": str(self._beat)},
        }
        try:
            await self._client.patch(CONFIG_MAPS, self._name, body, keys.SYSTEM_NAMESPACE, kind=Patch.MERGE, into=bytes)
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await self._client.create(CONFIG_MAPS, body, keys.SYSTEM_NAMESPACE, into=bytes)
        self._shown, self._shown_at = content, now

    # The others'.

    def _changed(self, change: Change[_Shown]) -> None:
        name = change.key.rpartition("/")[2]
        if name == self._name:
            return
        self._heard.pop(name, None)
        if change.new is not None:
            self._heard[name] = (self._clock(), _amounts(change.new.data.get(_DATA, "")))
        self._count()

    def _count(self) -> None:
        """Add up those that were heard of lately."""
        since = self._clock() - self._timings.reservations_kept
        self._heard = {name: heard for name, heard in self._heard.items() if heard[0] > since}
        totals: Amounts = {}
        for _, amounts in self._heard.values():
            totals = added(totals, amounts)
        if totals == self.totals:
            return
        before, self.totals = self.totals, totals
        self.version += 1
        if _is_less(totals, before):
            self.released()


def added(first: Amounts, second: Amounts) -> Amounts:
    """The sums of both."""
    if not first or not second:
        return first or second
    total = {resource: dict(clusters) for resource, clusters in first.items()}
    for resource, clusters in second.items():
        column = total.setdefault(resource, {})
        for cluster, amount in clusters.items():
            column[cluster] = column.get(cluster, 0) + amount
    return total


def _is_less(now: Amounts, before: Amounts) -> bool:
    return any(
        now.get(resource, {}).get(cluster, 0) < amount
        for resource, clusters in before.items()
        for cluster, amount in clusters.items()
    )


def _amounts(text: str) -> Amounts:
    """What cannot be read is as good as not said."""
    try:
        found = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    except msgspec.MsgspecError:
        return {}
    return {
        resource: {cluster: amount for cluster, amount in clusters.items() if 0 < amount <= _MOST}
        for resource, clusters in found.items()
    }
