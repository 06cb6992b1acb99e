"""Collect: the managed objects in members. One watch per cluster and type in use, restricted by label.

A shard's watch excludes objects labelled with other shards' buckets. Objects get the label only with their next write, so
switching shards on rewrites nothing; unlabelled objects of other shards are dropped when they arrive.

Owns one informer task per (member, type); they run under the member's supervisor and end with its connection. The caches of a
member that stopped answering stay as they are: the last known state is better than none, and nothing is deleted because of it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from argosy.api import keys
from argosy.api.shards import WHOLE, Shard
from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.catalog import Catalog, TypeChange, member_type
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.members.member import Connected, Member, Members
from argosy.control.timings import Timings
from argosy.control.wake import DISPATCH, Follow, Signal
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import HasMetadata

__all__ = ["Collector", "CopyChange", "Readable"]

MANAGED = f"{keys.MANAGED_LABEL}=true"


class CopyChange(NamedTuple):
    """A change of an object's copy in a member."""

    cluster: str
    type: str
    change: Change[HasMetadata]

    @property
    def source(self) -> SourceKey:
        return SourceKey(self.type, self.change.key)


class Readable(NamedTuple):
    """All copies of a type in a member were read for the first time."""

    cluster: str
    type: str


class Collector:
    """The caches of member objects."""

    name = "collect"

    def __init__(self, members: Members, catalog: Catalog, timings: Timings, shard: Shard = WHOLE):
        self._members = members
        self._catalog = catalog
        self._timings = timings
        self._shard = shard
        self._selector = ",".join(part for part in (MANAGED, shard.member_selector()) if part)
        self._informers: dict[tuple[str, str], Informer[HasMetadata]] = {}
        #: Names of types, in the order in which they came.
        self._wanted: dict[str, None] = {}
        self.changes: Signal[CopyChange] = Signal("copies in members")
        #: Now absence from the cache means absence from the member.
        self.read: Signal[Readable] = Signal("members' copies that were read")

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._members.changes, self._member_changed, "copies in a connected member are watched")
        yield Follow(self._catalog.changes, self._type_changed, "what is read of copies follows their type")

    def use(self, config: FederatedTypeConfig) -> None:
        """Objects of this type are placed somewhere: watch the type in every member, now and later."""
        if config.name in self._wanted:
            return
        self._wanted[config.name] = None
        for member in self._members:
            self._start(member, config)

    def synced(self, cluster: str, type_name: str) -> bool:
        """Whether absence from the cache means absence from the member."""
        informer = self._informers.get((cluster, type_name))
        return informer is not None and informer.has_synced

    def is_followed(self, cluster: str, type_name: str) -> bool:
        """Whether the cache is filled, and the member tells of changes."""
        informer = self._informers.get((cluster, type_name))
        return informer is not None and informer.is_followed

    def failing(self, cluster: str, type_name: str) -> bool:
        """Whether the first list was tried and failed."""
        informer = self._informers.get((cluster, type_name))
        return informer is not None and informer.tried.is_set() and not informer.has_synced

    def get(self, cluster: str, type_name: str, key: str) -> HasMetadata | None:
        informer = self._informers.get((cluster, type_name))
        return informer.get(key) if informer is not None else None

    def remember(self, cluster: str, type_name: str, raw: bytes) -> None:
        """Puts dispatch's own write into the cache, so that readers see no older state. It changes no status."""
        informer = self._informers.get((cluster, type_name))
        if informer is not None:
            # Also before the first list has returned: it may have been read before our write.
            informer.remember(raw, DISPATCH)

    def doubt(self, cluster: str, type_name: str, key: str, why: str) -> None:
        """Records that a copy is not a valid object of its kind, or, with an empty reason, that it is."""
        member = self._members.get(cluster)
        if member is not None:
            member.doubt(f"{type_name} {key}", why)

    def informers(self) -> dict[tuple[str, str], Informer[HasMetadata]]:
        return dict(self._informers)

    def _start(self, member: Member, config: FederatedTypeConfig) -> None:
        cluster, type_name = member.name, config.name
        informer: Informer[HasMetadata] = Informer(
            member.client,
            config.resource,
            member_type(config),
            label_selector=self._selector,
            keep=None if self._shard.is_whole else lambda metadata: self._shard.owns(metadata.namespace),
            liveness=self._timings.watch_liveness,
            backoff=self._timings.watch_backoff,
            on_change=lambda change: self.changes.tell(CopyChange(cluster, type_name, change)),
            on_sync=lambda: self.read.tell(Readable(cluster, type_name)),
        )
        self._informers[cluster, type_name] = informer
        member.follow(f"collect {type_name} in {cluster}", informer)

    def _member_changed(self, connected: Connected) -> None:
        name, member = connected
        for cluster, type_name in [key for key in self._informers if key[0] == name]:
            del self._informers[cluster, type_name]
        if member is not None:
            for type_name in self._wanted:
                config = self._catalog.get(type_name)
                if config is not None:
                    self._start(member, config)

    def _type_changed(self, types: TypeChange) -> None:
        old, new = types
        if old is None or old.name not in self._wanted:
            return
        if new is not None and (new.resource, member_type(new)) == (old.resource, member_type(old)):
            return
        for member in self._members:
            if self._informers.pop((member.name, old.name), None) is not None:
                member.unfollow(f"collect {old.name} in {member.name}")
                if new is not None:
                    self._start(member, new)
        if new is None:
            self._wanted.pop(old.name, None)
