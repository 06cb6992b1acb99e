"""Placed workloads: keeps the fleet's index of placed workloads up to date, for rules about other workloads.

Fed by federated objects (clusters) and their sources (labels); a shard knows the workloads of its own part.
"""

from collections.abc import Iterable
from typing import Any

from argosy.control.caches.informers import Caches, SourceChange
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView
from argosy.control.wake import Follow, Signal
from argosy.fleet.workloads import WorkloadKey, Workloads
from argosy.kube.informer import Change
from argosy.kube.objects import split_key
from argosy.plan.kinds.registry import kind_named

__all__ = ["PlacedWorkloads"]


class PlacedWorkloads:
    name = "placed workloads"

    def __init__(self, caches: Caches, workloads: Workloads) -> None:
        self._caches = caches
        self._workloads = workloads
        #: A workload was placed in a cluster or left one.
        self.moved: Signal[None] = Signal("placed workloads")

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._caches.federated_changes, self._federated_changed, "where a workload is placed")
        yield Follow(self._caches.source_changes, self._source_changed, "its labels")

    def _federated_changed(self, change: Change[FederatedView]) -> None:
        view = change.new or change.old
        if view is None or (change.old and change.new and change.old.spec == change.new.spec):
            return
        source = self._caches.source_of(view)
        if source is not None:
            self._set(source, change.new)

    def _source_changed(self, told: SourceChange) -> None:
        """Only its labels matter here; the federated object tells where a deleted source still runs."""
        change = told.change
        if change.new is None or (change.old and change.old.metadata.labels == change.new.metadata.labels):
            return
        view = self._caches.federated_view(told.key)
        if view is not None:
            self._set(told.key, view)

    def _set(self, source: SourceKey, view: FederatedView | None) -> None:
        config = self._caches.catalog.get(source.type)
        if config is None:
            return
        kind = kind_named(config.resource.group, config.kind)
        if not kind.pod_spec:
            return
        namespace, name = split_key(source.key)
        known = self._caches.source(source)
        key = WorkloadKey(config.resource.group, config.kind, namespace, name)
        labels = known.metadata.labels if known is not None else {}
        if self._workloads.set(key, labels, view.placed if view is not None else ()):
            self.moved.tell(None)
