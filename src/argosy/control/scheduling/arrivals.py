"""Arrivals: kinds that came to the fleet lately, for the first placement of their objects (`plan.scheduling.arriving`).

Known from what members are seen to serve, and from the definition's federated object, which also survives a restart.
"""

import datetime
from collections.abc import Iterable
from typing import Any

from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.informers import Caches
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.timings import Timings
from argosy.control.wake import Follow
from argosy.fleet.member import ApiKey
from argosy.kube import clock, timestamps
from argosy.plan.kinds.stock.definition import DEFINITION
from argosy.plan.scheduling.arriving import Arrival, arrival_of

__all__ = ["Arrivals"]


class Arrivals:
    name = "arriving kinds"

    def __init__(self, caches: Caches, fleet: LiveFleet, timings: Timings):
        self._caches = caches
        self._fleet = fleet
        self._patience = timings.kind_patience
        self._seen: dict[ApiKey, datetime.datetime] = {}

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._fleet.arrived, self._arrived, "its objects wait a moment for other members to serve it")

    def of(self, config: FederatedTypeConfig) -> Arrival | None:
        source, definitions = config.spec.source_type, self._caches.catalog.of_kind(*DEFINITION)
        name = f"{source.plural_name}.{source.group}"
        view = self._caches.federated_view(SourceKey(definitions.name, name)) if definitions is not None else None
        defined = timestamps.parse(view.metadata.creation_timestamp) if view is not None else None
        seen = self._seen.get((source.group, source.version, source.kind))
        if seen is None and defined is None:
            return None
        clusters = view.placed if view is not None and view.placed else None
        return arrival_of(seen, defined, clusters, now=clock.now(), patience=self._patience)

    def _arrived(self, api: ApiKey) -> None:
        now = clock.now()
        kept = datetime.timedelta(seconds=self._patience)
        self._seen = {known: time for known, time in self._seen.items() if now - time < kept} | {api: now}
