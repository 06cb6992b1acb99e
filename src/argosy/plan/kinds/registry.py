"""The kinds by group and kind: Kubernetes' own, those of packages and rules, and the defaults for all others."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.packages import of_package
from argosy.plan.kinds.rules.rule import in_type, kind_by, shipped
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

__all__ = ["KINDS", "kind_in", "kind_named", "kind_of"]

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
    return kind_named(group, str(obj.get("kind") or ""))


def kind_in(obj: Json, config: FederatedTypeConfig) -> Kind:
    """The same, where the type config of the object is known: it may say more."""
    return in_type(kind_of(obj), config)


def kind_named(group: str, kind: str) -> Kind:
    return KINDS.get((group, kind)) or _described(group, kind)


@lru_cache(maxsize=4096)
def _described(group: str, kind: str) -> Kind:
    """As an installed package describes it, or a rule that comes with Argosy; or else as any kind."""
    if (described := of_package(group, kind)) is not None:
        return described
    rule = shipped(group, kind)
    return kind_by(rule) if rule is not None else _ANY
