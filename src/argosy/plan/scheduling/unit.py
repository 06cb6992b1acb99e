"""The scheduling unit: everything scheduling needs to know of one object, gathered from template, policy and annotations.

A policy's fields apply unless the object has an annotation, which replaces a field as a whole. An invalid annotation is
ignored and named in `ignored`, so that the user can be told. A policy with `argosy.io/refuse-object-overrides: "true"`
ignores them all.
"""

import datetime
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.api.policies import ClusterSelectorTerm, DesiredPlacement, PreferredTerm, PropagationPolicy, Toleration
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.capacity import PodSpecView, Requests, requests_of
from argosy.fleet.katalyst import KATALYST_RESOURCES
from argosy.fleet.member import CPU
from argosy.fleet.snapshot import GPU, MEMORY
from argosy.kube.objects import DecodeError, decode, encode, join_key
from argosy.plan.fields import Json, get, pointer
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import without_annotations
from argosy.plan.scheduling import selection
from argosy.plan.scheduling.rules import NO_RULES, RuleError, Rules, rules_of

__all__ = [
    "Affinity",
    "AutoMigrationInfo",
    "PreferredTerm",
    "ResourceRequest",
    "Unit",
    "UnitError",
    "choice_of",
    "current_placement",
    "desired_replicas",
    "request_of_template",
    "unit_of",
]

T = TypeVar("T")

EPHEMERAL_STORAGE = "ephemeral-storage"


class UnitError(ValueError):
    """The object cannot be scheduled as it is; the message says what is missing."""


class ResourceRequest(msgspec.Struct, frozen=True):
    """What one pod of the object requests; everything but cpu in whole units."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: dict[str, int] = {}

    @property
    def amounts(self) -> Requests:
        """The requests by resource."""
        named = {CPU: self.milli_cpu, MEMORY: self.memory, EPHEMERAL_STORAGE: self.ephemeral_storage}
        return {resource: amount for resource, amount in (named | self.scalars).items() if amount > 0}


class Affinity(msgspec.Struct, frozen=True):
    """`required` None asks for nothing; an empty tuple matches nothing."""

    required: tuple[ClusterSelectorTerm, ...] | None = None
    preferred: tuple[PreferredTerm, ...] = ()


class AutoMigrationInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What members were seen to be able to run."""

    estimated_capacity: dict[str, int] = {}
    scheduled_replicas: dict[str, int] = {}
    #: What the figures of a cluster showed while pods of this shape were stuck there (see `failover.full_clusters`).
    tried: dict[str, dict[str, int]] = {}
    shape: str = ""


