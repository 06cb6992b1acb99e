"""Builders for scheduling tests: clusters, fleets and units from the few facts a test is about."""

from typing import Any

import msgspec

from argosy.api.policies import PropagationPolicy
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.unit import Unit

DEPLOYMENTS = {
    "version": "v1",
    "kind": "Deployment",
    "pluralName": "deployments",
    "scope": "Namespaced",
    "group": "apps",
}


def cluster(
    name: str,
    *,
    cpu: str = "10",
    free: str | None = None,
    joined: bool = True,
    ready: bool = True,
    terminating: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    apis: list[dict[str, str]] | None = None,
    resources: dict[str, Any] | None = None,
) -> FederatedCluster:
    metadata: dict[str, Any] = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    amounts = {"allocatable": {"cpu": cpu, "memory": "64Gi"}, "available": {"cpu": free or cpu, "memory": "64Gi"}}
    conditions = [{"type": "Joined", "status": str(joined)}, {"type": "Ready", "status": str(ready)}]
    return msgspec.convert(
        {
            "metadata": metadata,
            "spec": {"taints": taints or []},
            "status": {
                "conditions": conditions,
                "resources": resources or amounts,
                "apiResourceTypes": [DEPLOYMENTS] if apis is None else apis,
            },
        },
        FederatedCluster,
    )


def fleet(*clusters: FederatedCluster | str) -> Fleet:
    return Fleet.of(cluster(item) if isinstance(item, str) else item for item in clusters)


def unit(replicas: int | None = None, **fields: Any) -> Unit:
    """A Deployment default/web; divided where a number of replicas is given."""
    identity = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "default", "name": "web"}
    mode = {"mode": "Divide", "desired_replicas": replicas} if replicas is not None else {}
    return Unit(**{**identity, "avoid_disruption": True, **mode, **fields})


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, "value": value}


def policy(name: str = "web", *, annotations: dict[str, str] | None = None, **spec: Any) -> PropagationPolicy:
    """A policy as the API server stores it: with the defaults of `reschedulePolicy` unless the test states its own."""
    stored = {"schedulingMode": "Divide", "reschedulePolicy": RESCHEDULE_DEFAULTS, **spec}
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": stored}, PropagationPolicy)


RESCHEDULE_DEFAULTS = {
    "rescheduleWhen": {"policyContentChanged": True},
    "replicaRescheduling": {"avoidDisruption": True},
}


def type_config(replicas_path: str = "spec.replicas") -> FederatedTypeConfig:
    spec = {"sourceType": DEPLOYMENTS, "pathDefinition": {"replicasSpec": replicas_path}}
    return msgspec.convert({"metadata": {"name": "deployments.apps"}, "spec": spec}, FederatedTypeConfig)


def template(replicas: int | None = 3, **container: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"spec": {"containers": [{"name": "web", **container}]}}}
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": spec,
    }
