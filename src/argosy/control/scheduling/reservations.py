"""Reservations: the fleet for decisions: the live fleet, less what was decided and does not run yet.

Fed by federated objects, including our own writes, and by the copies that the collector sees. A decision counts from the moment
it is made, before it is written. Reservations follow from those alone (see `fleet.reservations`) and are stored nowhere. Other
shards publish theirs (`sharding.peers`).
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from argosy.api.conditions import Propagation
from argosy.api.federated import FederatedObject
from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.projection import as_object
from argosy.control.caches.views import FederatedView
from argosy.control.collect import Collector, CopyChange
from argosy.control.sharding.peers import PeerReservations, added
from argosy.control.wake import Follow, Signal
from argosy.fleet.reservations import NOTHING_HELD, Copy, Held, Reservations
from argosy.fleet.snapshot import Fleet
from argosy.kube.informer import Change
from argosy.kube.objects import DecodeError, decode
from argosy.plan.copies.render import is_as_written
from argosy.plan.fields import Json, number
from argosy.plan.kinds.registry import kind_named
from argosy.plan.scheduling.unit import (
    current_placement,
    desired_replicas,
    request_of_template,
)

__all__ = ["ReservedFleet"]


class ReservedFleet:
    name = "reservations"

    def __init__(
        self, caches: Caches, collector: Collector, fleet: LiveFleet, peers: PeerReservations | None = None
    ) -> None:
        """`peers` are the reservations of other shards, if there are any."""
        self._caches = caches
        self._collector = collector
        self._fleet = fleet
        self._peers = peers
        #: Less is reserved: because nothing came of it, or because it runs. What runs may have counted twice until now, as a
        #: reservation and in its member's figures.
        self.released: Signal[None] = Signal("reservations that ended")
        self._reservations: Reservations[SourceKey] = Reservations()
        self._known: dict[bool, tuple[Fleet, int, int, Fleet]] = {}

    def follows(self) -> Iterable[Follow[Any]]:
        why = "what was placed is reserved until it runs"
        yield Follow(self._caches.federated_changes, self._federated_changed, why)
        yield Follow(self._collector.changes, self._copy_changed, "what runs is reserved no more")
        yield Follow(
            self._caches.catalog.changes, self._type_changed, "how much a placement takes follows from its type"
        )

    @property
    def totals(self) -> dict[str, dict[str, int]]:
        """The reserved amounts, by resource and cluster."""
        return self._reservations.totals

    @property
    def snapshot(self) -> Fleet:
        """The fleet as its members report it."""
        return self._fleet.snapshot

    def fleet(self, key: SourceKey, *, own: bool = False) -> Fleet:
        """The fleet for a decision about this source: its own reservations count as free.

        With `own` they count as taken: an object limited to available room must not be given the same room twice. Nor does it
        get more than all placements leave of a cluster: what members told before a restart, or on another watch, may be older.
        """
        snapshot, reservations = self._fleet.snapshot, self._reservations
        others, heard = (self._peers.totals, self._peers.version) if self._peers is not None else ({}, 0)
        reserved = reservations.totals if own else reservations.without(key)
        if reserved is not reservations.totals:
            return snapshot.with_reserved(added(reserved, others))
        known = self._known.get(own)
        if known is None or known[0] is not snapshot or known[1:3] != (reservations.version, heard):
            fleet = snapshot.with_reserved(added(reserved, others))
            fleet = fleet.with_committed(reservations.committed) if own else fleet
            known = self._known[own] = (snapshot, reservations.version, heard, fleet)
        return known[3]

    @contextlib.contextmanager
    def decided(self, key: SourceKey, federated: Json) -> Iterator[None]:
        """Reserves while a decision is being written: other objects are decided meanwhile.

        What it gives up is kept until then: the write may fail, and others must not be placed there before it.
        """
        config = self._counted(key)
        if config is None:
            yield
            return
        parts = {"metadata": federated["metadata"], "spec": federated["spec"]}
        held = self._reservations.held(key)
        self._place(key, config, msgspec.convert(parts, FederatedObject), None, held)
        try:
            yield
        finally:
            self._follow(key, config)

    # Handlers of changes.

    def _federated_changed(self, change: Change[FederatedView]) -> None:
        view = change.new or change.old
        key = self._caches.source_of(view) if view is not None else None
        config = self._counted(key) if key is not None else None
        if key is None or config is None:
            return
        old, new = change.old, change.new
        if old is None or new is None or _decided(old) != _decided(new):
            self._follow(key, config)
        elif old.status != new.status:
            with self._telling():
                self._reservations.observe_all(key, lambda cluster: self._copy(key, config, new, cluster))

    def _copy_changed(self, copy: CopyChange) -> None:
        key, cluster = copy.source, copy.cluster
        config = self._counted(key)
        view = self._caches.federated_view(key) if config is not None else None
        if config is not None and view is not None:
            with self._telling():
                self._reservations.observe(key, cluster, self._copy(key, config, view, cluster))

    def _type_changed(self, types: TypeChange) -> None:
        if types.new is None:
            return
        for informer in self._caches.federated.values():
            for view in informer.values():
                key = self._caches.source_of(view)
                if key is not None and key.type == types.new.name and self._counted(key) is not None:
                    self._follow(key, types.new)

    # Updates of the reservations.

    def _follow(self, key: SourceKey, config: FederatedTypeConfig) -> None:
        """Set the reservations of an object from the cache."""
        view, raw = self._caches.federated_view(key), self._caches.federated_raw(key)
        with self._telling():
            if view is None or raw is None or view.metadata.deletion_timestamp:
                self._reservations.drop(key)
                return
            try:
                federated = decode(raw, FederatedObject)
            except DecodeError:
                self._reservations.drop(key)
            else:
                self._place(key, config, federated, view)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        before = self._reservations.released
        yield
        if self._reservations.released != before:
            self.released.tell(None)

    def _place(
        self,
        key: SourceKey,
        config: FederatedTypeConfig,
        federated: FederatedObject,
        view: FederatedView | None,
        held: Held = NOTHING_HELD,
    ) -> None:
        """With no less than `held`."""
        template = federated.spec.template
        # Kubernetes defaults replicas to 1.
        whole = desired_replicas(template, config.spec.path_definition.replicas_spec)
        placed = {
            cluster: (1 if whole is None else whole) if number is None else number
            for cluster, number in current_placement(federated, config).items()
        }
        taken = held.at_least(request_of_template(template).amounts, placed)
        self._reservations.place(
            key, taken.request, taken.placed, lambda cluster: self._copy(key, config, view, cluster)
        )

    def _counted(self, key: SourceKey) -> FederatedTypeConfig | None:
        """The type config, for kinds that run pods and report their replicas."""
        config = self._caches.catalog.get(key.type)
        if config is None or not config.spec.path_definition.replicas_status:
            return None
        kind = kind_named(config.resource.group, config.kind)
        return config if kind.pod_spec else None

    def _copy(
        self, key: SourceKey, config: FederatedTypeConfig, view: FederatedView | None, cluster: str
    ) -> Copy | None:
        if cluster not in self._fleet.snapshot:
            return None
        found = self._collector.get(cluster, config.name, key.key)
        reported = view if view is not None else self._caches.federated_view(key)
        entries = reported.status.clusters if reported is not None else ()
        entry = next((each for each in entries if each.cluster == cluster), None)
        if found is None:
            # Before the first list, only copies that were never written are known not to run.
            return Copy(0) if entry is None or self._collector.synced(cluster, config.name) else None
        paths, content = config.spec.path_definition, as_object(found)
        current = (
            view is not None
            and view.status.synced_generation == view.metadata.generation
            and entry is not None
            and entry.status == Propagation.OK
            # What somebody changed there is not what it will ask for: it is repaired.
            and is_as_written(entry, found.metadata)
        )
        return Copy(
            number(content, paths.replicas_status) or 0,
            number(content, paths.replicas_spec) if current else None,
        )


def _decided(view: FederatedView) -> tuple[Any, ...]:
    metadata = view.metadata
    return metadata.uid, metadata.generation, bool(metadata.deletion_timestamp)
