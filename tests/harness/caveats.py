"""Objects that say what does not happen, one for each caveat, and objects that do not; valid on any API server."""

from typing import Any, NamedTuple

from argosy.api import keys, resources
from argosy.kube.resource import Resource
from tests.harness.user import CONFIGMAPS, NAMESPACES

__all__ = ["EXAMPLES", "NAMESPACE", "PLAIN", "Example"]

NAMESPACE = "caveats"
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
JOBS = Resource("batch", "v1", "jobs", "Job")
WORK = {"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}}
SERVICE_EXPORTS = Resource("multicluster.x-k8s.io", "v1alpha1", "serviceexports", "ServiceExport")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)

Json = dict[str, Any]


class Example(NamedTuple):
    #: What is told of it; empty for nothing.
    text: str
    resource: Resource
    body: Json


def obj(resource: Resource, content: Json, *, annotations: Json | None = None, labels: Json | None = None) -> Json:
    metadata: Json = {"name": "example"}
    if annotations:
        metadata["annotations"] = annotations
    if labels:
        metadata["labels"] = labels
    if resource.namespaced:
        metadata["namespace"] = NAMESPACE
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    return {"apiVersion": version, "kind": resource.kind, "metadata": metadata, **content}


def policy(text: str, annotations: Json | None = None, **spec: Any) -> Example:
    content = {"spec": {"schedulingMode": keys.DIVIDE, **spec}}
    return Example(
        text, resources.PROPAGATION_POLICIES, obj(resources.PROPAGATION_POLICIES, content, annotations=annotations)
    )


def type_config(text: str, annotations: Json | None = None, **spec: Any) -> Example:
    source = {"version": "v1", "group": "example.com", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
    content = {"spec": {"sourceType": source, "controllers": [[keys.GLOBAL_SCHEDULER]], **spec}}
    resource = resources.FEDERATED_TYPE_CONFIGS
    return Example(text, resource, obj(resource, content, annotations=annotations))


def cluster(text: str, annotations: Json | None = None, labels: Json | None = None, **spec: Any) -> Example:
    content = {"spec": {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "none"}, **spec}}
    resource = resources.FEDERATED_CLUSTERS
    return Example(text, resource, obj(resource, content, annotations=annotations, labels=labels))


def config_map(text: str, annotations: Json | None = None, **labels: str) -> Example:
    return Example(text, CONFIGMAPS, obj(CONFIGMAPS, {}, annotations=annotations, labels=labels))


PLACED = {keys.PROPAGATION_POLICY_LABEL: "everywhere"}
DUPLICATE = {"schedulingMode": keys.DUPLICATE}
EVERYWHERE = [{"cluster": "m1", "preferences": {"minReplicas": 1}}]
STICKY = {"disableRescheduling": True}
WEBHOOK = {"payloadVersions": ["v1alpha1"], "urlPrefix": "https://example.com"}
SCALED = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3}
_WEBHOOKS = resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS

