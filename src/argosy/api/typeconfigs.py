"""FederatedTypeConfig: which resource types are federated and how, and the stock ones every installation has.

The name of a type config is part of the names of its federated objects, so stock names never change.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from argosy.api import keys
from argosy.api.statusrules import StatusRules
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource

__all__ = [
    "FIELD_PATH",
    "FederatedTypeConfig",
    "FollowerRules",
    "NamedReference",
    "PathDefinition",
    "SourceType",
    "StatusAggregation",
    "StatusCollection",
    "TypeConfigSpec",
    "earlier",
    "manifests",
    "revision",
]


#: How a path of `retainedFields` looks.
FIELD_PATH: Final = r"[.]?[A-Za-z0-9_-]+(\[[*]\])?([.][A-Za-z0-9_-]+(\[[*]\])?)*"


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
    #: Argosy's own: dotted paths of fields that members own, `[*]` for the items of a list by their names.
    retained_fields: tuple[str, ...] = ()


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
_ADMISSION = "admissionregistration.k8s.io"
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
    revision: int = 0,
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
    if revision:
        annotations = {**(annotations or {}), keys.REVISION: str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": metadata,
        "spec": {**body, **spec},
    }


def revision(metadata: Mapping[str, Any]) -> int:
    """Which edition of a stock type config is stored; 0 for the first one, KubeAdmiral's own and unreadable ones."""
    text = str((metadata.get("annotations") or {}).get(keys.REVISION, ""))
    return int(text) if text.isascii() and text.isdigit() else 0


def earlier(manifest: Mapping[str, Any]) -> TypeConfigSpec:
    """What the edition before said: without paths of replicas, so that the kind could not be divided."""
    spec = {key: value for key, value in manifest["spec"].items() if key != "pathDefinition"}
    return msgspec.convert(spec, TypeConfigSpec)


def _counts(**paths: str) -> dict[str, str]:
    return {
        "replicasSpec": "spec.replicas",
        "replicasStatus": "status.replicas",
        "availableReplicasStatus": "status.availableReplicas",
        "readyReplicasStatus": "status.readyReplicas",
        **paths,
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
            pathDefinition={"labelSelector": "spec.selector", **_counts()},
        ),
        _manifest("statefulsets.apps", "apps", "v1", "StatefulSet", scaled, revision=2, pathDefinition=_counts()),
        _manifest("daemonsets.apps", "apps", "v1", "DaemonSet", workload),
        _manifest("replicasets.apps", "apps", "v1", "ReplicaSet", scaled, pathDefinition=_counts()),
        _manifest("replicationcontrollers", "", "v1", "ReplicationController", scaled, pathDefinition=_counts()),
        _manifest(
            "jobs.batch",
            "batch",
            "v1",
            "Job",
            workload,
            revision=2,
            pathDefinition={"replicasSpec": "spec.parallelism"},
        ),
        _manifest("cronjobs.batch", "batch", "v1", "CronJob", workload),
        _manifest(
            "ingresses.networking.k8s.io", "networking.k8s.io", "v1", "Ingress", [_CREATED, "spec.rules", "status"]
        ),
        _manifest("networkpolicies.networking.k8s.io", "networking.k8s.io", "v1", "NetworkPolicy", [_CREATED]),
        _manifest(
            "ingressclasses.networking.k8s.io",
            "networking.k8s.io",
            "v1",
            "IngressClass",
            [_CREATED, "spec.controller"],
            cluster_scoped=True,
        ),
        _manifest(
            "priorityclasses.scheduling.k8s.io",
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            [_CREATED, "value"],
            cluster_scoped=True,
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
        # Who serves a group is each cluster's own: the control plane's status of it is not the members'.
        _manifest(
            "apiservices.apiregistration.k8s.io",
            "apiregistration.k8s.io",
            "v1",
            "APIService",
            [_CREATED, "status"],
            cluster_scoped=True,
            aggregate=False,
        ),
        *(
            _manifest(
                f"{plural}.{_ADMISSION}", _ADMISSION, "v1", kind, [_CREATED], cluster_scoped=True, aggregate=False
            )
            for plural, kind in (
                ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
                ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
            )
        ),
        _manifest("serviceimports.multicluster.x-k8s.io", "multicluster.x-k8s.io", "v1alpha1", "ServiceImport"),
        _manifest("serviceexports.multicluster.x-k8s.io", "multicluster.x-k8s.io", "v1alpha1", "ServiceExport"),
        _manifest("endpointslices.discovery.k8s.io", "discovery.k8s.io", "v1", "EndpointSlice", controllers=[]),
        _manifest("pods", "", "v1", "Pod", [_CREATED, "spec.nodeName", "status"]),
    ]