class UnavailableCluster(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster to leave until a time; without a time it is not left at all."""

    cluster: str
    valid_until: str = ""


class AppliedMigration(msgspec.Struct, frozen=True, rename="camel"):
    """The user's migration configuration: hard limits, and clusters to leave until a time."""

    limited_capacity: dict[str, int] = {}
    unavailable_clusters: tuple[UnavailableCluster, ...] = ()


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """One object to be placed. `current` is the scheduler's last placement: replicas, or None if duplicated."""

    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    mode: str = keys.DUPLICATE
    replicas_strategy: str = keys.SPREAD
    desired_replicas: int | None = None
    request: ResourceRequest = ResourceRequest()
    #: All requests of one pod, whereas `request` has only those that plugins score by.
    pod_request: ResourceRequest = ResourceRequest()
    current: dict[str, int | None] = {}
    #: Those of its clusters that get no more replicas, each with the filter that allows no new ones.
    closed: dict[str, str] = {}

    sticky: bool = False
    avoid_disruption: bool = False
    #: Whether the policy asks for copies to move where scores are better. Only if it says so: copies have no balance to keep.
    follows_scores: bool = False
    cluster_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    max_clusters: int | None = None
    cluster_names: frozenset[str] = frozenset()
    min_replicas: dict[str, int] = {}
    max_replicas: dict[str, int] = {}
    weights: dict[str, int] = {}
    priorities: dict[str, int] = {}

    auto_migration: bool = False
    keep_unschedulable: bool = False
    migration_info: AutoMigrationInfo | None = None
    applied_migration: AppliedMigration | None = None
    #: The time of the decision; if None, nothing expires.
    now: datetime.datetime | None = None

    #: What the policy asks for beyond KubeAdmiral's fields.
    rules: Rules = NO_RULES

    #: Annotations that were not honoured, and why.
    ignored: dict[str, str] = {}
    #: Which settings are unreadable. A placed object stays where it is until they are corrected.
    unreadable: str = ""

    @property
    def key(self) -> str:
        """The object's name, for breaking ties."""
        return join_key(self.namespace, self.name)

    @property
    def question(self) -> Hashable | None:
        """What the object asks of clusters, regardless of where it runs and of its number of replicas: objects with the same
        question get the same answer, if they run in the same clusters or do not stay put. None if the answer also depends on
        other workloads, on the time, or on what clusters offer beside their nodes."""
        if self.rules is not NO_RULES or self.applied_migration is not None:
            return None
        if not self.request.scalars.keys().isdisjoint(KATALYST_RESOURCES):
            return None
        request = self.request
        return (
            (self.group, self.version, self.kind, self.mode, self.replicas_strategy),
            (request.milli_cpu, request.memory, request.ephemeral_storage, tuple(request.scalars.items())),
            tuple(self.cluster_selector.items()),
            self.affinity,
            self.tolerations,
            self.max_clusters,
            self.cluster_names,
            tuple(self.priorities.items()),
        )

    @property
    def stays_put(self) -> bool:
        """Whether it keeps its clusters although others score better now: only some of them are selected."""
        if self.max_clusters is None and not self.rules.spread:
            return False
        return self.avoid_disruption if self.divides else not self.follows_scores

    @property
    def divides(self) -> bool:
        return self.mode == keys.DIVIDE


def unit_of(
    template: Json,
    annotations: Mapping[str, str],
    current: Mapping[str, int | None],
    policy: PropagationPolicy,
    type_config: FederatedTypeConfig,
    *,
    now: datetime.datetime | None = None,
    katalyst: bool = False,
    whole: bool = False,
) -> Unit:
    """The unit for an object: its template, the federated object's annotations, and its current placement.

    With `katalyst`, requests for Katalyst's resources count. One that stays `whole` is not divided. Raises UnitError if replicas
    are to be divided and the template has no number at the configured path, and if a rule of the policy is invalid.
    """
    spec = policy.spec
    source = type_config.spec.source_type
    metadata = template.get("metadata") or {}
    overrides = _ObjectOverrides(annotations, spec.placement, refused=_refuses_overrides(policy))
    path = type_config.spec.path_definition.replicas_spec

    mode = overrides.choice(keys.SCHEDULING_MODE, (keys.DUPLICATE, keys.DIVIDE)) or spec.scheduling_mode
    if mode != keys.DIVIDE or not path or whole:
        mode = keys.DUPLICATE
    desired = None
    if mode == keys.DIVIDE:
        desired = desired_replicas(template, path)
        if desired is None:
            raise UnitError(f"no replica count at {path!r} of the template")

    affinity = overrides.json(keys.AFFINITY, AffinityAnnotation)
    tolerations = overrides.json(keys.TOLERATIONS, tuple[Toleration, ...])
    selector = overrides.json(keys.CLUSTER_SELECTOR, dict[str, str])
    max_clusters = overrides.number(keys.MAX_CLUSTERS)
    sticky = overrides.choice(keys.STICKY_CLUSTER, ("true", "false"))
    pod_request = request_of_template(template)
    asked = pod_request.scalars
    counted = (GPU, *KATALYST_RESOURCES) if katalyst else (GPU,)
    migration = spec.auto_migration
    try:
        rules = rules_of(spec)
    except RuleError as error:
        raise UnitError(f"{policy.kind} {policy.metadata.name}: spec.{error}") from None

    affinities = _affinity(policy) if affinity is None else affinity.affinity()
    return Unit(
        group=source.group,
        version=source.version,
        kind=source.kind,
        resource=source.plural_name,
        namespace=metadata.get("namespace") or "",
        name=metadata.get("name") or "",
        labels=metadata.get("labels") or {},
        # Without kubectl's copy of the whole object: plugins must not see its content.
        annotations=without_annotations(metadata.get("annotations"), keys.LAST_APPLIED),
        mode=mode,
        replicas_strategy=spec.replicas_strategy or keys.SPREAD,
        desired_replicas=desired,
        # cpu and memory are deliberately no part of it: dynamic weights follow the fleet, not one pod's size.
        request=ResourceRequest(scalars={name: amount for name in counted if (amount := asked.get(name))}),
        pod_request=pod_request,
        current=dict(current),
        sticky=spec.sticky if sticky is None else sticky == "true",
        avoid_disruption=spec.avoid_disruption,
        follows_scores=spec.allows_disruption,
        cluster_selector=spec.cluster_selector if selector is None else selector,
        affinity=affinities,
        tolerations=spec.tolerations if tolerations is None else tolerations,
        max_clusters=spec.max_clusters if max_clusters is None else max_clusters,
        cluster_names=frozenset(item.cluster for item in overrides.placement),
        min_replicas={name: least for name, least in overrides.preference("min_replicas").items() if least},
        max_replicas=overrides.preference("max_replicas"),
        weights=overrides.preference("weight"),
        priorities=overrides.preference("priority"),
        auto_migration=migration is not None,
        keep_unschedulable=migration is not None and migration.keep_unschedulable_replicas,
        migration_info=overrides.internal(keys.AUTO_MIGRATION_INFO, AutoMigrationInfo) if migration else None,
        applied_migration=overrides.internal(keys.APPLIED_MIGRATION_CONFIGURATION, AppliedMigration),
        now=now,
        rules=rules,
        ignored=overrides.ignored,
        unreadable=_unreadable(overrides, affinities),
    )


def _unreadable(overrides: "_ObjectOverrides", affinity: Affinity | None) -> str:
    for annotation, why in sorted(overrides.unreadable.items()):
        return f"annotation {annotation} cannot be read: {why}"
    try:
        selection.check((affinity.required if affinity is not None else None) or ())
    except selection.SelectionError as error:
        return f"the cluster affinity cannot be read: {error}"
    return ""


def current_placement(federated: FederatedObject, type_config: FederatedTypeConfig) -> dict[str, int | None]:
    """The scheduler's last placement of the object, with the replicas of its own overrides."""
    path = type_config.spec.path_definition.replicas_spec
    at = pointer(path)
    overrides = federated.overrides_of(keys.GLOBAL_SCHEDULER)
    placement: dict[str, int | None] = {}
    for cluster in sorted(federated.placement_of(keys.GLOBAL_SCHEDULER)):
        numbers = [patch.value for patch in overrides.get(cluster, ()) if path and patch.path == at]
        number = numbers[-1] if numbers else None
        placement[cluster] = number if isinstance(number, int) and number >= 0 else None
    return placement


def desired_replicas(template: Json, path: str) -> int | None:
    """The number at a dotted path of the template, None if there is none."""
    value = get(template, path, None) if path else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def request_of_template(template: Json) -> ResourceRequest:
    """What one pod of a workload requests; nothing for kinds that run no pods."""
    path = kind_of(template).pod_spec
    spec = get(template, path, None) if path else None
    if not isinstance(spec, dict):
        return ResourceRequest()
    try:
        view = decode(encode(spec), PodSpecView)
    except DecodeError:
        return ResourceRequest()
    requests = requests_of(view)
    return ResourceRequest(
        milli_cpu=requests.pop(CPU, 0),
        memory=requests.pop(MEMORY, 0),
        ephemeral_storage=requests.pop(EPHEMERAL_STORAGE, 0),
        scalars=requests,
    )


class _RequiredTerms(msgspec.Struct, frozen=True, rename="camel"):
    cluster_selector_terms: tuple[ClusterSelectorTerm, ...] = ()


class _ClusterAffinity(msgspec.Struct, frozen=True, rename="camel"):
    required_during_scheduling_ignored_during_execution: _RequiredTerms | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTerm, ...] | None = None