EXAMPLES: list[Example] = [
    policy(
        "tolerationSeconds", tolerations=[{"key": "a", "operator": "Exists"}, {"key": "b", "tolerationSeconds": 60}]
    ),
    policy("minReplicas", **DUPLICATE, placement=EVERYWHERE),
    policy("maxReplicas", **DUPLICATE, placement=[{"cluster": "m1", "preferences": {"maxReplicas": 1}}]),
    policy(
        "preferences.weight",
        **DUPLICATE,
        placement=[{"cluster": "m1"}, {"cluster": "m2", "preferences": {"weight": 0}}],
    ),
    policy("replicasStrategy", **DUPLICATE, replicasStrategy=keys.BINPACK),
    policy("limitReplicasToAvailable", **DUPLICATE, limitReplicasToAvailable=True),
    policy("spec.autoMigration has an effect in Divide", **DUPLICATE, autoMigration={}),
    policy("podUnschedulableFor", autoMigration={"when": {"podUnschedulableFor": "a while"}}),
    policy("clusterJoined", reschedulePolicy={**STICKY, "rescheduleWhen": {"clusterJoined": True}}),
    policy(
        "clusterLabelsChanged", stickyCluster=True, reschedulePolicy={"rescheduleWhen": {"clusterLabelsChanged": True}}
    ),
    policy(
        "clusterAPIResourcesChanged",
        reschedulePolicy={**STICKY, "rescheduleWhen": {"clusterAPIResourcesChanged": True}},
    ),
    policy("maxClusters", maxClusters=0),
    policy(keys.FAILBACK_REPLICAS, {keys.FAILBACK_REPLICAS: "few"}),
    policy(keys.REFUSE_OBJECT_OVERRIDES, {keys.REFUSE_OBJECT_OVERRIDES: "yes"}),
    Example(
        "without overriders",
        resources.CLUSTER_OVERRIDE_POLICIES,
        obj(
            resources.CLUSTER_OVERRIDE_POLICIES,
            {"spec": {"overrideRules": [{"overriders": {"jsonpatch": []}}, {"targetClusters": {"clusters": ["m1"]}}]}},
        ),
    ),
    type_config("is malformed", retainedFields=["spec.size", ".spec.parts[*].size", "spec..size"]),
    type_config("on apiVersion, kind and metadata", retainedFields=[".metadata.labels", "spec.metadata"]),
    type_config("labelSelector", pathDefinition={"labelSelector": "spec.selector"}),
    type_config("lists no controller that places", controllers=[[keys.OVERRIDE_CONTROLLER]]),
    type_config("only Deployments", autoMigration={"enabled": True}),
    type_config(
        "taken for Cluster",
        sourceType={"version": "v1", "group": "example.com", "kind": "Widget", "pluralName": "widgets", "scope": "All"},
    ),
    cluster("taints[].effect", taints=[{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "Never"}]),
    cluster(keys.MEMBER_ACCESS, {keys.MEMBER_ACCESS: "Full"}),
    cluster(keys.CLUSTER_RESOURCE_PLUGINS, {keys.CLUSTER_RESOURCE_PLUGINS: '["node.example.com"]'}),
    cluster(keys.PAUSED, {keys.PAUSED: "yes"}),
    cluster(keys.FAILOVER_AFTER, {keys.FAILOVER_AFTER: "5 minutes"}),
    cluster(keys.FAILBACK_AFTER, {keys.FAILBACK_AFTER: "never"}),
    cluster(keys.COMPUTE_POWER, labels={keys.COMPUTE_POWER: "strong"}),
    cluster(keys.PRICE_PER_CORE_HOUR, {keys.PRICE_PER_CORE_HOUR: "0,04"}),
    Example("serves nothing", _WEBHOOKS, obj(_WEBHOOKS, {"spec": {**WEBHOOK, "filterPath": ""}})),
    config_map(keys.RETAIN_REPLICAS, {keys.RETAIN_REPLICAS: "1"}),
    config_map(keys.DRY_RUN, {keys.DRY_RUN: "yes"}),
    Example("none of true", NAMESPACES, obj(NAMESPACES, {}, annotations={keys.NO_AUTO_PROPAGATION: "yes"})),
    config_map(keys.STICKY_CLUSTER, {keys.STICKY_CLUSTER: "yes"}, **PLACED),
    config_map(keys.PAUSED, {keys.PAUSED: "yes"}),
    config_map(keys.NO_SELECTION, {keys.NO_SELECTION: "yes"}),
    config_map(f"{keys.CONFLICT_RESOLUTION} has no effect: its", {keys.CONFLICT_RESOLUTION: "Adopt"}),
    config_map(keys.ORPHAN, {keys.ORPHAN: "none"}),
    config_map(keys.SCHEDULING_MODE, {keys.SCHEDULING_MODE: "divide"}, **PLACED),
    config_map(keys.MAX_CLUSTERS, {keys.MAX_CLUSTERS: "two"}, **PLACED),
    config_map("names no policy", {keys.PLACEMENTS: "[]"}),
    config_map(keys.CLUSTERS_TO_ADOPT, {keys.CLUSTERS_TO_ADOPT: "{}"}),
    config_map("which names the clusters", {keys.CONFLICT_RESOLUTION: keys.ADOPT}),
    config_map("on namespaces alone", {keys.NO_AUTO_PROPAGATION: "true"}),
    config_map("only what runs pods", {keys.FOLLOWERS: "[]"}),
    config_map(keys.FOLLOWS_OBJECT, {keys.FOLLOWS_OBJECT: "apps/v1/deployments/a/b"}),
    config_map(keys.NO_FEDERATED_RESOURCE, {keys.NO_FEDERATED_RESOURCE: "1"}, **PLACED),
    Example(
        f"namespace {keys.SYSTEM_NAMESPACE}",
        CONFIGMAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "example", "namespace": keys.SYSTEM_NAMESPACE, "labels": PLACED},
        },
    ),
    Example(keys.PROPAGATION_POLICY_LABEL, CLUSTER_ROLES, obj(CLUSTER_ROLES, {"rules": []}, labels=PLACED)),
    Example(
        keys.OVERRIDE_POLICY_LABEL,
        CLUSTER_ROLES,
        obj(CLUSTER_ROLES, {"rules": []}, labels={keys.OVERRIDE_POLICY_LABEL: "images"}),
    ),
    config_map(
        "also names a policy of its namespace", **PLACED, **{keys.CLUSTER_PROPAGATION_POLICY_LABEL: "everywhere"}
    ),
    Example(
        keys.HPA_MODE_LABEL,
        AUTOSCALERS,
        obj(AUTOSCALERS, {"spec": SCALED}, labels={keys.HPA_MODE_LABEL: "centralized"}),
    ),
    Example(
        "stays until somebody deletes it",
        JOBS,
        obj(JOBS, {"spec": {"ttlSecondsAfterFinished": 60, "template": WORK}}, labels=PLACED),
    ),
    Example("not exported", SERVICE_EXPORTS, obj(SERVICE_EXPORTS, {})),
]

