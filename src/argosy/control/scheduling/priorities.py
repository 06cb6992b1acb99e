"""Priorities: which objects are reconciled first, by the PriorityClass of their pods.

If room is short, the workload placed first gets it: after a cluster failed, that should be the most important one. Reads the
control plane's PriorityClasses; without the right to read them, all objects are equal.
"""

from typing import Any

import msgspec

from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.informer import Informer
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource
from argosy.plan.failover.failover import rank
from argosy.plan.scheduling.priority import priority_class_of

__all__ = ["PRIORITY_CLASSES", "Priorities", "PriorityClassView"]

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)


class PriorityClassView(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False


class Priorities:
    def __init__(self, client: Client, timings: Timings):
        self.informer: Informer[PriorityClassView] = Informer(
            client,
            PRIORITY_CLASSES,
            PriorityClassView,
            liveness=timings.watch_liveness,
            on_change=self._changed,
        )
        self._default = 0

    def rank(self, source: bytes | None) -> int:
        """The queue priority of a source: lower goes first. Objects without pods rank with priority 0."""
        if not self.informer.has_synced or source is None:
            return rank(0)
        name = priority_class_of(source)
        found = self.informer.get(name) if name else None
        return rank(self._default if found is None else found.value)

    def _changed(self, change: Any) -> None:
        self._default = next((each.value for each in self.informer.values() if each.global_default), 0)
