"""Other shards: each shard watches the leases of the others, and says which of them nobody holds.

Nobody works on the objects of such a shard, and nobody may write on them that it is so: only their owner may. So it is told on
what is not theirs: as a metric, in `/readyz?verbose`, in the log, and as an event on the system namespace by the lowest shard
that is there. `argosy status` finds it in the leases. Clocks are not compared: a shard is there while its lease changes.
`run` until cancelled.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.shards import Shard, lease_name
from argosy.control.caches.informers import Caches
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.kube.events import EventRecorder
from argosy.kube.lease import LEASES
from argosy.kube.references import reference_of

__all__ = ["OtherShards"]

log = logging.getLogger(__name__)


class _Heard(msgspec.Struct, frozen=True):
    """A held lease as it was seen last, and since when it has looked like that."""

    version: str
    since: float


class OtherShards:
    def __init__(
        self,
        client: Client,
        shard: Shard,
        caches: Caches,
        events: EventRecorder,
        metrics: Metrics,
        timings: Timings,
    ):
        self._client = client
        self._own = shard
        self._others = {
            lease_name(other): other for index in range(shard.count) if (other := Shard(index, shard.count)) != shard
        }
        self._caches = caches
        self._events = events
        self._metrics = metrics
        self._timings = timings
        self._heard: dict[str, _Heard] = {}
        #: Leases of shards that are missing.
        self._missing: frozenset[str] = frozenset()

    @property
    def missing(self) -> list[str]:
        """What is to be said of each shard that is missing."""
        return [_text(name, shard) for name, shard in self._others.items() if name in self._missing]

    async def run(self) -> None:
        begun = clock.elapsed()
        for other in self._others.values():
            self._metrics.shard_missing.labels(str(other)).set(0)
        while True:
            try:
                listed = await self._client.list(LEASES, keys.SYSTEM_NAMESPACE)
            except (ApiError, TransportError) as error:
                log.debug("the leases of other shards cannot be read: %s", error)
            else:
                self._judge({lease["metadata"]["name"]: lease for lease in listed.items}, begun)
            await asyncio.sleep(self._timings.shards_watched)

    def _judge(self, leases: Mapping[str, Mapping[str, Any]], begun: float) -> None:
        now = clock.elapsed()
        missing = set()
        for name in self._others:
            lease = leases.get(name)
            if lease is not None and (lease.get("spec") or {}).get("holderIdentity"):
                self._hear(name, str(lease["metadata"].get("resourceVersion") or ""), now)
            heard = self._heard.get(name)
            if now - (heard.since if heard is not None else begun) >= self._timings.shard_missing:
                missing.add(name)
        before, self._missing = self._missing, frozenset(missing)
        for name, other in self._others.items():
            self._metrics.shard_missing.labels(str(other)).set(name in missing)
            if name in self._missing - before:
                self._tell("Warning", EventReason.SHARD_MISSING, _text(name, other))
            elif name in before - self._missing:
                self._tell("Normal", EventReason.SHARD_BACK, f"shard {other} is there again")

    def _hear(self, name: str, version: str, now: float) -> None:
        known = self._heard.get(name)
        if known is None or known.version != version:
            self._heard[name] = _Heard(version, now)

    def _tell(self, kind: str, reason: str, message: str) -> None:
        log.log(logging.WARNING if kind == "Warning" else logging.INFO, "%s", message)
        lower = (name for name, other in self._others.items() if other.index < self._own.index)
        system = self._caches.system.get(keys.SYSTEM_NAMESPACE)
        if system is not None and all(name in self._missing for name in lower):
            self._events.event(reference_of(self._caches.system.resource, system.metadata), kind, reason, message)


def _text(lease: str, shard: Shard) -> str:
    what = (
        "its namespaces, the cluster-scoped objects or the clusters" if shard.owns_cluster_scoped else "its namespaces"
    )
    return f"shard {shard} is missing: nobody holds the lease {lease}, so nobody works on {what}"
