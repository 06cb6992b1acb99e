"""Units and fleets from the shapes the vector files give them in; no adapters of its own."""

from typing import Any

import orjson

from argosy.api.policies import PropagationPolicy, Toleration
from argosy.api.types import FederatedCluster, FederatedObject, FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import decode
from argosy.plan.scheduling.unit import (
    AffinityAnnotation,
    AppliedMigration,
    AutoMigrationInfo,
    ResourceRequest,
    Unit,
)


def read(value: Any, type: Any) -> Any:
    return decode(orjson.dumps(value), type)


def unit(vector: dict[str, Any]) -> Unit:
    request = vector.get("resource_request") or {}
    affinity = vector.get("affinity")
    migration = vector.get("auto_migration")
    custom = (vector.get("custom_migration") or {}).get("info")
    version = vector.get("group_version") or {}
    return Unit(
        group=version.get("group", ""),
        version=version.get("version", ""),
        kind=vector.get("kind", ""),
        resource=vector.get("resource", ""),
        namespace=vector.get("namespace", ""),
        name=vector.get("name", ""),
        labels=vector.get("labels") or {},
        annotations=vector.get("annotations") or {},
        mode=vector.get("scheduling_mode", "Duplicate"),
        replicas_strategy=vector.get("replicas_strategy") or "Spread",
        desired_replicas=vector.get("desired_replicas"),
        request=ResourceRequest(
            request.get("milli_cpu", 0),
            request.get("memory", 0),
            request.get("ephemeral_storage", 0),
            request.get("scalar_resources") or {},
        ),
        current=vector.get("current_clusters") or {},
        sticky=vector.get("sticky_cluster", False),
        avoid_disruption=vector.get("avoid_disruption", False),
        cluster_selector=vector.get("cluster_selector") or {},
        affinity=read(affinity, AffinityAnnotation).affinity() if affinity else None,
        tolerations=tuple(read(item, Toleration) for item in vector.get("tolerations") or ()),
        max_clusters=vector.get("max_clusters"),
        cluster_names=frozenset(vector.get("cluster_names") or ()),
        min_replicas=vector.get("min_replicas") or {},
        max_replicas=vector.get("max_replicas") or {},
        weights=vector.get("weights") or {},
        priorities=vector.get("priorities") or {},
        auto_migration=migration is not None,
        keep_unschedulable=bool(migration and migration.get("keep_unschedulable_replicas")),
        migration_info=read(migration["info"], AutoMigrationInfo) if migration and migration.get("info") else None,
        applied_migration=read(custom, AppliedMigration) if custom else None,
    )


def cluster(vector: dict[str, Any]) -> FederatedCluster:
    return read(vector, FederatedCluster)


def fleet(vectors: list[dict[str, Any]]) -> Fleet:
    return Fleet.of(cluster(vector) for vector in vectors)


def federated(vector: dict[str, Any]) -> FederatedObject:
    return read(vector, FederatedObject)


def policy(vector: dict[str, Any]) -> PropagationPolicy:
    return read(vector, PropagationPolicy)


def type_config(vector: dict[str, Any]) -> FederatedTypeConfig:
    return read(vector, FederatedTypeConfig)
