"""KubeAdmiral's own trigger record: read when objects are taken over from it, and computed only for comparison.

Its hashes are FNV-1 over Go's JSON encoding, so the order of fields matters here and follows the Go types. It grows with
the fleet (about 100 bytes per cluster), which is why the stored form is another one, in `triggers`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson

from argosy.api.clusters import APIResource, FederatedCluster
from argosy.api.policies import PropagationPolicy, PropagationPolicySpec
from argosy.fleet.fingerprint import FleetChange
from argosy.fleet.snapshot import Fleet
from argosy.kube.hashing import fnv1_32
from argosy.plan.scheduling.unit import ResourceRequest

__all__ = ["Inputs", "Record", "hashes_changed", "is_record", "record_for_takeover", "record_of"]

_MARK = '{"schedulingAnnotationsHash":'


class Inputs(msgspec.Struct, frozen=True):
    """The parts of the object that the record covers."""

    annotations: dict[str, str]
    replicas: int
    request: ResourceRequest
    migration: str | None
    policy: PropagationPolicy | None


class Request(msgspec.Struct, frozen=True):
    millicpu: int = 0
    memory: int = 0
    ephemeral_storage: int = msgspec.field(name="ephemeralStorage", default=0)
    scalar_resources: dict[str, int] | None = msgspec.field(name="scalarResources", default=None)


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """The record's fields in its order."""

    scheduling_annotations_hash: str = ""
    replica_count: int = 0
    resource_request: Request = Request()
    auto_migration_info: str | None = None
    policy_name: str = ""
    policy_content_hash: str = ""
    clusters: tuple[str, ...] = ()
    cluster_labels_hashes: dict[str, str] = {}
    cluster_taints_hashes: dict[str, str] = {}
    cluster_api_resource_types_hashes: dict[str, str] = msgspec.field(name="clusterAPIResourceTypesHashes", default={})

    @property
    def text(self) -> str:
        fields = msgspec.to_builtins(self)
        for optional in ("autoMigrationInfo", "policyName", "policyContentHash"):
            if not fields[optional]:
                del fields[optional]
        return _go_json(fields)

    def stable_changes(self, now: "Record") -> tuple[str, ...]:
        fields = (
            "scheduling_annotations_hash",
            "replica_count",
            "resource_request",
            "policy_name",
            "auto_migration_info",
        )
        return tuple(field for field in fields if getattr(self, field) != getattr(now, field))

    def fleet_change(self, now: "Record") -> FleetChange:
        return FleetChange(
            labels=hashes_changed(self.cluster_labels_hashes, now.cluster_labels_hashes),
            taints=hashes_changed(self.cluster_taints_hashes, now.cluster_taints_hashes),
            apis=hashes_changed(self.cluster_api_resource_types_hashes, now.cluster_api_resource_types_hashes),
            joined=set(self.clusters) < set(now.clusters),
        )


def hashes_changed(then: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a known cluster is gone or has another hash; a new cluster is no change."""
    return any(now.get(name) != value for name, value in then.items())


def is_record(text: str) -> bool:
    return text.startswith(_MARK)


def record_of(inputs: Inputs, clusters: Iterable[FederatedCluster]) -> Record:
    """The record KubeAdmiral would store, clusters in the order given (it keeps its cache's order)."""
    clusters = list(clusters)
    return _record(
        inputs,
        [cluster.name for cluster in clusters],
        {cluster.name: _map_hash(cluster.metadata.labels or None) for cluster in clusters},
        {
            cluster.name: _taints_hash((taint.key, taint.value, taint.effect) for taint in cluster.spec.taints)
            for cluster in clusters
        },
        {cluster.name: _apis_hash(cluster.status.api_resource_types) for cluster in clusters},
    )


def record_for_takeover(inputs: Inputs, fleet: Fleet, then: Record) -> Record:
    """The record to compare a stored one with. The clusters' APIs are taken as unchanged: a fleet keeps less of them."""
    return _record(
        inputs,
        fleet.names,
        {member.name: _map_hash(member.labels or None) for member in fleet.members},
        {member.name: _taints_hash(member.taints) for member in fleet.members},
        {name: then.cluster_api_resource_types_hashes.get(name, "") for name in fleet.names},
    )


def _record(
    inputs: Inputs, names: Iterable[str], labels: dict[str, str], taints: dict[str, str], apis: dict[str, str]
) -> Record:
    policy = inputs.policy
    request = inputs.request
    return Record(
        scheduling_annotations_hash=_map_hash(inputs.annotations),
        replica_count=inputs.replicas,
        resource_request=Request(request.milli_cpu, request.memory, request.ephemeral_storage, request.scalars or None),
        auto_migration_info=inputs.migration,
        policy_name=policy.metadata.name if policy is not None else "",
        policy_content_hash=_hash(_policy_content(policy.spec)) if policy is not None else "",
        clusters=tuple(names),
        cluster_labels_hashes=labels,
        cluster_taints_hashes=taints,
        cluster_api_resource_types_hashes=apis,
    )


def _policy_content(spec: PropagationPolicySpec) -> dict[str, Any]:
    """The policy spec without autoMigration, in the order of the Go type; empty optional fields are left out."""
    content = msgspec.to_builtins(spec)
    ordered: dict[str, Any] = {"schedulingProfile": spec.scheduling_profile, "schedulingMode": spec.scheduling_mode}
    for field in (
        "clusterSelector",
        "clusterAffinity",
        "tolerations",
        "maxClusters",
        "placement",
        "disableFollowerScheduling",
        "replicasStrategy",
        "reschedulePolicy",
    ):
        if field in content:
            ordered[field] = content[field]
    if spec.cluster_selector:
        ordered["clusterSelector"] = dict(sorted(spec.cluster_selector.items()))
    return ordered


def _taints_hash(taints: Iterable[tuple[str, str, str]]) -> str:
    return _hash(
        [
            {"key": key, **({"value": value} if value else {}), "effect": effect}
            for key, value, effect in sorted(taints, key=lambda taint: taint[:2])
        ]
    )


def _apis_hash(apis: Iterable[APIResource]) -> str:
    ordered = sorted(apis, key=lambda api: (api.group, api.version, api.kind, api.plural_name, api.scope))
    return _hash(
        [
            {
                **({"group": api.group} if api.group else {}),
                "version": api.version,
                "kind": api.kind,
                "pluralName": api.plural_name,
                "scope": api.scope,
            }
            for api in ordered
        ]
    )


def _map_hash(value: Mapping[str, str] | None) -> str:
    """Go encodes maps in the order of their keys."""
    return _hash(None if value is None else dict(sorted(value.items())))


def _hash(value: Any) -> str:
    return str(fnv1_32(_go_json(value).encode()))


def _go_json(value: Any) -> str:
    """Go's encoder escapes what could end a script element."""
    text = orjson.dumps(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
