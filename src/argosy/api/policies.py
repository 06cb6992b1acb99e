"""PropagationPolicy, OverridePolicy and their cluster-scoped twins: one type for both scopes, told apart by the namespace.

Absent and empty differ where the API says so: `None` means the field was absent.
"""

from typing import Any

import msgspec

from argosy.api.rules import ComputePower, Cost, FailureDomain, Locality, TopologySpreadConstraint, WorkloadAffinity
from argosy.api.selectors import ResourceSelector
from argosy.kube.objects import Metadata

__all__ = [
    "AutoMigration",
    "AutoMigrationTrigger",
    "ClusterSelectorRequirement",
    "ClusterSelectorTerm",
    "DesiredPlacement",
    "OverridePolicy",
    "OverridePolicySpec",
    "OverrideRule",
    "PolicyStatus",
    "Preferences",
    "PreferredTerm",
    "PropagationPolicy",
    "PropagationPolicySpec",
    "ReplicaRescheduling",
    "ReschedulePolicy",
    "RescheduleWhen",
    "TargetClusters",
    "Toleration",
    "TypedRefCount",
]


class ClusterSelectorRequirement(msgspec.Struct, frozen=True, rename="camel"):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class ClusterSelectorTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Both lists must match; a term with neither matches nothing."""

    match_expressions: tuple[ClusterSelectorRequirement, ...] = ()
    match_fields: tuple[ClusterSelectorRequirement, ...] = ()


class PreferredTerm(msgspec.Struct, frozen=True, omit_defaults=True):
    """Clusters that match are preferred by this much."""

    weight: int = 0
    preference: ClusterSelectorTerm = ClusterSelectorTerm()


class Toleration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    #: Accepted and without effect.
    toleration_seconds: int | None = None


class Preferences(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    min_replicas: int = 0
    max_replicas: int | None = None
    weight: int | None = None
    priority: int | None = None


class DesiredPlacement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    cluster: str
    preferences: Preferences = Preferences()


class AutoMigrationTrigger(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    #: A Go duration.
    pod_unschedulable_for: str | None = None


class AutoMigration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    when: AutoMigrationTrigger = AutoMigrationTrigger(pod_unschedulable_for="1m")
    keep_unschedulable_replicas: bool = False


class RescheduleWhen(msgspec.Struct, frozen=True, rename="camel"):
    """Each field has the API's default, whatever else is stated."""

    policy_content_changed: bool = True
    cluster_joined: bool = False
    cluster_labels_changed: bool = False
    #: The key spells API in capitals, which the renaming rule does not.
    cluster_api_resources_changed: bool = msgspec.field(name="clusterAPIResourcesChanged", default=False)


class ReplicaRescheduling(msgspec.Struct, frozen=True, rename="camel"):
    avoid_disruption: bool = False


class ReschedulePolicy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    disable_rescheduling: bool = False
    reschedule_when: RescheduleWhen | None = None
    replica_rescheduling: ReplicaRescheduling | None = None


class PropagationPolicySpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    scheduling_mode: str = ""
    scheduling_profile: str = ""
    replicas_strategy: str = ""
    cluster_selector: dict[str, str] = {}
    cluster_affinity: tuple[ClusterSelectorTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    max_clusters: int | None = None
    placement: tuple[DesiredPlacement, ...] = ()
    disable_follower_scheduling: bool = False
    auto_migration: AutoMigration | None = None
    reschedule_policy: ReschedulePolicy | None = None
    #: The older way to say reschedulePolicy.disableRescheduling.
    sticky_cluster: bool = False

    # Not known to KubeAdmiral; absent, they change nothing.
    preferred_cluster_affinity: tuple[PreferredTerm, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    workload_affinity: WorkloadAffinity | None = None
    workload_anti_affinity: WorkloadAffinity | None = None
    compute_power: ComputePower | None = None
    cost: Cost | None = None
    locality: Locality | None = None
    failure_domain: FailureDomain | None = None
    limit_replicas_to_available: bool = False
    resource_selectors: tuple[ResourceSelector, ...] = ()
    #: Among policies that select the same object.
    priority: int = 0
    #: `Confirm`: no copy is taken away because something besides the object itself changed, before somebody confirms that.
    removal_protection: str = ""
    #: `Report`: what others change in members stays there, and is shown.
    drift_correction: str = ""

    @property
    def placing(self) -> "PropagationPolicySpec":
        """Without what says which objects it is for, and how they are guarded."""
        return msgspec.structs.replace(self, resource_selectors=(), priority=0, removal_protection="")

    @property
    def sticky(self) -> bool:
        """Whether chosen clusters are kept, by either field."""
        policy = self.reschedule_policy
        return self.sticky_cluster or (policy is not None and policy.disable_rescheduling)

    @property
    def reschedule_when(self) -> RescheduleWhen:
        """With the API's defaults if nothing is stated. The API server fills them in only if `reschedulePolicy` is absent."""
        policy = self.reschedule_policy
        return (policy and policy.reschedule_when) or RescheduleWhen()

    @property
    def avoid_disruption(self) -> bool:
        policy = self.reschedule_policy
        return bool(policy and policy.replica_rescheduling and policy.replica_rescheduling.avoid_disruption)

    @property
    def allows_disruption(self) -> bool:
        """Whether it says so itself; `avoid_disruption` is also False if nothing is said."""
        policy = self.reschedule_policy
        return bool(policy and policy.replica_rescheduling and not policy.replica_rescheduling.avoid_disruption)


class TypedRefCount(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    resource: str
    count: int = 0
    group: str = ""


class PolicyStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    ref_count: int = 0
    typed_ref_count: tuple[TypedRefCount, ...] = ()


class PropagationPolicy(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: PropagationPolicySpec = PropagationPolicySpec()
    status: PolicyStatus = PolicyStatus()

    @property
    def kind(self) -> str:
        return "PropagationPolicy" if self.metadata.namespace else "ClusterPropagationPolicy"


class TargetClusters(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    clusters: tuple[str, ...] = ()
    cluster_selector: dict[str, str] = {}
    cluster_affinity: tuple[ClusterSelectorTerm, ...] = ()


class OverrideRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`overriders` stays a plain mapping: each overrider checks its own items; unknown ones are reported."""

    target_clusters: TargetClusters | None = None
    overriders: dict[str, Any] | None = None


class OverridePolicySpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    override_rules: tuple[OverrideRule, ...] = ()


class OverridePolicy(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: OverridePolicySpec = OverridePolicySpec()
    status: PolicyStatus = PolicyStatus()

    @property
    def kind(self) -> str:
        return "OverridePolicy" if self.metadata.namespace else "ClusterOverridePolicy"
