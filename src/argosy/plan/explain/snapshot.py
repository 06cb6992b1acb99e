"""Snapshot: everything decisions depend on at one moment, as a value; and the same with something changed.

To forecast a change, take a Snapshot, change it here, and hand both to `whatif`. Objects stay encoded until they are needed:
a federation has many, and most questions concern few. The caller reads the snapshot from an API server.
"""

import datetime
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

import msgspec

from argosy.api import keys
from argosy.api.clusters import APIResource, ClusterCondition, ClusterResources, FederatedCluster, Taint
from argosy.api.conditions import JOINED, OFFLINE, READY
from argosy.api.federated import FederatedObject
from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.profiles import SchedulerPluginWebhookConfiguration, SchedulingProfile
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.member import member_of
from argosy.fleet.snapshot import CPU, Fleet
from argosy.fleet.workloads import WorkloadKey, Workloads
from argosy.kube import quantity
from argosy.kube.objects import DecodeError, Metadata, Partial, decode, encode, join_key
from argosy.kube.taints import NO_EXECUTE, NO_SCHEDULE
from argosy.plan import fields
from argosy.plan.claims.claim import Claim, Selectors
from argosy.plan.claims.exclusions import Subject
from argosy.plan.claims.record import InForce, in_force, unless_missed
from argosy.plan.copies.placement import placed
from argosy.plan.fields import Json
from argosy.plan.kinds.registry import kind_named
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.profile import Registry

__all__ = ["CORDON", "LOSS", "Irrelevant", "ObjectKey", "ScenarioError", "Snapshot", "replicas_path"]

T = TypeVar("T")

#: Cordoning a cluster: it keeps its objects and gets no new ones.
CORDON: Final = Taint("argosy.io/cordoned", NO_SCHEDULE)
#: Taints of a cluster that has failed: see `failover`.
LOSS: Final = Taint(keys.UNREADY_TAINT, NO_EXECUTE)
_REPLICAS: Final = "spec.replicas"


class ScenarioError(ValueError):
    """The supposed change is impossible; the message says why."""


class Irrelevant(ScenarioError):
    """No decision depends on an object of this kind."""


class ObjectKey(NamedTuple):
    """A source object, by the name of its type config."""

    type: str
    namespace: str
    name: str

    @property
    def text(self) -> str:
        return f"{self.type} {join_key(self.namespace, self.name)}"


