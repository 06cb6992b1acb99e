"""Placement rules of a propagation policy that KubeAdmiral's API does not have: spread, affinity between workloads, and more.

All of them are optional, and a policy without them means what it always meant. These are the fields as written;
`plan.scheduling.rules` validates them.
"""

from typing import Any, Final

import msgspec

__all__ = [
    "DO_NOT_SCHEDULE",
    "SCHEDULE_ANYWAY",
    "ComputePower",
    "Cost",
    "FailureDomain",
    "Locality",
    "LocalityTerm",
    "TopologySpreadConstraint",
    "WeightedWorkloadTerm",
    "WorkloadAffinity",
    "WorkloadTerm",
]

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"


class TopologySpreadConstraint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Over how many values of a cluster label an object is spread, and how evenly."""

    topology_key: str = ""
    min_domains: int | None = None
    max_domains: int | None = None
    max_skew: int | None = None
    when_unsatisfiable: str = DO_NOT_SCHEDULE


class WorkloadTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Workloads by their labels. Without namespaces, those of the object's own; without a key, a domain is a cluster."""

    label_selector: dict[str, Any] | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


class WeightedWorkloadTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    weight: int = 1
    workload_affinity_term: WorkloadTerm = WorkloadTerm()


class WorkloadAffinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    required_during_scheduling_ignored_during_execution: tuple[WorkloadTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedWorkloadTerm, ...] = ()


class ComputePower(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    normalize_capacity: bool = True
    prefer_consistent: bool = True


class Cost(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    prefer_lowest: bool = True
    #: A decimal such as "0.04", in whatever currency the clusters' prices are.
    max_price_per_core_hour: str | int | float | None = None


class LocalityTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    topology_key: str = ""
    value: str = ""


class Locality(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """From the nearest to the farthest."""

    near: tuple[LocalityTerm, ...] = ()


class FailureDomain(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    topology_key: str = ""
    max_unready_percent: int = 50
    when_exceeded: str = SCHEDULE_ANYWAY
