"""Peers: the reservations of other shards, so that a burst over many namespaces does not pile up on one cluster.

Each shard publishes the sums of its own reservations in a ConfigMap of the system namespace (`publisher`). Those of a silent
shard expire soon: its replicas run by then, or never will. Without the right to watch the ConfigMaps, only this is lost.

The same ConfigMap says how many of its objects name each policy without a namespace, for the counts in their status.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping

import msgspec

from argosy.api import keys
from argosy.api.shards import Shard
from argosy.control.timings import Timings
from argosy.control.wake import Signal
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource

__all__ = ["CONFIG_MAPS", "DATA", "USES", "Amounts", "PeerReservations", "added", "name_of"]

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
Amounts = Mapping[str, Mapping[str, int]]
"""By resource and cluster."""

#: The key of the ConfigMap's data.
DATA = "reserved"
USES = "uses"
#: The largest valid amount.
_MOST = 2**60


class Published(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}


class PeerReservations:
    """`informer.run` until cancelled. `totals` are the sums over the other shards, and `version` grows with each change."""

    def __init__(
        self, client: Client, shard: Shard, timings: Timings, clock: Callable[[], float] = clock.monotonic
    ) -> None:
        self._timings = timings
        self._clock = clock
        self._own_name = name_of(shard)
        self._heard: dict[str, tuple[float, Amounts]] = {}
        #: By shard: how many of its objects name each policy, by their kind. A shard that says nothing more still has them.
        self._uses: dict[str, Amounts] = {}
        self.totals: Amounts = {}
        self.version = 0
        #: Another shard has less reserved than before.
        self.released: Signal[None] = Signal("reservations of other shards that ended")
        #: Names of policies that objects of another shard began or ceased to name.
        self.uses_changed: Signal[Collection[str]] = Signal("uses of policies in other shards")
        self.informer: Informer[Published] = Informer(
            client,
            CONFIG_MAPS,
            Published,
            namespace=keys.SYSTEM_NAMESPACE,
            label_selector=f"{keys.RESERVED_LABEL}={shard.count}",
            liveness=timings.watch_liveness,
            on_change=self._changed,
        )

    def published_before(self) -> bytes | None:
        """What an earlier process published for this shard; None if not known yet."""
        if not self.informer.has_synced:
            return None
        before = self.informer.get(f"{keys.SYSTEM_NAMESPACE}/{self._own_name}")
        return before.data.get(DATA, "").encode() if before is not None else b"{}"

    def uses_published_before(self) -> bytes:
        """The same of the uses of policies."""
        before = self.informer.get(f"{keys.SYSTEM_NAMESPACE}/{self._own_name}")
        return before.data.get(USES, "{}").encode() if before is not None else b"{}"

    def uses_of(self, policy: str) -> Counter[str]:
        """How many objects of other shards name this policy, by their kind."""
        found: Counter[str] = Counter()
        for uses in self._uses.values():
            found.update(uses.get(policy, {}))
        return found

    def expire(self) -> None:
        """Drop reservations that have not been updated for long."""
        self._count()

    def _changed(self, change: Change[Published]) -> None:
        name = change.key.rpartition("/")[2]
        if name == self._own_name:
            return
        self._heard.pop(name, None)
        if change.new is not None:
            self._heard[name] = (self._clock(), _amounts(change.new.data.get(DATA, "")))
        self._count()
        before, uses = self._uses.pop(name, {}), _amounts(change.new.data.get(USES, "")) if change.new else {}
        if uses:
            self._uses[name] = uses
        changed = {policy for policy in before.keys() | uses.keys() if before.get(policy) != uses.get(policy)}
        if changed:
            self.uses_changed.tell(changed)

    def _count(self) -> None:
        """Add up the recently updated ones."""
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
            self.released.tell(None)


def name_of(shard: Shard) -> str:
    """The name of the ConfigMap in which a shard publishes its reservations."""
    return f"argosy-reserved-{shard.index}"


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
    """An unreadable text counts as empty."""
    try:
        found = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    except msgspec.MsgspecError:
        return {}
    return {
        resource: {cluster: amount for cluster, amount in clusters.items() if 0 < amount <= _MOST}
        for resource, clusters in found.items()
    }
