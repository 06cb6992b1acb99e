"""Priorities: who is looked at first when many objects have to be, by the PriorityClass of their pods.

Where room is short, whoever is placed first has it: after a cluster failed, that is to be the workload that matters most.
Reads the control plane's PriorityClasses; where they cannot be read, all are equal.
"""

from typing import Any

import msgspec

from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.informer import Informer
from argosy.kube.objects import DecodeError, Metadata, decode
from argosy.kube.resource import Resource
from argosy.plan.failover import rank

__all__ = ["Priorities", "PriorityClassView"]

_PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)


class PriorityClassView(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    priority_class_name: str = ""


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _Workload(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class Priorities:
    def __init__(self, client: Client, timings: Timings):
        self.informer: Informer[PriorityClassView] = Informer(
            client, _PRIORITY_CLASSES, PriorityClassView, liveness=timings.watch_liveness
        )
        self.informer.add_handler(self._changed)
        self._default = 0

    def rank(self, source: bytes | None) -> int:
        """The queue's priority for a source: lower goes first. What is no workload goes with the most ordinary ones."""
        if not self.informer.has_synced or source is None:
            return rank(0)
        try:
            name = decode(source, _Workload).spec.template.spec.priority_class_name
        except DecodeError:
            name = ""
        found = self.informer.get(name) if name else None
        return rank(self._default if found is None else found.value)

    def _changed(self, change: Any) -> None:
        self._default = next((each.value for each in self.informer.values() if each.global_default), 0)
