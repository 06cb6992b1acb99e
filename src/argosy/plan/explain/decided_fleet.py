"""The fleet after a series of decisions: a snapshot's fleet, less what was decided before.

A decision counts for the next one, as in the controllers: replicas that will start take room, and workloads that came or
left change what rules about other workloads see. Freed room does not count: a member must first be seen to have stopped
the replicas.
"""

import msgspec

from argosy.api.federated import PlacementEntry
from argosy.api.policies import PropagationPolicy
from argosy.fleet.reservations import Copy, Reservations
from argosy.fleet.snapshot import Fleet
from argosy.fleet.workloads import WorkloadKey, Workloads
from argosy.kube.objects import Partial, decode
from argosy.plan.explain.forecast import Copies
from argosy.plan.explain.snapshot import ObjectKey, Snapshot
from argosy.plan.fields import Json
from argosy.plan.kinds.registry import kind_named
from argosy.plan.metadata import labels_of
from argosy.plan.scheduling.unit import request_of_template

__all__ = ["DecidedFleet", "looks_at_others"]


class _Spec(msgspec.Struct):
    placements: tuple[PlacementEntry, ...] = ()


class _Placed(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def looks_at_others(policy: PropagationPolicy | None) -> bool:
    """Whether a placement by this policy depends on where other workloads are."""
    return policy is not None and (
        policy.spec.workload_affinity is not None or policy.spec.workload_anti_affinity is not None
    )


class DecidedFleet:
    """Starts from the placements of the snapshot; `decided` adds to them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._reservations: Reservations[ObjectKey] = Reservations()
        self._fleet = snapshot.fleet
        self._workloads: Workloads | None = None
        if any(looks_at_others(policy) for policy in snapshot.policies.values()):
            self._workloads = _placed_in(snapshot)
            self._fleet = self._fleet.with_workloads(self._workloads)

    def fleet_for(self, key: ObjectKey) -> Fleet:
        """The fleet for one object: what is reserved for the object itself is free for it."""
        return self._fleet.with_reserved(self._reservations.without(key))

    def decided(self, key: ObjectKey, source: Json, before: Json | None, after: Json | None) -> None:
        """Records one object's federated object before and after its decision."""
        config = self._snapshot.type_configs[key.type]
        workload = _workload(self._snapshot, key)
        if workload is None:
            return
        old, new = Copies(config, before), Copies(config, after)
        if self._workloads is not None:
            self._workloads.set(workload, labels_of(source), new.clusters)
        placed = {name: number for name in new.clusters if (number := new.replicas(name))}
        self._reservations.place(
            key, request_of_template(source).amounts, placed, lambda name: Copy(old.replicas(name) or 0)
        )


def _placed_in(snapshot: Snapshot) -> Workloads:
    workloads = Workloads()
    for key, raw in snapshot.federated.items():
        workload = _workload(snapshot, key)
        source = snapshot.sources.get(key)
        if workload is not None and source is not None:
            clusters = {name for entry in decode(raw, _Placed).spec.placements for name in entry.clusters}
            workloads.set(workload, decode(source, Partial).metadata.labels, clusters)
    return workloads


def _workload(snapshot: Snapshot, key: ObjectKey) -> WorkloadKey | None:
    """None for an object that runs no pods."""
    config = snapshot.type_configs[key.type]
    kind = kind_named(config.resource.group, config.kind)
    if not kind.pod_spec:
        return None
    return WorkloadKey(config.resource.group, config.kind, key.namespace, key.name)
