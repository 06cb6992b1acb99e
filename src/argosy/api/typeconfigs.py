"""FederatedTypeConfig: which resource types are federated and how, and the stock ones every installation has.

The name of a type config is part of the names of its federated objects, so stock names never change.
"""

from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.statusrules import StatusRules
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource

__all__ = [
    "FederatedTypeConfig",
    "FollowerRules",
    "NamedReference",
    "PathDefinition",
    "SourceType",
    "StatusAggregation",
    "StatusCollection",
    "TypeConfigSpec",
    "manifests",
]


class SourceType(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    version: str
    kind: str
    plural_name: str
    scope: str
    group: str = ""


class PathDefinition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Dotted paths; an empty one is not defined."""

    label_selector: str = ""
    replicas_spec: str = ""
    replicas_status: str = ""
    available_replicas_status: str = ""
    ready_replicas_status: str = ""


class StatusCollection(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool = False
    fields: tuple[str, ...] = ()


class StatusAggregation(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool = True


class AutoMigrationConfig(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool = False


class NamedReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where objects name others of their namespace: the dotted path of the name, `[*]` for each item of a list."""

    kind: str
    path: str
    group: str = ""


class FollowerRules(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Argosy's own: what objects of a type need. What a pod spec at one of the dotted paths names is found by itself."""

    pod_specs: tuple[str, ...] = ()
    references: tuple[NamedReference, ...] = ()


class TypeConfigSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    source_type: SourceType
    controllers: tuple[tuple[str, ...], ...] = ()
    path_definition: PathDefinition = PathDefinition()
    status_collection: StatusCollection = StatusCollection()
    status_aggregation: StatusAggregation = StatusAggregation()
    auto_migration: AutoMigrationConfig = AutoMigrationConfig()
    followers: FollowerRules = FollowerRules()
    #: Argosy's own: what is known of the kind's status otherwise.
    status_rules: StatusRules | None = None


class FederatedTypeConfig(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: TypeConfigSpec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespaced(self) -> bool:
        return self.spec.source_type.scope == keys.NAMESPACED

    @property
    def api_version(self) -> str:
        source = self.spec.source_type
        return f"{source.group}/{source.version}" if source.group else source.version

    @property
    def kind(self) -> str:
        return self.spec.source_type.kind

    @property
    def resource(self) -> Resource:
        """The source type as something a client can address."""
        source = self.spec.source_type
        return Resource(source.group, source.version, source.plural_name, source.kind, self.namespaced)


_CREATED = "metadata.creationTimestamp"
_GENERATION = "metadata.generation"
_RBAC = "rbac.authorization.k8s.io"
_PIPELINE = [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]]


def _manifest(
    name: str,
    group: str,
    version: str,
    kind: str,
    collected: list[str] | None = None,
    *,
    cluster_scoped: bool = False,
    controllers: list[list[str]] | None = None,
    annotations: dict[str, str] | None = None,
    aggregate: bool = True,
    **spec: Any,
) -> dict[str, Any]:
    source = {"version": version, "kind": kind, "pluralName": name.partition(".")[0]}
    source["scope"] = keys.CLUSTER if cluster_scoped else keys.NAMESPACED
    if group:
        source["group"] = group
    body: dict[str, Any] = {"sourceType": source}
    pipeline = _PIPELINE if controllers is None else controllers
    if pipeline:
        body["controllers"] = [list(step) for step in pipeline]
    if collected:
        body["statusCollection"] = {"enabled": True, "fields": collected}
    body["statusAggregation"] = {"enabled": aggregate}
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": metadata,
        "spec": {**body, **spec},
    }


def manifests() -> list[dict[str, Any]]:
    """The stock type configs, in the order they are installed."""
    workload = [_CREATED, _GENERATION, "status"]
    scaled = [_CREATED, _GENERATION, "spec.replicas", "status"]
    return [
        _manifest(
            "namespaces",
            "",
            "v1",
            "Namespace",
            cluster_scoped=True,
            controllers=[[keys.NSAUTOPROP_CONTROLLER], [keys.OVERRIDE_CONTROLLER]],
            aggregate=False,
        ),
        _manifest("configmaps", "", "v1", "ConfigMap", [_CREATED]),
        _manifest("secrets", "", "v1", "Secret", [_CREATED]),
        _manifest("serviceaccounts", "", "v1", "ServiceAccount", [_CREATED]),
        _manifest("services", "", "v1", "Service", [_CREATED, "spec.clusterIP", "spec.type", "spec.ports", "status"]),
        _manifest(
            "persistentvolumes",
            "",
            "v1",
            "PersistentVolume",
            [
                _CREATED,
                "spec.accessModes",
                "spec.capacity",
                "spec.storageClassName",
                "spec.persistentVolumeReclaimPolicy",
                "status",
            ],
            cluster_scoped=True,
        ),
        _manifest(
            "persistentvolumeclaims",
            "",
            "v1",
            "PersistentVolumeClaim",
            [_CREATED, "spec.resources.requests", "spec.storageClassName", "status"],
        ),
        _manifest("limitranges", "", "v1", "LimitRange"),
        _manifest("resourcequotas", "", "v1", "ResourceQuota", [_CREATED, "status"]),
        _manifest(
            "storageclasses",
            "storage.k8s.io",
            "v1",
            "StorageClass",
            [_CREATED, "provisioner", "reclaimPolicy"],
            cluster_scoped=True,
        ),
        _manifest(
            "deployments.apps",
            "apps",
            "v1",
            "Deployment",
            scaled,
            autoMigration={"enabled": True},
            pathDefinition={
                "labelSelector": "spec.selector",
                "replicasSpec": "spec.replicas",
                "replicasStatus": "status.replicas",
                "availableReplicasStatus": "status.availableReplicas",
                "readyReplicasStatus": "status.readyReplicas",
            },
        ),
        _manifest("statefulsets.apps", "apps", "v1", "StatefulSet", scaled),
        _manifest("daemonsets.apps", "apps", "v1", "DaemonSet", workload),
        _manifest("jobs.batch", "batch", "v1", "Job", workload),
        _manifest("cronjobs.batch", "batch", "v1", "CronJob", workload),
        _manifest(
            "ingresses.networking.k8s.io", "networking.k8s.io", "v1", "Ingress", [_CREATED, "spec.rules", "status"]
        ),
        _manifest(f"roles.{_RBAC}", _RBAC, "v1", "Role"),
        _manifest(f"rolebindings.{_RBAC}", _RBAC, "v1", "RoleBinding"),
        _manifest(f"clusterroles.{_RBAC}", _RBAC, "v1", "ClusterRole", cluster_scoped=True),
        _manifest(f"clusterrolebindings.{_RBAC}", _RBAC, "v1", "ClusterRoleBinding", cluster_scoped=True),
        _manifest(
            "customresourcedefinitions.apiextensions.k8s.io",
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            [_CREATED, "status"],
            cluster_scoped=True,
        ),
        _manifest(
            "horizontalpodautoscalers.autoscaling",
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            [_CREATED, "status"],
            controllers=[[keys.FEDERATED_HPA_CONTROLLER], [keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]],
            annotations={keys.SCALE_TARGET_REF_PATH: "spec.scaleTargetRef"},
        ),
        _manifest(
            "poddisruptionbudgets.policy", "policy", "v1", "PodDisruptionBudget", [_CREATED, _GENERATION, "status"]
        ),
        _manifest("serviceimports.multicluster.x-k8s.io", "multicluster.x-k8s.io", "v1alpha1", "ServiceImport"),
        _manifest("serviceexports.multicluster.x-k8s.io", "multicluster.x-k8s.io", "v1alpha1", "ServiceExport"),
        _manifest("endpointslices.discovery.k8s.io", "discovery.k8s.io", "v1", "EndpointSlice", controllers=[]),
        _manifest("pods", "", "v1", "Pod", [_CREATED, "spec.nodeName", "status"]),
    ]
