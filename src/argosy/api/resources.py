"""The federation's kinds as resources a client can address, by scope where there are two."""

from typing import Final

from argosy.api import keys
from argosy.kube.resource import Resource

__all__ = [
    "CLUSTER_COLLECTED_STATUSES",
    "CLUSTER_FEDERATED_OBJECTS",
    "CLUSTER_OVERRIDE_POLICIES",
    "CLUSTER_PROPAGATED_VERSIONS",
    "CLUSTER_PROPAGATION_POLICIES",
    "COLLECTED_STATUSES",
    "FEDERATED_CLUSTERS",
    "FEDERATED_OBJECTS",
    "FEDERATED_TYPE_CONFIGS",
    "OVERRIDE_POLICIES",
    "PROPAGATED_VERSIONS",
    "PROPAGATION_POLICIES",
    "SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS",
    "SCHEDULING_PROFILES",
    "federated_objects",
]


def _resource(kind: str, plural: str, namespaced: bool = False) -> Resource:
    return Resource(keys.GROUP, keys.VERSION, plural, kind, namespaced)


FEDERATED_CLUSTERS: Final = _resource("FederatedCluster", "federatedclusters")
PROPAGATION_POLICIES: Final = _resource("PropagationPolicy", "propagationpolicies", True)
CLUSTER_PROPAGATION_POLICIES: Final = _resource("ClusterPropagationPolicy", "clusterpropagationpolicies")
OVERRIDE_POLICIES: Final = _resource("OverridePolicy", "overridepolicies", True)
CLUSTER_OVERRIDE_POLICIES: Final = _resource("ClusterOverridePolicy", "clusteroverridepolicies")
FEDERATED_OBJECTS: Final = _resource("FederatedObject", "federatedobjects", True)
CLUSTER_FEDERATED_OBJECTS: Final = _resource("ClusterFederatedObject", "clusterfederatedobjects")
COLLECTED_STATUSES: Final = _resource("CollectedStatus", "collectedstatuses", True)
CLUSTER_COLLECTED_STATUSES: Final = _resource("ClusterCollectedStatus", "clustercollectedstatuses")
PROPAGATED_VERSIONS: Final = _resource("PropagatedVersion", "propagatedversions", True)
CLUSTER_PROPAGATED_VERSIONS: Final = _resource("ClusterPropagatedVersion", "clusterpropagatedversions")
FEDERATED_TYPE_CONFIGS: Final = _resource("FederatedTypeConfig", "federatedtypeconfigs")
SCHEDULING_PROFILES: Final = _resource("SchedulingProfile", "schedulingprofiles")
SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS: Final = _resource(
    "SchedulerPluginWebhookConfiguration", "schedulerpluginwebhookconfigurations"
)


def federated_objects(namespaced: bool) -> Resource:
    """The kind of federated object that carries sources of this scope."""
    return FEDERATED_OBJECTS if namespaced else CLUSTER_FEDERATED_OBJECTS
