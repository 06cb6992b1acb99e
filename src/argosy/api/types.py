"""The federation's kinds as typed values: one import for those who read whole objects. Each family has its own file."""

from argosy.api.clusters import APIResource, ClusterCondition, ClusterResources, ClusterStatus, FederatedCluster
from argosy.api.federated import CollectedStatus, FederatedObject, FederatedStatus, PlacementEntry, PropagationEntry
from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.profiles import (
    SchedulerPluginWebhookConfiguration,
    SchedulingProfile,
    WebhookConfigurationSpec,
    WebhookTLSConfig,
)
from argosy.api.typeconfigs import FederatedTypeConfig

__all__ = [
    "APIResource",
    "ClusterCondition",
    "ClusterResources",
    "ClusterStatus",
    "CollectedStatus",
    "FederatedCluster",
    "FederatedObject",
    "FederatedStatus",
    "FederatedTypeConfig",
    "OverridePolicy",
    "PlacementEntry",
    "PropagationEntry",
    "PropagationPolicy",
    "SchedulerPluginWebhookConfiguration",
    "SchedulingProfile",
    "WebhookConfigurationSpec",
    "WebhookTLSConfig",
]
