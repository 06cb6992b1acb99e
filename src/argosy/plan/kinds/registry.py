"""The kinds described here, by group and kind; all others get the defaults."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.stock import (
    autoscaler,
    bindings,
    cronjob,
    daemonset,
    definition,
    deployment,
    disruption_budget,
    ingress,
    job,
    pod,
    replicaset,
    service,
    statefulset,
    volumes,
)

__all__ = ["KINDS", "kind_of"]

_ANY: Final = Kind()
#: Any change to a binding or role, except to its finalizers, needs the right to everything it grants.
_GRANT: Final = Kind(feedback=False)
_RBAC: Final = "rbac.authorization.k8s.io"

KINDS: Final[Mapping[tuple[str, str], Kind]] = MappingProxyType(
    {
        ("apps", "Deployment"): deployment.KIND,
        ("apps", "StatefulSet"): statefulset.KIND,
        ("apps", "DaemonSet"): daemonset.KIND,
        ("batch", "Job"): job.KIND,
        ("apps", "ReplicaSet"): replicaset.KIND,
        ("batch", "CronJob"): cronjob.KIND,
        ("", "Pod"): pod.KIND,
        ("", "ReplicationController"): replicaset.KIND,
        ("", "Service"): service.KIND,
        ("", "ServiceAccount"): bindings.SERVICE_ACCOUNT,
        ("", "PersistentVolume"): volumes.PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim"): volumes.PERSISTENT_VOLUME_CLAIM,
        ("networking.k8s.io", "Ingress"): ingress.KIND,
        ("autoscaling", "HorizontalPodAutoscaler"): autoscaler.KIND,
        ("policy", "PodDisruptionBudget"): disruption_budget.KIND,
        ("argoproj.io", "Workflow"): bindings.WORKFLOW,
        ("apiextensions.k8s.io", "CustomResourceDefinition"): definition.KIND,
        (_RBAC, "Role"): _GRANT,
        (_RBAC, "RoleBinding"): _GRANT,
        (_RBAC, "ClusterRole"): _GRANT,
        (_RBAC, "ClusterRoleBinding"): _GRANT,
    }
)


def kind_of(obj: Json) -> Kind:
    """How objects like this one are treated."""
    group, _, _ = str(obj.get("apiVersion") or "").rpartition("/")
    return KINDS.get((group, str(obj.get("kind") or "")), _ANY)