class AffinityAnnotation(msgspec.Struct, frozen=True, rename="camel"):
    cluster_affinity: _ClusterAffinity | None = None

    def affinity(self) -> Affinity | None:
        stated = self.cluster_affinity
        if stated is None:
            return None
        required = stated.required_during_scheduling_ignored_during_execution
        return Affinity(
            None if required is None else required.cluster_selector_terms,
            stated.preferred_during_scheduling_ignored_during_execution or (),
        )


class _ObjectOverrides:
    """Reads the annotations that replace policy fields, and records those it could not apply."""

    def __init__(
        self, annotations: Mapping[str, str], policy_placement: tuple[DesiredPlacement, ...], *, refused: bool
    ) -> None:
        self._annotations = annotations
        self._refused = refused
        self._policy_placement = policy_placement
        #: What is ignored, and why; and the part of it that is invalid.
        self.ignored: dict[str, str] = {}
        self.unreadable: dict[str, str] = {}
        stated = self.json(keys.PLACEMENTS, tuple[DesiredPlacement, ...])
        self.placement = policy_placement if stated is None else stated

    def preference(self, field: str) -> dict[str, int]:
        """One preference for all clusters. If any number is negative, the policy's preference applies to all clusters."""
        stated = _preference(self.placement, field)
        if all(number >= 0 for number in stated.values()):
            return stated
        self.ignored[keys.PLACEMENTS] = f"{field} must not be negative"
        return _preference(self._policy_placement, field)

    def number(self, key: str) -> int | None:
        value = self._value(key)
        if value is None or (value.isascii() and value.isdigit()):
            return None if value is None else int(value[:19])
        self._skip(key, "must be a whole number, 0 or more")
        return None

    def choice(self, key: str, allowed: Iterable[str]) -> str | None:
        value = self._value(key)
        if value is None or value in allowed:
            return value
        self._skip(key, f"must be one of {', '.join(allowed)}")
        return None

    def json(self, key: str, type: type[T]) -> T | None:
        value = self._value(key)
        return None if value is None else self._decoded(key, value, type)

    def internal(self, key: str, type: type[T]) -> T | None:
        """Annotations that the federation itself writes: policies cannot refuse them."""
        value = self._annotations.get(key)
        return None if value is None else self._decoded(key, value, type)

    def _decoded(self, key: str, value: str, type: type[T]) -> T | None:
        try:
            return decode(value.encode(), type)
        except DecodeError as error:
            self._skip(key, str(error))
            return None

    def _skip(self, key: str, why: str) -> None:
        self.ignored[key] = self.unreadable[key] = why

    def _value(self, key: str) -> str | None:
        value = self._annotations.get(key)
        if value is not None and self._refused:
            self.ignored[key] = "the policy's owner refuses overrides by objects"
            return None
        return value


def _refuses_overrides(policy: PropagationPolicy) -> bool:
    return policy.metadata.annotations.get(keys.REFUSE_OBJECT_OVERRIDES) == "true"


def choice_of(policy: PropagationPolicy) -> Unit:
    """A new object of this policy, with only what its choice of clusters needs."""
    return Unit(
        cluster_selector=policy.spec.cluster_selector,
        affinity=_affinity(policy),
        tolerations=policy.spec.tolerations,
        cluster_names=frozenset(item.cluster for item in policy.spec.placement),
    )


def _affinity(policy: PropagationPolicy) -> Affinity | None:
    required, preferred = policy.spec.cluster_affinity, policy.spec.preferred_cluster_affinity
    return Affinity(required or None, preferred) if required or preferred else None


def _preference(stated: Iterable[DesiredPlacement], field: str) -> dict[str, int]:
    return {item.cluster: value for item in stated if (value := getattr(item.preferences, field)) is not None}