class Snapshot(msgspec.Struct, frozen=True, dict=True):
    """A control plane at one moment. `sources` are those to be propagated, `federated` their federated objects, `namespaces` the
    labels of namespaces, where policies look at them."""

    type_configs: dict[str, FederatedTypeConfig] = {}
    clusters: dict[str, FederatedCluster] = {}
    sources: dict[ObjectKey, bytes] = {}
    federated: dict[ObjectKey, bytes] = {}
    policies: dict[PolicyRef, PropagationPolicy] = {}
    override_policies: dict[PolicyRef, OverridePolicy] = {}
    profiles: dict[str, SchedulingProfile] = {}
    webhooks: dict[str, SchedulerPluginWebhookConfiguration] = {}
    #: Values of PriorityClasses; an empty name stands for pods that name none.
    priorities: dict[str, int] = {}
    #: How much of its work each copy of a divided Job has done.
    done: dict[ObjectKey, dict[str, int]] = {}
    namespaces: dict[str, dict[str, str]] = {}
    #: The plugins that profiles can name.
    registry: Registry = IN_TREE
    #: Whether the controllers count requests for Katalyst's resources.
    katalyst: bool = False
    #: The current time; without it no migration expires.
    now: datetime.datetime | None = None

    @cached_property
    def fleet(self) -> Fleet:
        workloads = Workloads()
        for key, raw in self.federated.items() if self._rules_look_at_others else ():
            self._note(workloads, key, decode(raw, FederatedObject).placed)
        return Fleet.of(self.clusters.values()).with_workloads(workloads)

    def note_placed(self, key: ObjectKey, spec: Json) -> None:
        """Records where an object is placed from now on, for the rules of other objects."""
        if self._rules_look_at_others:
            self._note(self.fleet.workloads, key, placed(spec))

    @cached_property
    def _rules_look_at_others(self) -> bool:
        specs = [policy.spec for policy in self.policies.values()]
        return any(spec.workload_affinity is not None or spec.workload_anti_affinity is not None for spec in specs)

    def _note(self, workloads: Workloads, key: ObjectKey, clusters: Iterable[str]) -> None:
        config, source = self.type_configs.get(key.type), self.sources.get(key)
        if config is None or source is None:
            return
        kind = kind_named(config.resource.group, config.kind)
        if kind.pod_spec:
            workload = WorkloadKey(config.resource.group, config.kind, key.namespace, key.name)
            workloads.set(workload, decode(source, Partial).metadata.labels, clusters)

    def source(self, key: ObjectKey) -> Json | None:
        raw = self.sources.get(key)
        if raw is None:
            return None
        config = self.type_configs[key.type]
        return {"apiVersion": config.api_version, "kind": config.kind, **decode(raw, dict)}

    @cached_property
    def _selectors(self) -> Selectors:
        return Selectors(self.policies.values())

    def claim(self, key: ObjectKey) -> Claim | None:
        """Which policy claims an object, by its label or by selectors."""
        config, raw = self.type_configs.get(key.type), self.sources.get(key)
        if config is None or raw is None:
            return None
        subject = Subject(config.resource.group, config.kind, decode(raw, Partial).metadata)
        return self._selectors.claim(subject, self.namespaces)

    def selected_by(self, key: ObjectKey) -> PolicyRef | None:
        """The policy whose selectors claim an object; None also for one that names a policy."""
        claim = self.claim(key)
        if claim is None or claim.by_label:
            return None
        return unless_missed(claim.ref, self._record(key), self.policies.__contains__)

    def in_force(self, key: ObjectKey) -> InForce:
        """The policy that counts for an object of the snapshot."""
        return in_force(decode(self.sources[key], Partial).metadata, self._record(key), self.selected_by(key))

    def _record(self, key: ObjectKey) -> Metadata | None:
        federated = self.federated.get(key)
        return decode(federated, Partial).metadata if federated is not None else None

    def federated_object(self, key: ObjectKey) -> Json | None:
        raw = self.federated.get(key)
        return None if raw is None else decode(raw, dict)

    def type_of(self, api_version: str, kind: str) -> FederatedTypeConfig | None:
        for config in self.type_configs.values():
            if (config.api_version, config.kind) == (api_version, kind):
                return config
        return None

    # Supposed changes. Each raises ScenarioError if the change is impossible.

    def with_object(self, obj: Json) -> "Snapshot":
        """Any object as it would be stored: a source, a policy, a profile, a cluster, a type config."""
        if obj["apiVersion"] == keys.API_VERSION:
            return self._with_own(obj)
        config = self.type_of(obj["apiVersion"], obj["kind"])
        if config is None:
            raise Irrelevant(f"{obj['kind']} {obj['metadata']['name']}: its kind is not federated, so nothing changes")
        metadata = {"uid": "", "generation": 1, **obj["metadata"]}
        key = ObjectKey(config.name, metadata.get("namespace") or "", metadata["name"])
        namespaces = self.namespaces
        if (obj["apiVersion"], obj["kind"]) == ("v1", "Namespace"):
            namespaces = {**namespaces, key.name: metadata.get("labels") or {}}
        sources = {**self.sources, key: encode({**obj, "metadata": metadata})}
        return msgspec.structs.replace(self, sources=sources, namespaces=namespaces)

    def _with_own(self, obj: Json) -> "Snapshot":
        """An object of the federation's own kinds."""
        replace = msgspec.structs.replace
        metadata = obj["metadata"]
        name = metadata["name"]
        ref = PolicyRef(name, metadata.get("namespace") or "")
        match obj["kind"]:
            case "PropagationPolicy" | "ClusterPropagationPolicy":
                return replace(self, policies={**self.policies, ref: _typed(obj, PropagationPolicy)})
            case "OverridePolicy" | "ClusterOverridePolicy":
                return replace(self, override_policies={**self.override_policies, ref: _typed(obj, OverridePolicy)})
            case "SchedulingProfile":
                return replace(self, profiles={**self.profiles, name: _typed(obj, SchedulingProfile)})
            case "FederatedTypeConfig":
                return replace(self, type_configs={**self.type_configs, name: _typed(obj, FederatedTypeConfig)})
            case "FederatedCluster":
                known = self.clusters.get(name)
                if known is None:
                    return self.with_new_cluster(obj)
                cluster = replace(_typed(obj, FederatedCluster), status=known.status)
                return self._with_cluster(cluster)
            case "SchedulerPluginWebhookConfiguration":
                raise Irrelevant(f"webhook {name}: its answers cannot be predicted; the current webhook is asked")
            case kind:
                raise Irrelevant(f"{kind} {name}: no placement depends on this kind, so nothing changes")

    def with_replicas(self, key: ObjectKey, replicas: int) -> "Snapshot":
        """An object scaled."""
        source = self.source(key)
        if source is None:
            raise ScenarioError(f"{key.text} does not exist or is not propagated")
        path = replicas_path(self.type_configs[key.type])
        if not isinstance(fields.get(source, path, None), int):
            raise ScenarioError(f"{key.text} has no number at {path}: it cannot be scaled")
        if fields.get(source, path) == replicas:
            return self
        generation = int(source["metadata"].get("generation") or 0) + 1
        scaled = fields.put(fields.put(source, path, replicas), "metadata.generation", generation)
        return msgspec.structs.replace(self, sources={**self.sources, key: encode(scaled)})

    def with_cordoned(self, name: str) -> "Snapshot":
        """A cluster that gets no new objects."""
        return self._with_taint(self._cluster(name), CORDON)

    def with_lost(self, name: str) -> "Snapshot":
        """A cluster that has failed: what can run elsewhere moves there."""
        cluster = self._cluster(name)
        conditions = _conditions(cluster.status.conditions, **{READY: "False", OFFLINE: "True"})
        status = msgspec.structs.replace(cluster.status, conditions=conditions)
        return self._with_taint(msgspec.structs.replace(cluster, status=status), LOSS)

    def with_new_cluster(self, obj: Json) -> "Snapshot":
        """A cluster that has joined and is ready. What its status does not say is taken from the other clusters.

        Without a capacity it is taken to be empty, with the median capacity of the fleet.
        """
        name = obj["metadata"]["name"]
        if name in self.clusters:
            raise ScenarioError(f"the cluster {name} already exists")
        cluster = _typed(obj, FederatedCluster)
        if cluster.metadata.namespace:
            raise ScenarioError(f"the cluster {name}: clusters have no namespace")
        status = cluster.status
        resources = status.resources
        for field, amounts in (("allocatable", resources.allocatable), ("available", resources.available)):
            for resource, amount in amounts.items():
                try:
                    quantity.parse(amount)
                except quantity.QuantityError as error:
                    raise ScenarioError(f"the cluster {name}: status.resources.{field}.{resource}: {error}") from None
        if not resources.allocatable:
            resources = self._median()
        if not resources.available:
            resources = msgspec.structs.replace(resources, available=resources.allocatable)
        status = msgspec.structs.replace(
            status,
            conditions=_conditions(status.conditions, **{JOINED: "True", READY: "True", OFFLINE: "False"}),
            resources=resources,
            api_resource_types=status.api_resource_types or self._common_apis(),
            join_performed=True,
        )
        return self._with_cluster(msgspec.structs.replace(cluster, status=status))

    def _cluster(self, name: str) -> FederatedCluster:
        cluster = self.clusters.get(name)
        if cluster is None:
            known = ", ".join(sorted(self.clusters)) or "none"
            raise ScenarioError(f"there is no cluster {name!r}; the clusters are: {known}")
        return cluster

    def _with_cluster(self, cluster: FederatedCluster) -> "Snapshot":
        return msgspec.structs.replace(self, clusters={**self.clusters, cluster.name: cluster})

    def _with_taint(self, cluster: FederatedCluster, taint: Taint) -> "Snapshot":
        others = [each for each in cluster.spec.taints if (each.key, each.effect) != (taint.key, taint.effect)]
        spec = msgspec.structs.replace(cluster.spec, taints=(*others, taint))
        return self._with_cluster(msgspec.structs.replace(cluster, spec=spec))

    def _median(self) -> ClusterResources:
        by_size = sorted(self._joined(), key=lambda each: (member_of(each).allocatable.get(CPU, 0), each.name))
        if not by_size:
            return ClusterResources()
        return ClusterResources(allocatable=by_size[len(by_size) // 2].status.resources.allocatable)

    def _common_apis(self) -> tuple[APIResource, ...]:
        """The APIs of the cluster that serves most."""
        return max((each.status.api_resource_types for each in self._joined()), key=len, default=())

    def _joined(self) -> Iterable[FederatedCluster]:
        return (each for each in self.clusters.values() if each.joined)


def replicas_path(config: FederatedTypeConfig) -> str:
    """The dotted path of the number of replicas in objects of this type."""
    return config.spec.path_definition.replicas_spec or _REPLICAS


def _conditions(before: tuple[ClusterCondition, ...], **statuses: str) -> tuple[ClusterCondition, ...]:
    others = tuple(each for each in before if each.type not in statuses)
    return (*others, *(ClusterCondition(type, status) for type, status in statuses.items()))


def _typed(obj: Mapping[str, object], into: type[T]) -> T:
    try:
        return decode(encode(obj), into)
    except DecodeError as error:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        raise ScenarioError(f"{obj.get('kind')} {name}: {error}") from None