PLAIN: list[Example] = [
    policy("", tolerations=[{"key": "a", "operator": "Exists"}], placement=EVERYWHERE, maxClusters=2, autoMigration={}),
    policy("", {keys.FAILBACK_REPLICAS: "3", keys.REFUSE_OBJECT_OVERRIDES: "true"}, **DUPLICATE),
    policy("", reschedulePolicy={"rescheduleWhen": {"clusterJoined": True, "clusterLabelsChanged": True}}),
    type_config(""),
    type_config("", controllers=[["example.com/scheduler"]]),
    cluster("", taints=[{"key": "a", "effect": "NoExecute"}]),
    cluster(
        "",
        {
            keys.FAILOVER_AFTER: "never",
            keys.FAILBACK_AFTER: "1m30s",
            keys.COMPUTE_POWER: "1.5",
            keys.PRICE_PER_CORE_HOUR: "40m",
            keys.CLUSTER_RESOURCE_PLUGINS: '["node.katalyst.kubewharf.io"]',
            keys.MEMBER_ACCESS: keys.FULL,
        },
    ),
    Example("", _WEBHOOKS, obj(_WEBHOOKS, {"spec": {**WEBHOOK, "scorePath": "/score"}})),
    config_map("", {keys.DRY_RUN: "true", keys.SCHEDULING_MODE: keys.DIVIDE, keys.MAX_CLUSTERS: "2"}, **PLACED),
    config_map("", {keys.CONFLICT_RESOLUTION: keys.ADOPT, keys.CLUSTERS_TO_ADOPT: '{"regexp": "."}'}),
    Example("", NAMESPACES, obj(NAMESPACES, {}, annotations={keys.NO_AUTO_PROPAGATION: "true"})),
]
